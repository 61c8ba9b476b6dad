"""Study ``distsched-cycle-time``: what planning with distributions of use costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.model.registry import register
from foresail_studies.distsched import _shared as distsched
from foresail_studies.study import Bound, Mean, Measure, Study

_MEDIAN: Final = Measure("cycle_cpu_milliseconds_median", "median cycle (ms)")
_SLOW: Final = Measure("cycle_cpu_milliseconds_p99", "99 % of cycles below (ms)")
_SLOWEST: Final = Measure("cycle_cpu_milliseconds_max", "slowest cycle (ms)")
_BY_CLOCK: Final = Measure("cycle_milliseconds_p99", "99 % of cycles below, by the clock (ms)")


@dataclass(frozen=True, slots=True)
class CycleTimeParameters(distsched.DistSchedStudyParameters):
    """Parameters of ``distsched-cycle-time``."""

    QUICK_MINUTES: ClassVar[float] = 2.0


@register("study", "distsched-cycle-time", parameters=CycleTimeParameters)
def cycle_time(parameters: CycleTimeParameters) -> Study:
    """Measure the cost of planning with distributions of use (figure 5.10)."""
    slow = Mean(_SLOW.name, distsched.DIST)
    return distsched.study_of(
        "What does planning with distributions of use cost?",
        "figure 5.10",
        distsched.cases_of(parameters, distsched.MAIN),
        {
            "A cycle takes moderately longer than with points (taken as: "
            "99 % of cycles within five times as long).": slow.against(distsched.POINT, factor=5.0),
            "99 % of cycles take far less time than lies between them (taken as: a tenth).": Bound(
                slow, 100.0 * parameters.cycle_seconds
            ),
            "99 % of cycles take less than 200 ms (not published).": Bound(slow, 200.0),
        },
        measures=(_MEDIAN, _SLOW, _SLOWEST, _BY_CLOCK, distsched.PREEMPTIONS),
        drawn=(_MEDIAN, _SLOW),
        notes=(
            "Cycles in processor time, but where it is said that they are by the clock: that is of "
            "the machine that ran the study, and of what else it had to do. Asking the simulator "
            "what tasks use is part of a cycle. Aggregates of use and expected utility, which the "
            "publication shows apart, are one figure here.",
        ),
    )
