"""Study ``distsched-cluster-size``: the same jobs on smaller and larger clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from foresail.model.registry import register
from foresail_studies.distsched import _shared as distsched
from foresail_studies.study import Bound, Mean, Study


@dataclass(frozen=True, slots=True)
class ClusterSizeParameters(distsched.DistSchedStudyParameters):
    """Parameters of ``distsched-cluster-size``."""

    QUICK: ClassVar[Mapping[str, str]] = {
        **distsched.DistSchedStudyParameters.QUICK,
        "seeds": "3",
        "sizes": "[70,100,130]",
    }
    QUICK_MINUTES: ClassVar[float] = 5.0
    FULL_MINUTES: ClassVar[float] = 3000.0

    sizes: tuple[int, ...] = (50, 100, 300, 500, 700, 900, 1100)
    """Numbers of machines that the same jobs run on."""


@register("study", "distsched-cluster-size", parameters=ClusterSizeParameters)
def cluster_size(parameters: ClusterSizeParameters) -> Study:
    """The same jobs on smaller and larger clusters (figure 5.9)."""
    return distsched.study_of(
        "What happens on smaller and larger clusters?",
        "figure 5.9",
        distsched.cases_of(parameters, distsched.MAIN, "machines", parameters.sizes),
        _claims(float(min(parameters.sizes)), float(max(parameters.sizes))),
        axis="machines",
        drawn=(*distsched.DRAWN, distsched.NEVER, distsched.LATENCY),
    )


def _claims(least: float, most: float) -> dict[str, Bound]:
    def at(measure: str, system: str, size: float) -> Mean:
        return Mean(measure, system, x=(size,))

    grows = (distsched.SLO_GOODPUT, distsched.BEST_EFFORT, distsched.LATENCY)
    return {
        **{
            f"Fewer deadlines are missed on more machines ({system}).": Bound(
                at(distsched.MISSES.name, system, most), at(distsched.MISSES.name, system, least)
            )
            for system in distsched.MAIN
        },
        **{
            f"Dist misses fewer deadlines than Point on {size:g} machines.": at(
                distsched.MISSES.name, distsched.DIST, size
            ).against(distsched.POINT)
            for size in dict.fromkeys((least, most))
        },
        **{
            f"It grows with the cluster: {measure.label} (Dist).": Bound(
                at(measure.name, distsched.DIST, least), at(measure.name, distsched.DIST, most)
            )
            for measure in grows
        },
    }
