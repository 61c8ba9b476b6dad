"""Study ``waiting-variants``: waiting policies that have no oracle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Final

from foresail.model.registry import register
from foresail_studies.study import Bound, GridPoint, Mean, Study, published
from foresail_studies.waiting import _shared as waiting
from foresail_studies.waiting import _variants as variants
from foresail_studies.waiting._variants import Baseline, ModelScore, VariantRun

_VARIANTS: Final = ("oracle", "naive", "runtimes 10 % off", "speculative", "speculative, spot")
_POLICIES: Final = "policies"
_MODELS: Final = "models of waits"
_BASE_MINUTES: Final = 15.0


@dataclass(frozen=True, slots=True)
class VariantParameters(waiting.YearParameters):
    """Parameters of ``waiting-variants``."""

    QUICK: ClassVar[dict[str, str]] = {
        "seeds": "3",
        "jobs": "1000000",
        "short_minutes": "[5,15]",
        "models": "[linear,forest]",
    }
    QUICK_MINUTES: ClassVar[float] = 6.0
    FULL_MINUTES: ClassVar[float] = 90.0

    percent: float = 100.0
    """Of the mean load that fixed machines hold."""
    waiting_hours: float = 24.0
    """Threshold b."""
    short_minutes: tuple[float, ...] = (5.0, 15.0, 30.0, 60.0)
    """Thresholds t, which figures go by."""
    models: tuple[str, ...] = ("linear", "forest", "boosting")
    """Models of waits: ``linear``, and, with scikit-learn, ``forest`` and ``boosting``."""


@register("study", "waiting-variants", parameters=VariantParameters)
def waiting_variants(parameters: VariantParameters) -> Study:
    """Measure trials and models of waits without an oracle (figures 7.4, 7.5, 7.7, 7.8)."""
    cases = []
    for seed in range(parameters.seeds):
        trace = waiting.Trace("", parameters.jobs, seed)
        base = Baseline(
            trace, parameters.percent, 3600.0 * parameters.waiting_hours, 60.0 * _BASE_MINUTES
        )
        for minutes in parameters.short_minutes:
            here = replace(base, short_seconds=60.0 * minutes)
            cases += [
                GridPoint(_POLICIES, minutes, variant, seed, VariantRun(here, variant))
                for variant in _VARIANTS
            ]
            cases += [
                GridPoint(_POLICIES, minutes, variant, seed, VariantRun(here, variant, model, base))
                for model in parameters.models
                for variant in (f"waits by {model}", f"combined, {model}")
            ]
        cases += [
            GridPoint(_MODELS, hours, model, seed, ModelScore(base, model, 3600.0 * hours))
            for model in parameters.models
            for hours in (0.25, 1.0, 4.0, 12.0, 24.0)
        ]
    return Study(
        title="What is a waiting policy worth without an oracle?",
        source=f"{waiting.SOURCE}, figures 7.4, 7.5, 7.7 (a) and 7.8 (a)",
        axis="short threshold t (min), or waiting threshold b of a model (h)",
        measures=(
            waiting.PRICE,
            waiting.WAIT,
            waiting.RENTED_COST,
            variants.DEARER,
            variants.OF_TRIALS,
            variants.OF_WAITS,
            variants.CORRELATION,
            variants.CORRELATION_SPLIT,
            variants.WAIT_ERROR,
        ),
        drawn=("price", "mean_wait_seconds", "correlation"),
        cases=tuple(cases),
        claims=published(_claims(parameters.models, parameters.short_minutes)),
        notes=(
            "Jobs of the generated year have no users: models of runtimes are not compared, and "
            "variants know the runtimes of the queue's order (first come, first served) only.",
            "Waits that were forecast by simulating forward, from runtimes 10 % off and as if "
            "nobody else came, cost as much as with waits foreseen and kept jobs waiting a sixth "
            "longer: who comes later may overtake. That variant has been taken out.",
            "Models learned from another generated year with t = 15 min, for all t. In the "
            "published split, jobs of the test were submitted between those that were learned, "
            "often in the same burst.",
        ),
    )


def _claims(models: tuple[str, ...], minutes: tuple[float, ...]) -> dict[str, Bound]:
    def mean(measure: str, system: str, *x: float) -> Mean:
        return Mean(measure, system, _POLICIES, x)

    claims = {
        "For t of 15 minutes trials cost about what runtimes 10 % off do (figure 7.4; taken as: "
        "10 % more on demand).": mean("rented_to_fixed", "speculative", 15.0).against(
            "runtimes 10 % off", factor=1.10
        ),
        "... and less for smaller t (taken as: less above the oracle's cost).": Bound(
            mean("dearer", "speculative", min(minutes)), mean("dearer", "speculative", max(minutes))
        ),
        "Trials on machines that may be taken back cost less than those on demand.": mean(
            "rented_to_fixed", "speculative, spot"
        ).against("speculative"),
    }
    for model in models:
        if model != "linear":
            claims |= {
                f"A model's MCC is 0.25 or more ({model}; figure 7.5).": Bound(
                    0.25, Mean("correlation", model, _MODELS)
                ),
                f"... and falls with the threshold b ({model}).": Bound(
                    Mean("correlation", model, _MODELS, (24.0,)),
                    Mean("correlation", model, _MODELS, (0.25,)),
                ),
            }
        claims |= {
            f"Combined with trials, the on-demand cost is within 4 % of the oracle's ({model}; "
            f"figure 7.7).": mean("rented_to_fixed", f"combined, {model}", 15.0).against(
                "oracle", factor=1.04
            ),
            f"... and the wait within 13 % (figure 7.8; {model}).": mean(
                "mean_wait_seconds", f"combined, {model}", 15.0
            ).against("oracle", factor=1.13),
        }
    return claims
