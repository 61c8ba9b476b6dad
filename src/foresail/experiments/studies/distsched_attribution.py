"""Study ``distsched-attribution``: what each of DistSched's techniques gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.experiments.studies import _distsched as distsched
from foresail.experiments.study import Mean, PublishedClaim, Study
from foresail.model.registry import register

_NO_DIST: Final = "dist-no-dist"
_NO_PACK: Final = "dist-no-pack"
_NO_OVER: Final = "dist-no-over"
_NO_OBS: Final = "dist-no-obs"
_NO_PREEMPT: Final = "dist-no-preempt"
_SYSTEMS: Final = (
    *(distsched.DIST, _NO_DIST, _NO_PACK, _NO_OVER, _NO_OBS, _NO_PREEMPT, distsched.POINT),
)


@dataclass(frozen=True, slots=True)
class DistSchedAttributionParameters(distsched.DistSchedStudyParameters):
    """Parameters of ``distsched-attribution``."""

    QUICK_MINUTES: ClassVar[float] = 5.0


@register("study", "distsched-attribution", parameters=DistSchedAttributionParameters)
def attribution(parameters: DistSchedAttributionParameters) -> Study:
    """What each of DistSched's techniques gives (figures 5.7 and 5.8)."""
    return distsched.study_of(
        "What does each of DistSched's techniques give?",
        "figures 5.7 and 5.8",
        distsched.cases_of(parameters, _SYSTEMS),
        _claims(),
    )


def _claims() -> tuple[PublishedClaim, ...]:
    misses = Mean(distsched.MISSES.name, distsched.DIST)
    return (
        PublishedClaim(
            "Without distributions more deadlines are missed (NoDist, by 18 %).",
            *misses.against(_NO_DIST),
        ),
        PublishedClaim(
            "Without distributions less work is done in time (NoDist, by 15 %).",
            *Mean(distsched.SLO_GOODPUT.name, _NO_DIST).against(distsched.DIST),
        ),
        PublishedClaim(
            "Without over-packing slightly fewer deadlines are missed (NoPack).",
            *Mean(distsched.MISSES.name, _NO_PACK).against(distsched.DIST),
        ),
        PublishedClaim(
            "Without over-packing less work is done in time (NoPack, by 7 %).",
            *Mean(distsched.SLO_GOODPUT.name, _NO_PACK).against(distsched.DIST),
        ),
        PublishedClaim(
            "Without over-estimate handling more deadlines are missed than by Point (NoOver).",
            *Mean(distsched.MISSES.name, distsched.POINT).against(_NO_OVER),
        ),
        PublishedClaim(
            "Without observed use as many deadlines are missed (NoObs; taken as: at most 3 points "
            "more).",
            *Mean(distsched.MISSES.name, _NO_OBS).against(distsched.DIST),
            margin=0.03,
        ),
        PublishedClaim(
            "Without preemption as many deadlines are missed (NoPreempt; taken as: at most 3 "
            "points more).",
            *Mean(distsched.MISSES.name, _NO_PREEMPT).against(distsched.DIST),
            margin=0.03,
        ),
        PublishedClaim(
            "Without preemption cpus are throttled more (NoPreempt).",
            *Mean(distsched.THROTTLES.name, distsched.DIST).against(_NO_PREEMPT),
        ),
    )
