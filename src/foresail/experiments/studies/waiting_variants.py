"""Study ``waiting-variants``: waiting policies that have no oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final

from foresail.cloud.waiting.learning import (
    WaitRows,
    boosted_waits,
    forest_waits,
    linear_waits,
    score_waits,
    split_rows,
    wait_rows,
)
from foresail.cloud.waiting.metrics import measured
from foresail.cloud.waiting.policies import Beliefs, waiting_policy
from foresail.cloud.waiting.simulating import simulate
from foresail.cloud.waiting.variants import standard_variants
from foresail.experiments.studies import _waiting as waiting
from foresail.experiments.study import Case, Claim, Mean, Measure, Study, StudyParameters
from foresail.kernels.wait_model import WaitModel
from foresail.model.registry import register

_VARIANTS: Final = (
    "oracle", "naive", "runtimes 10 % off", "runtimes and waits 10 % off", "speculative",
    "speculative, spot",
)  # fmt: skip
_EXAMPLES: Final = 100_000
_POLICIES: Final = "policies"
_MODELS: Final = "models of waits"


@dataclass(frozen=True, slots=True)
class Baseline:
    """The compound policy that variants are compared with; ``percent`` of the load is owned."""

    trace: waiting.Trace
    percent: float
    waiting_seconds: float
    short_seconds: float


@dataclass(frozen=True, slots=True)
class VariantRun:
    """A variant; ``model`` names the model of waits that it uses, if any."""

    baseline: Baseline
    variant: str
    model: str = ""

    def measure(self) -> Mapping[str, float]:
        """What it cost, and how long jobs waited."""
        base = self.baseline
        jobs, fixed = base.trace.read(), base.trace.machines(base.percent)
        policy = waiting_policy("compound", base.waiting_seconds, base.short_seconds)
        models = {self.model: _learned(base, self.model)} if self.model else {}
        variants = standard_variants(jobs, policy, models, {}, seed=base.trace.seed)
        chosen = next(each for each in variants if each.name == self.variant)
        found = simulate(
            jobs, fixed, waiting.FAMILY, chosen.policy, chosen.beliefs, chosen.lost_seconds
        )
        return waiting.figures_of(measured(found, fixed, chosen.policy, chosen.trial_price))


@dataclass(frozen=True, slots=True)
class ModelScore:
    """How well a model foresees waits beyond a threshold."""

    baseline: Baseline
    model: str
    threshold_seconds: float

    def measure(self) -> Mapping[str, float]:
        """MCC against the threshold, and MAPE of the waits.

        Of a model that learned from another year; ``correlation_split`` is that of the published
        split, where the jobs of the test were submitted between those that were learned.
        """
        limits = [self.threshold_seconds]
        other = score_waits(_learned(self.baseline, self.model), _rows(self.baseline), limits)[0]
        model, test = _learned_split(self.baseline, self.model)
        split = score_waits(model, test, limits)[0]
        return {
            "correlation": other.correlation,
            "percentage_error": other.percentage_error,
            "correlation_split": split.correlation,
        }


_LEARN: Final[Mapping[str, Callable[[WaitRows], WaitModel]]] = {
    "linear": linear_waits,
    "forest": lambda rows: forest_waits(rows, trees=30),
    "boosting": lambda rows: boosted_waits(rows, trees=50),
}


@lru_cache(maxsize=3)
def _learned(base: Baseline, model: str) -> WaitModel:
    """A model of another year's waits."""
    return _LEARN[model](_rows(base, another=True))


@lru_cache(maxsize=3)
def _learned_split(base: Baseline, model: str) -> tuple[WaitModel, WaitRows]:
    """A model of 70 % of this year's rows, and the other rows."""
    learn, test = split_rows(_rows(base))
    return _LEARN[model](learn), test


