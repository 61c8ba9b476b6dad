"""Shared parts of the studies of 3Sigma: systems, measures, and how a run is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from foresail_studies import trial as grid
from foresail_studies.study import Mean, Measure
from foresail_studies.trial import TrialParameters, beginning_of

MISSES: Final = Measure("slo_miss_rate", "deadlines missed", "share")
GOODPUT: Final = Measure("goodput_hours_by_the_end", "goodput (node hours)")
SLO_GOODPUT: Final = Measure("slo_on_time_goodput_hours", "goodput of deadlines met (node hours)")
BEST_EFFORT: Final = Measure(
    "best_effort_goodput_hours_by_the_end", "best-effort goodput (node hours)"
)

MEASURES: Final = (
    *(MISSES, GOODPUT, SLO_GOODPUT, BEST_EFFORT),
    *(grid.LATENCY, grid.BEST_EFFORT_JOBS, grid.PREEMPTIONS, grid.CYCLE, grid.SLOW_CYCLE),
)
DRAWN: Final = (MISSES.name, GOODPUT.name, BEST_EFFORT.name, grid.LATENCY.name)

SOURCE: Final = "3Sigma (J. W. Park, Distribution-based cluster scheduling, 2019)"

SIGMA: Final = "3sigma-published"
PERFECT: Final = "point-perfect-published"
POINTS: Final = "point-real-published"
PRIORITY: Final = "prio"
MAIN: Final = (SIGMA, PERFECT, POINTS, PRIORITY)
"""The systems as published: they drop jobs whose deadline is out of reach."""
OURS: Final = ("3sigma", "point-perfect", "point-real")
"""The same, with jobs that have become hopeless run on leftovers: our own default."""

DROPPING: Final = (
    "Systems named -published drop jobs whose deadline is out of reach, as the published ones do; "
    "those without run them on nodes that no other job wants, which is our default."
)
CHOSEN: Final = (
    "Not published, and chosen: plan-ahead window (24 slots of 60 s), value of a deadline (1000 "
    "best-effort jobs), cost of stopping a job, threshold of the over-estimate handling (0.05), "
    "Prio's rules. Cycles longer than the published 1 to 2 s cost short jobs with tight deadlines "
    "theirs, under all systems alike."
)

GOODPUT_NOTE: Final = (
    "Goodput: nominal node hours of jobs done when the last one is submitted; a simulation goes on "
    "until all is done."
)

_JOB_NAMES: Final = 1_500
_JOB_NODE_HOURS: Final = 1.19
"""Of the generators' built-in population: names that jobs have, and a job's mean work."""


@dataclass(frozen=True, slots=True)
class ThreeSigmaParameters(TrialParameters):
    """Parameters that the studies of 3Sigma share."""

    POSITIVE: ClassVar[tuple[str, ...]] = (*TrialParameters.POSITIVE, "nodes")

    nodes: int = 256
    """The machine."""


@dataclass(frozen=True, slots=True)
class E2EStudyParameters(
    ThreeSigmaParameters, quick="seeds=4 hours=1 discarded_hours=0 cycle_seconds=5"
):
    """Parameters of the studies on the E2E recipe; the defaults are as published."""

    POSITIVE: ClassVar[tuple[str, ...]] = (
        *ThreeSigmaParameters.POSITIVE,
        "history_runs_per_name",
        "load",
    )

    history_runs_per_name: float = 100.0
    """From how many runs of each job name, on average, predictors have learned before."""
    load: float = 1.4
    """Offered load, half of it from jobs with deadlines."""
    slack_percents: tuple[float, ...] = (20.0, 40.0, 60.0, 80.0)
    """Slacks of the deadlines, each as likely."""
    slowdown: float = 1.5
    """How many times longer a job runs on nodes that it does not prefer."""


def misses(system: str, *x: float, group: str | None = None) -> Mean:
    """The share of deadlines missed by a system."""
    return Mean(MISSES.name, system, group, x)


def recipe(parameters: E2EStudyParameters, generator: str = "e2e", more: str = "") -> str:
    """Short form of a generator of the E2E recipe, as the study's parameters say; for the run.

    ``more`` are further settings, each after a comma. The generator ``deadline`` has one slack for
    all jobs, which has to be among them.
    """
    slacks = ",".join(f"{slack:g}" for slack in parameters.slack_percents)
    several = "" if generator == "deadline" else f",slack_percents=[{slacks}]"
    size = f"hours={parameters.hours:g},nodes={parameters.nodes},load={parameters.load:g}"
    return f"{generator}({size}{several},slowdown_elsewhere={parameters.slowdown:g}{more})"


def history_of(workload: str, parameters: E2EStudyParameters) -> str:
    """The history that belongs to a run of the E2E recipe: earlier jobs of the same classes."""
    jobs_per_hour = parameters.load * parameters.nodes / _JOB_NODE_HOURS
    hours = parameters.history_runs_per_name * _JOB_NAMES / jobs_per_hour
    return f"{workload[:-1]},history_hours={hours:.6g},part=history)"


def notes_of(parameters: E2EStudyParameters) -> tuple[str, ...]:
    """Return where the E2E studies differ from the published ones, and what is left open."""
    return (
        DROPPING,
        GOODPUT_NOTE,
        "Stated by the publication, and so the default here: deadlines with a slack of 20, 40, 60 "
        "or 80 %, runs 1.5 times as long off the preferred 75 % of nodes, a load of 1.4, five "
        "hours, estimates of a steady state (taken as: predictors have learned from 100 runs of "
        "each job name).",
        beginning_of(parameters),
        CHOSEN,
        "The workload is made from published characteristics of Google's trace of 2011, not from "
        "the trace; predictors learn from a history of the same job classes first.",
    )
