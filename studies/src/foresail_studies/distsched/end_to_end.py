"""Study ``distsched-end-to-end``: DistSched against points, requests and real averages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from foresail.model.registry import register
from foresail_studies.distsched import _shared as distsched
from foresail_studies.study import Bound, Mean, Study


@dataclass(frozen=True, slots=True)
class DistSchedEndToEndParameters(distsched.DistSchedStudyParameters):
    """Parameters of ``distsched-end-to-end``."""

    QUICK_MINUTES: ClassVar[float] = 3.0


@register("study", "distsched-end-to-end", parameters=DistSchedEndToEndParameters)
def end_to_end(parameters: DistSchedEndToEndParameters) -> Study:
    """DistSched against points, requests and real averages (figures 5.5 and 5.6)."""
    return distsched.study_of(
        "Do distributions of use keep more deadlines on shared machines?",
        "figures 5.5 and 5.6",
        distsched.cases_of(parameters, distsched.MAIN),
        _claims(),
    )


def _claims() -> dict[str, Bound]:
    misses = Mean(distsched.MISSES.name, distsched.DIST)
    goodput = Mean(distsched.GOODPUT.name, distsched.REQUEST)
    latency = Mean(distsched.LATENCY.name, distsched.DIST)
    return {
        "Dist misses at least 40 % fewer deadlines than Point (published: 49 % "
        "fewer; Point 2.15 to 2.2 times as many).": misses.against(distsched.POINT, factor=0.6),
        "Dist misses fewer deadlines than Request.": misses.against(distsched.REQUEST),
        "Dist approaches Actual in deadlines missed (taken as: within 5 points).": misses.against(
            distsched.ACTUAL, margin=0.05
        ),
        "Request misses about as many deadlines as Point (taken as: at most 5 points "
        "fewer).": distsched.MISSES.of(distsched.POINT).against(distsched.REQUEST, margin=0.05),
        "More work of jobs with deadlines gets done in time than "
        "under Point (by 5 %).": distsched.SLO_GOODPUT.of(distsched.POINT).against(distsched.DIST),
        "Request gets less done than Point.": goodput.against(distsched.POINT),
        "Point does more best-effort work than Dist.": distsched.BEST_EFFORT.of(
            distsched.DIST
        ).against(distsched.POINT),
        "Best-effort latency is similar for all "
        "(taken as: Dist's within 10 % of Point's).": latency.against(distsched.POINT, factor=1.1),
        "Under Dist more tasks are evicted than under Actual.": distsched.EVICTIONS.of(
            distsched.ACTUAL
        ).against(distsched.DIST),
        "Under Point more jobs with deadlines never start than under Dist.": distsched.NEVER.of(
            distsched.DIST
        ).against(distsched.POINT),
    }