@lru_cache(maxsize=2)
def _rows(base: Baseline, another: bool = False) -> WaitRows:
    """Examples from a run of the baseline in which nobody is told of waits."""
    jobs = (base.trace.another_year() if another else base.trace).read()
    fixed = base.trace.machines(base.percent)
    policy = waiting_policy("compound", base.waiting_seconds, base.short_seconds)
    every = max(1, len(jobs) // _EXAMPLES)
    found = simulate(
        jobs, fixed, waiting.FAMILY, policy, Beliefs.true_runtimes(jobs), features_every=every
    )
    return wait_rows(found, policy)


@dataclass(frozen=True, slots=True)
class VariantParameters(StudyParameters):
    """Parameters of ``waiting-variants``.

    Parameters
    ----------
    jobs
        So many first jobs of the generated year; 0: all.
    percent
        Of the mean load that fixed machines hold.
    waiting_hours
        Threshold b.
    short_minutes
        Thresholds t, which figures go by.
    models
        Models of waits: ``linear``, and, with scikit-learn, ``forest`` and ``boosting``.
    """

    QUICK: ClassVar[dict[str, str]] = {
        "seeds": "1",
        "jobs": "1000000",
        "short_minutes": "[5,15]",
        "models": "[linear,forest]",
    }
    QUICK_MINUTES: ClassVar[float] = 6.0
    FULL_MINUTES: ClassVar[float] = 90.0

    seeds: int = 1
    jobs: int = 0
    percent: float = 100.0
    waiting_hours: float = 24.0
    short_minutes: tuple[float, ...] = (5.0, 15.0, 30.0, 60.0)
    models: tuple[str, ...] = ("linear", "forest", "boosting")


@register("study", "waiting-variants", parameters=VariantParameters)
def waiting_variants(parameters: VariantParameters) -> Study:
    """What trials and models of waits are worth without an oracle (figures 7.3 to 7.8)."""
    cases = []
    for seed in range(parameters.seeds):
        trace = waiting.Trace("", parameters.jobs, seed)
        for minutes in parameters.short_minutes:
            base = Baseline(
                trace, parameters.percent, 3600.0 * parameters.waiting_hours, 60.0 * minutes
            )
            cases += [
                Case(_POLICIES, minutes, variant, seed, VariantRun(base, variant))
                for variant in _VARIANTS
            ]
            cases += [
                Case(_POLICIES, minutes, variant, seed, VariantRun(base, variant, model))
                for model in parameters.models
                for variant in (f"waits by {model}", f"combined, {model}")
            ]
        first = Baseline(
            trace,
            parameters.percent,
            3600.0 * parameters.waiting_hours,
            60.0 * parameters.short_minutes[0],
        )
        cases += [
            Case(_MODELS, hours, model, seed, ModelScore(first, model, 3600.0 * hours))
            for model in parameters.models
            for hours in (0.25, 1.0, 4.0, 12.0, 24.0)
        ]
    return Study(
        title="What is a waiting policy worth without an oracle?",
        source=f"{waiting.SOURCE}, figures 7.3 to 7.8",
        axis="short threshold t (min), or waiting threshold b of a model (h)",
        measures=(
            waiting.PRICE,
            waiting.WAIT,
            waiting.RENTED_COST,
            Measure("correlation", "MCC of waits beyond b"),
            Measure("correlation_split", "MCC, published split"),
            Measure("percentage_error", "MAPE of waits"),
        ),
        drawn=("price", "mean_wait_seconds", "correlation"),
        cases=tuple(cases),
        claims=tuple(_claims(parameters.models)),
        notes=(
            "Jobs of the generated year have no users: models of runtimes are not compared, and "
            "variants know the runtimes of the queue's order (first come, first served) only.",
            "Waits 10 % off are forecast by simulating forward, as if nobody else came. But who "
            "comes later may overtake, so that most of those who wait in vain are not told.",
            "Models learned from another generated year. In the published split, jobs of the test "
            "were submitted between those that were learned, often in the same burst.",
        ),
    )


def _claims(models: tuple[str, ...]) -> list[Claim]:
    def mean(measure: str, system: str, *x: float) -> Mean:
        return Mean(measure, system, _POLICIES, x)

    claims = [
        Claim(
            "Who waits in vain pays what the oracle pays, and waits 14 % longer or more "
            "(figure 7.6).",
            mean("mean_wait_seconds", "oracle"),
            mean("mean_wait_seconds", "naive"),
            factor=1.0 / 1.14,
        ),
        Claim(
            "For t of 15 minutes trials cost about what runtimes 10 % off do (figure 7.4; taken "
            "as: 10 % more on demand).",
            mean("rented_to_fixed", "speculative", 15.0),
            mean("rented_to_fixed", "runtimes 10 % off", 15.0),
            factor=1.10,
        ),
    ]
    for model in models:
        claims += [
            Claim(
                f"Told waits by a model, the price is within 2 % of the oracle's ({model}).",
                mean("price", f"waits by {model}"),
                mean("price", "oracle"),
                factor=1.02,
            ),
            Claim(
                f"Combined with trials, the on-demand cost is within 4 % of the oracle's ({model}; "
                "figure 7.7).",
                mean("rented_to_fixed", f"combined, {model}", 15.0),
                mean("rented_to_fixed", "oracle", 15.0),
                factor=1.04,
            ),
            Claim(
                f"... and the wait within 13 % (figure 7.8; {model}).",
                mean("mean_wait_seconds", f"combined, {model}", 15.0),
                mean("mean_wait_seconds", "oracle", 15.0),
                factor=1.13,
            ),
        ]
    return claims
