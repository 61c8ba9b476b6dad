"""Study ``distsched-correlation``: is it worth knowing that tasks of one job use alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.experiments.studies import _distsched as distsched
from foresail.experiments.study import Bound, Study
from foresail.model.registry import register

_COMMON: Final = "dist-common"


@dataclass(frozen=True, slots=True)
class CorrelationParameters(distsched.DistSchedStudyParameters):
    """Parameters of ``distsched-correlation``."""

    QUICK_MINUTES: ClassVar[float] = 6.0

    correlations: tuple[float, ...] = (0.0, 0.5, 1.0)
    """Of what two tasks of a job use (its logarithm), in workloads."""


@register("study", "distsched-correlation", parameters=CorrelationParameters)
def correlation(parameters: CorrelationParameters) -> Study:
    """Aggregates of tasks with a common factor against independent ones (not published)."""
    systems = (distsched.DIST, _COMMON)
    return distsched.study_of(
        "Is it worth knowing that tasks of one job use alike?",
        "beyond equation 5.2, where tasks are independent",
        distsched.cases_of(parameters, systems, "use_correlation", parameters.correlations),
        {
            f"With a common factor {label} than without (not published; correlation {x:g}).": Bound(
                measure.of(_COMMON, x), measure.of(distsched.DIST, x)
            )
            for x in parameters.correlations
            for measure, label in (
                (distsched.MISSES, "no more deadlines are missed"),
                (distsched.EVICTIONS, "no more tasks are evicted"),
            )
        },
        axis="correlation of use",
        drawn=(*distsched.DRAWN, distsched.EVICTIONS),
    )
