"""Shared parts of the studies of DistSched: systems, measures, and how a run is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from foresail_studies.study import (
    Bound,
    GridPoint,
    Measure,
    Study,
    StudyParameters,
    points_at,
    published,
)
from foresail_studies.trial import SharedTrial

_SOURCE: Final = "DistSched (J. W. Park, Distribution-based cluster scheduling, 2019)"
_GROUP: Final = "shared machines"

MISSES: Final = Measure("slo_miss_rate", "deadlines missed", "share")
NEVER: Final = Measure("slo_never_started", "jobs with deadlines never started")
GOODPUT: Final = Measure("used_hours_by_the_end", "goodput (core hours)")
SLO_GOODPUT: Final = Measure("slo_used_hours", "goodput of deadlines met (core hours)")
BEST_EFFORT: Final = Measure(
    "best_effort_used_hours_by_the_end", "best-effort goodput (core hours)"
)
LATENCY: Final = Measure("best_effort_latency_seconds", "best-effort latency", "duration")
UNFINISHED: Final = Measure("unfinished_jobs", "jobs never done")
THROTTLES: Final = Measure("throttles_per_machine_hour", "throttles per machine and hour")
EVICTIONS: Final = Measure("memory_evictions", "tasks evicted")
PREEMPTIONS: Final = Measure("preemptions", "tasks stopped")

MEASURES: Final = (
    *(MISSES, NEVER, GOODPUT, SLO_GOODPUT, BEST_EFFORT, LATENCY, UNFINISHED),
    *(THROTTLES, EVICTIONS, PREEMPTIONS),
)
DRAWN: Final = (MISSES, SLO_GOODPUT, BEST_EFFORT, THROTTLES)

DIST: Final = "dist"
ACTUAL: Final = "actual"
POINT: Final = "point"
REQUEST: Final = "request"
MAIN: Final = (DIST, ACTUAL, POINT, REQUEST)


@dataclass(frozen=True, slots=True)
class DistSchedStudyParameters(StudyParameters, quick="seeds=5 machines=100 jobs=100"):
    """Parameters that the studies of DistSched share; the defaults are as published."""

    POSITIVE: ClassVar[tuple[str, ...]] = (
        *("machines", "jobs", "load", "history_hours", "cycle_seconds"),
    )

    seeds: int = 10
    """How many workloads; the published ones differ in deadlines alone, these in all of the
    jobs."""
    machines: int = 700
    jobs: int = 700
    """The cluster that the workload is made for, and how many jobs it has in two hours."""
    load: float = 0.8
    """Work that is used, as a share of that cluster."""
    history_hours: float = 20.0
    """Length of what predictors learn from before."""
    cycle_seconds: float = 15.0
    """How often the scheduler is asked."""


def cases_of(
    parameters: DistSchedStudyParameters,
    systems: Sequence[str],
    varied: str = "",
    values: Sequence[float] = (),
) -> list[GridPoint]:
    """Every system (a named policy) with every seed, at each value of what is varied, if anything.

    ``varied`` is ``machines``, how many the same jobs run on, or a further parameter of the
    workload; its values are x.
    """
    size = {"machines": parameters.machines, "jobs": parameters.jobs, "load": parameters.load}
    settings = {**size, "history_hours": parameters.history_hours}
    cycle = parameters.cycle_seconds
    cases = []
    for x in map(float, values) if varied else [None]:
        made, machines = settings, parameters.machines
        if varied == "machines" and x is not None:
            machines = round(x)
        elif x is not None:
            made = settings | {varied: x}
        run = f"packing({','.join(f'{name}={value:g}' for name, value in made.items())})"
        history = f"{run[:-1]},part=history)"
        for seed in range(parameters.seeds):
            tasks = {
                each: SharedTrial(run, history, seed, each, cycle, machines) for each in systems
            }
            cases += points_at(_GROUP, x, seed, tasks)
    return cases


def study_of(
    title: str,
    section: str,
    cases: Sequence[GridPoint],
    claims: Mapping[str, Bound],
    *,
    axis: str = "",
    measures: Sequence[Measure] = MEASURES,
    drawn: Sequence[Measure] = DRAWN,
    notes: Sequence[str] = (),
) -> Study:
    """A study of DistSched; ``section`` is where it is told of, and ``notes`` join those of all."""
    return Study(
        title=title,
        source=f"{_SOURCE}, {section}",
        axis=axis,
        measures=tuple(measures),
        drawn=tuple(each.name for each in drawn),
        cases=tuple(cases),
        claims=published(claims),
        notes=(*_NOTES, *notes),
    )


_NOTES: Final = (
    "Goodput: core hours that the tasks of completed jobs need by themselves. In all and of "
    "best-effort jobs it is of what was done when the last job was submitted; a simulation goes on "
    "until nothing more can run.",
    "The workload is made, not Google's: two hours of jobs of 20 users with three applications "
    "each, 1 to 400 tasks, requests twice the typical use; predictors learn from earlier jobs of "
    "the same applications first. Published repetitions share their jobs and differ in deadlines; "
    "here each seed has jobs of its own.",
    "Best-effort latency is of jobs that were done; systems that leave wide or hungry jobs undone "
    "have less of it.",
    "Not published, and chosen: risks of over-packing (cpu 0.10, memory 0.05), eviction at 95 % of "
    "memory, value of a deadline (1000 best-effort jobs), machines of 8 cpus and 48 GiB.",
)
