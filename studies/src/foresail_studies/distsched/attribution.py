"""Study ``distsched-attribution``: what each of DistSched's techniques gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.model.registry import register
from foresail_studies.distsched import _shared as distsched
from foresail_studies.study import Bound, Mean, Study

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
    """Measure the gain of each of DistSched's techniques (figures 5.7 and 5.8)."""
    return distsched.study_of(
        "What does each of DistSched's techniques give?",
        "figures 5.7 and 5.8",
        distsched.cases_of(parameters, _SYSTEMS),
        _claims(),
    )


def _claims() -> dict[str, Bound]:
    misses = Mean(distsched.MISSES.name, distsched.DIST)
    return {
        "Without distributions more deadlines are missed (NoDist, by 18 %).": misses.against(
            _NO_DIST
        ),
        "Without distributions less work is done "
        "in time (NoDist, by 15 %).": distsched.SLO_GOODPUT.of(_NO_DIST).against(distsched.DIST),
        "Without over-packing slightly fewer deadlines are missed (NoPack).": distsched.MISSES.of(
            _NO_PACK
        ).against(distsched.DIST),
        "Without over-packing less work is done "
        "in time (NoPack, by 7 %).": distsched.SLO_GOODPUT.of(_NO_PACK).against(distsched.DIST),
        "Without over-estimate handling more deadlines are "
        "missed than by Point (NoOver).": distsched.MISSES.of(distsched.POINT).against(_NO_OVER),
        "Without observed use as many deadlines are missed (NoObs; taken as: at "
        "most 3 points more).": distsched.MISSES.of(_NO_OBS).against(distsched.DIST, margin=0.03),
        "Without preemption as many deadlines are missed (NoPreempt; taken as: at most "
        "3 points more).": distsched.MISSES.of(_NO_PREEMPT).against(distsched.DIST, margin=0.03),
        "Without preemption cpus are throttled more (NoPreempt).": distsched.THROTTLES.of(
            distsched.DIST
        ).against(_NO_PREEMPT),
    }
