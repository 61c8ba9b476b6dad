"""What the studies of 3Sigma have in common: systems, measures, and how a run is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.experiments.study import Measure, StudyParameters

MISSES: Final = Measure("slo_miss_rate", "deadlines missed", "share")
GOODPUT: Final = Measure("goodput_hours_by_the_end", "goodput (node hours)")
SLO_GOODPUT: Final = Measure("slo_on_time_goodput_hours", "goodput of deadlines met (node hours)")
BEST_EFFORT: Final = Measure(
    "best_effort_goodput_hours_by_the_end", "best-effort goodput (node hours)"
)
LATENCY: Final = Measure("best_effort_latency_seconds", "best-effort latency", "duration")
BEST_EFFORT_JOBS: Final = Measure(
    "best_effort_completed_by_the_end", "best-effort jobs done by the last submission"
)
PREEMPTIONS: Final = Measure("preemptions", "jobs stopped")
CYCLE: Final = Measure("cycle_milliseconds_median", "median cycle (ms)")
SLOW_CYCLE: Final = Measure("cycle_milliseconds_p99", "99 % of cycles below (ms)")

MEASURES: Final = (
    *(MISSES, GOODPUT, SLO_GOODPUT, BEST_EFFORT, LATENCY, BEST_EFFORT_JOBS, PREEMPTIONS),
    *(CYCLE, SLOW_CYCLE),
)
DRAWN: Final = (MISSES.name, GOODPUT.name, BEST_EFFORT.name, LATENCY.name)

MAIN: Final = ("3sigma", "point-perfect", "point-real", "prio")

NOTES: Final = (
    "Goodput: nominal node hours of jobs done when the last one is submitted; a simulation goes on "
    "until all is done, and jobs past their deadline run on nodes that nobody else wants, while "
    "the published systems drop them.",
    "Not published, and chosen: plan-ahead window (24 slots of 60 s), value of a deadline (1000 "
    "best-effort jobs), cost of stopping a job, threshold of the over-estimate handling (0.05), "
    "Prio's rules. Cycles longer than the published 1 to 2 s cost short jobs with tight deadlines "
    "theirs, under all systems alike.",
    "The workload is made from published characteristics of Google's trace of 2011, not from the "
    "trace; predictors learn from a history of the same job classes first.",
)


@dataclass(frozen=True, slots=True)
class ThreeSigmaParameters(StudyParameters):
    """What the studies of 3Sigma on 256 nodes have in common.

    Parameters
    ----------
    hours, history_hours
        Length of the run, and of what predictors learn from before it.
    nodes
        The machine.
    cycle_seconds
        How often the scheduler is asked.
    """

    POSITIVE: ClassVar[tuple[str, ...]] = ("hours", "history_hours", "nodes", "cycle_seconds")

    hours: float = 5.0
    history_hours: float = 10.0
    nodes: int = 256
    cycle_seconds: float = 2.0


QUICK: Final = {
    "seeds": "4",
    "hours": "1",
    "cycle_seconds": "5",
}


def recipe(parameters: ThreeSigmaParameters, generator: str = "e2e", settings: str = "") -> str:
    """Short form of a generator of the E2E recipe, of this study's size; for the run."""
    size = f"hours={parameters.hours:g},nodes={parameters.nodes}"
    return f"{generator}({size},history_hours={parameters.history_hours:g}{settings})"


def history_of(workload: str) -> str:
    """The history that belongs to a workload's short form."""
    return f"{workload[:-1]},part=history)"
