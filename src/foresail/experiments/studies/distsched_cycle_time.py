"""Study ``distsched-cycle-time``: what planning with distributions of use costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.experiments.studies import _distsched as distsched
from foresail.experiments.study import Mean, Measure, PublishedClaim, Study
from foresail.model.registry import register

_GROUP: Final = "shared machines"
_SLOWEST: Final = Measure("cycle_milliseconds_max", "slowest cycle (ms)")


@dataclass(frozen=True, slots=True)
class CycleTimeParameters(distsched.DistSchedStudyParameters):
    """Parameters of ``distsched-cycle-time``."""

    QUICK: ClassVar[dict[str, str]] = distsched.QUICK
    QUICK_MINUTES: ClassVar[float] = 2.0


@register("study", "distsched-cycle-time", parameters=CycleTimeParameters)
def cycle_time(parameters: CycleTimeParameters) -> Study:
    """What planning with distributions of use costs (figure 5.10)."""
    slow = Mean(distsched.SLOW_CYCLE.name, distsched.DIST)
    return Study(
        title="What does planning with distributions of use cost?",
        source=f"{distsched.SOURCE}, figure 5.10",
        axis="",
        measures=(distsched.CYCLE, distsched.SLOW_CYCLE, _SLOWEST, distsched.PREEMPTIONS),
        drawn=(distsched.CYCLE.name, distsched.SLOW_CYCLE.name),
        cases=tuple(distsched.cases_of(parameters, _GROUP, distsched.MAIN)),
        claims=(
            PublishedClaim(
                "A cycle takes moderately longer than with points (taken as: 99 % of cycles within "
                "five times as long).",
                *slow.against(distsched.POINT),
                factor=5.0,
            ),
            PublishedClaim(
                "99 % of cycles take far less time than lies between them (taken as: a tenth).",
                slow,
                100.0 * parameters.cycle_seconds,
            ),
        ),
        notes=(
            *distsched.NOTES,
            "Latencies are those of the machine that ran the study, with as many runs at once as "
            "it has processors; aggregates of use and expected utility, which the publication "
            "shows apart, are one figure here.",
        ),
    )
