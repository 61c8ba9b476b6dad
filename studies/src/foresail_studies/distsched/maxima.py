"""Study ``distsched-maxima``: planning with what tasks use at most instead of on average."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.model.registry import register
from foresail_studies.distsched import _shared as distsched
from foresail_studies.study import Mean, Study

_SYSTEMS: Final = (
    *(distsched.DIST, "dist-max", distsched.ACTUAL, "actual-max", distsched.POINT, "point-max"),
)


@dataclass(frozen=True, slots=True)
class MaximaParameters(distsched.DistSchedStudyParameters):
    """Parameters of ``distsched-maxima``."""

    QUICK_MINUTES: ClassVar[float] = 3.0


@register("study", "distsched-maxima", parameters=MaximaParameters)
def maxima(parameters: MaximaParameters) -> Study:
    """Planning with what tasks use at most (figures 5.5 and 5.6, systems named Max)."""
    misses = Mean(distsched.MISSES.name, "actual-max")
    return distsched.study_of(
        "Is it better to plan with what tasks use at most?",
        "figures 5.5 and 5.6",
        distsched.cases_of(parameters, _SYSTEMS),
        {
            "ActualMax misses slightly fewer deadlines than Actual.": misses.against(
                distsched.ACTUAL
            ),
            "PointMax misses far fewer deadlines than Point.": distsched.MISSES.of(
                "point-max"
            ).against(distsched.POINT),
            **{
                f"Cpus are throttled less by maxima ({maximum}).": distsched.THROTTLES.of(
                    maximum
                ).against(average)
                for maximum, average in (
                    ("actual-max", distsched.ACTUAL),
                    ("point-max", distsched.POINT),
                )
            },
            "PointMax does less best-effort work than Dist.": distsched.BEST_EFFORT.of(
                "point-max"
            ).against(distsched.DIST),
            "DistMax gets less done than Dist.": distsched.GOODPUT.of("dist-max").against(
                distsched.DIST
            ),
        },
    )
