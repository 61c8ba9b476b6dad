"""Study ``3sigma-attribution``: what each of 3Sigma's techniques gives, by deadline slack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.experiments.studies import _sigma as sigma
from foresail.experiments.study import Claim, Mean, Study
from foresail.model.registry import register

_SYSTEMS: Final = (
    *("3sigma", "3sigma-no-dist", "3sigma-no-oe", "3sigma-no-adapt"),
    *("point-perfect", "point-real"),
)


@dataclass(frozen=True, slots=True)
class AttributionParameters(sigma.SigmaParameters):
    """Parameters of ``3sigma-attribution``.

    Parameters
    ----------
    slack_percents
        Slacks of the deadlines, each for all jobs of a run.
    """

    QUICK: ClassVar[dict[str, str]] = {**sigma.QUICK, "seeds": "3", "slack_percents": "[20,60,140]"}
    QUICK_MINUTES: ClassVar[float] = 5.0
    FULL_MINUTES: ClassVar[float] = 240.0

    slack_percents: tuple[float, ...] = tuple(range(20, 200, 20))


@register("study", "3sigma-attribution", parameters=AttributionParameters)
def attribution(parameters: AttributionParameters) -> Study:
    """What each of 3Sigma's techniques gives, over deadline slack (figure 4.8)."""
    cases = [
        case
        for slack in parameters.slack_percents
        for case in sigma.cases_of(parameters, _setting(parameters, slack), sigma.named(*_SYSTEMS))
    ]
    tightest, loosest = min(parameters.slack_percents), max(parameters.slack_percents)
    return Study(
        title="What does each of 3Sigma's techniques give?",
        source="3Sigma (J. W. Park, Distribution-based cluster scheduling, 2019), figure 4.8",
        axis="deadline slack (%)",
        measures=sigma.MEASURES,
        drawn=sigma.DRAWN,
        cases=tuple(cases),
        claims=(*_claims(tightest), *_slack_claims(tightest, loosest)),
        notes=sigma.NOTES,
    )


def _setting(parameters: AttributionParameters, slack: float) -> sigma.Setting:
    workload = sigma.recipe(parameters, "deadline", f",slack_percent={slack:g}")
    return sigma.Setting(workload, sigma.history_of(workload), "DEADLINE-n", slack)


def _misses(system: str, *x: float) -> Mean:
    return Mean(sigma.MISSES.name, system, x=x)


def _claims(tightest: float) -> tuple[Claim, ...]:
    return (
        Claim(
            "Handling over-estimates alone misses fewer deadlines than PointRealEst "
            "(3SigmaNoDist).",
            _misses("3sigma-no-dist"),
            _misses("point-real"),
        ),
        Claim(
            "Without distributions more deadlines are missed than with them (3SigmaNoDist against "
            "3Sigma).",
            _misses("3sigma"),
            _misses("3sigma-no-dist"),
        ),
        Claim(
            "Distributions alone drop misses to the level of PointPerfEst (3SigmaNoOE; taken as: "
            "within 3 points).",
            _misses("3sigma-no-oe"),
            _misses("point-perfect"),
            margin=0.03,
        ),
        Claim(
            "Distributions alone miss fewer deadlines than PointRealEst (3SigmaNoOE).",
            _misses("3sigma-no-oe"),
            _misses("point-real"),
        ),
        Claim(
            "Blind over-estimate handling misses fewest at the smallest slack (3SigmaNoAdapt "
            "against 3Sigma).",
            _misses("3sigma-no-adapt", tightest),
            _misses("3sigma", tightest),
        ),
        Claim(
            "Blind over-estimate handling costs best-effort goodput (3SigmaNoAdapt against "
            "3Sigma).",
            Mean(sigma.BEST_EFFORT.name, "3sigma-no-adapt"),
            Mean(sigma.BEST_EFFORT.name, "3sigma"),
        ),
        Claim(
            "3Sigma misses at least 60 % fewer deadlines than PointRealEst.",
            _misses("3sigma"),
            _misses("point-real"),
            factor=0.4,
        ),
    )


def _slack_claims(tightest: float, loosest: float) -> tuple[Claim, ...]:
    return tuple(
        claim
        for system in ("3sigma", "point-perfect", "point-real")
        for claim in (
            Claim(
                f"Misses fall with slack ({system}).",
                _misses(system, loosest),
                _misses(system, tightest),
            ),
            Claim(
                f"Best-effort goodput falls with slack ({system}).",
                Mean(sigma.BEST_EFFORT.name, system, x=(loosest,)),
                Mean(sigma.BEST_EFFORT.name, system, x=(tightest,)),
            ),
        )
    )
