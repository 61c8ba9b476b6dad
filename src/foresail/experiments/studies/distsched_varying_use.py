"""Study ``distsched-varying-use``: is it worth knowing that what tasks use depends on their age."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.experiments.studies import _distsched as distsched
from foresail.experiments.study import Bound, Study
from foresail.model.registry import register

_BY_AGE: Final = "dist-by-age"


@dataclass(frozen=True, slots=True)
class VaryingUseParameters(distsched.DistSchedStudyParameters):
    """Parameters of ``distsched-varying-use``."""

    QUICK: ClassVar[Mapping[str, str]] = {**distsched.DistSchedStudyParameters.QUICK, "seeds": "3"}
    QUICK_MINUTES: ClassVar[float] = 6.0

    contrasts: tuple[float, ...] = (1.0, 4.0)
    """How many times as much tasks use in one phase as in others, in workloads; 1: no phases."""


@register("study", "distsched-varying-use", parameters=VaryingUseParameters)
def varying_use(parameters: VaryingUseParameters) -> Study:
    """Use by the age of tasks against averages of their lives (not published)."""
    systems = (distsched.DIST, _BY_AGE, distsched.ACTUAL, distsched.POINT)
    return distsched.study_of(
        "Is it worth knowing that what tasks use depends on their age?",
        "beyond section 5.2, where use does not depend on time",
        distsched.cases_of(parameters, systems, "phase_contrast", parameters.contrasts),
        {
            f"By age {label} than by averages (not published; contrast {x:g}).": Bound(
                measure.of(_BY_AGE, x), measure.of(distsched.DIST, x)
            )
            for x in parameters.contrasts
            for measure, label in (
                (distsched.MISSES, "no more deadlines are missed"),
                (distsched.THROTTLES, "no more tasks are throttled"),
                (distsched.EVICTIONS, "no more tasks are evicted"),
            )
        },
        axis="contrast of phases",
        drawn=(*distsched.DRAWN, distsched.EVICTIONS),
        notes=(
            "Phases: a task loads for 20 to 50 % of its runtime (which share, its application "
            "says), then computes, then writes. The contrast is how many times as much memory it "
            "holds while it loads, and how many times as many cpus it uses while it computes. "
            "Averages over lives are as without phases, and all that Actual knows.",
            "By age: four equal parts of a task's life; risks now, and 5, 15 and 45 minutes ahead.",
        ),
    )
