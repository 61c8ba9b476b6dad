"""Study ``3sigma-attribution``: what each of 3Sigma's techniques gives, by deadline slack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.model.registry import register
from foresail_studies.study import Bound, Study, published
from foresail_studies.three_sigma import _shared as three_sigma
from foresail_studies.trial_grid import TrialSetting, cases_of, named

_SYSTEMS: Final = (
    *(
        three_sigma.SIGMA,
        "3sigma-no-dist-published",
        "3sigma-no-oe-published",
        "3sigma-no-adapt-published",
    ),
    *(three_sigma.PERFECT, three_sigma.POINTS),
)


@dataclass(frozen=True, slots=True)
class AttributionParameters(three_sigma.E2EStudyParameters):
    """Parameters of ``3sigma-attribution``."""

    QUICK: ClassVar[dict[str, str]] = {
        **three_sigma.QUICK,
        "seeds": "3",
        "slack_percents": "[20,60,140]",
    }
    QUICK_MINUTES: ClassVar[float] = 5.0
    FULL_MINUTES: ClassVar[float] = 240.0

    slack_percents: tuple[float, ...] = tuple(range(20, 200, 20))
    """Slacks of the deadlines, each for all jobs of a run."""


@register("study", "3sigma-attribution", parameters=AttributionParameters)
def attribution(parameters: AttributionParameters) -> Study:
    """Measure the gain of each of 3Sigma's techniques, over deadline slack (figure 4.8)."""
    settings = [_setting(parameters, slack) for slack in parameters.slack_percents]
    tightest, loosest = min(parameters.slack_percents), max(parameters.slack_percents)
    return Study(
        title="What does each of 3Sigma's techniques give?",
        source=f"{three_sigma.SOURCE}, figure 4.8",
        axis="deadline slack (%)",
        measures=three_sigma.MEASURES,
        drawn=three_sigma.DRAWN,
        cases=tuple(cases_of(parameters, settings, named(*_SYSTEMS))),
        claims=published(_claims(tightest), *_slack_claims(tightest, loosest)),
        notes=three_sigma.notes_of(parameters),
    )


def _setting(parameters: AttributionParameters, slack: float) -> TrialSetting:
    workload = three_sigma.recipe(parameters, "deadline", f",slack_percent={slack:g}")
    return TrialSetting(workload, three_sigma.history_of(workload, parameters), "DEADLINE-n", slack)


def _claims(tightest: float) -> dict[str, Bound]:
    return {
        "Handling over-estimates alone misses fewer "
        "deadlines than PointRealEst (3SigmaNoDist).": three_sigma.misses(
            "3sigma-no-dist-published"
        ).against(three_sigma.POINTS),
        "Without distributions more deadlines are missed than with them (3SigmaNoDist against "
        "3Sigma).": three_sigma.misses(three_sigma.SIGMA).against("3sigma-no-dist-published"),
        "Distributions alone drop misses to the level of PointPerfEst (3SigmaNoOE; taken as: "
        "within 3 points).": three_sigma.misses("3sigma-no-oe-published").against(
            three_sigma.PERFECT, margin=0.03
        ),
        "Distributions alone miss fewer deadlines than PointRealEst "
        "(3SigmaNoOE).": three_sigma.misses("3sigma-no-oe-published").against(three_sigma.POINTS),
        "Blind over-estimate handling misses fewest at the smallest slack (3SigmaNoAdapt against "
        "3Sigma).": three_sigma.misses("3sigma-no-adapt-published", tightest).against(
            three_sigma.SIGMA
        ),
        "Blind over-estimate handling costs best-effort "
        "goodput (3SigmaNoAdapt against 3Sigma).": three_sigma.BEST_EFFORT.of(
            "3sigma-no-adapt-published"
        ).against(three_sigma.SIGMA),
        "3Sigma misses at least 60 % fewer deadlines than PointRealEst.": three_sigma.misses(
            three_sigma.SIGMA
        ).against(three_sigma.POINTS, factor=0.4),
    }


def _slack_claims(tightest: float, loosest: float) -> list[dict[str, Bound]]:
    return [
        {
            f"Misses fall with slack ({system}).": Bound(
                three_sigma.misses(system, loosest), three_sigma.misses(system, tightest)
            ),
            f"Best-effort goodput falls with slack ({system}).": Bound(
                three_sigma.BEST_EFFORT.of(system, loosest),
                three_sigma.BEST_EFFORT.of(system, tightest),
            ),
        }
        for system in (three_sigma.SIGMA, three_sigma.PERFECT, three_sigma.POINTS)
    ]
