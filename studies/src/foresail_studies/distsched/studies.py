"""Studies of DistSched: systems, techniques, maxima, cluster size, cycle time; how they are run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.model.registry import register
from foresail_studies.declaring import declared
from foresail_studies.study import GridPoint, Measure, Study, StudyParameters, points_at
from foresail_studies.trial import SharedTrial

_GROUP: Final = "shared machines"
MAIN: Final = ("dist", "actual", "point", "request")
MEASURES: Final = (
    Measure("slo_miss_rate", "deadlines missed", "share"),
    Measure("slo_never_started", "jobs with deadlines never started"),
    Measure("used_hours_by_the_end", "goodput (core hours)"),
    Measure("slo_used_hours", "goodput of deadlines met (core hours)"),
    Measure("best_effort_used_hours_by_the_end", "best-effort goodput (core hours)"),
    Measure("best_effort_latency_seconds", "best-effort latency", "duration"),
    Measure("unfinished_jobs", "jobs never done"),
    Measure("throttles_per_machine_hour", "throttles per machine and hour"),
    Measure("memory_evictions", "tasks evicted"),
    Measure("preemptions", "tasks stopped"),
    Measure("cycle_cpu_milliseconds_median", "median cycle (ms)"),
    Measure("cycle_cpu_milliseconds_p99", "99 % of cycles below (ms)"),
    Measure("cycle_cpu_milliseconds_max", "slowest cycle (ms)"),
    Measure("cycle_milliseconds_p99", "99 % of cycles below, by the clock (ms)"),
)


@dataclass(frozen=True, slots=True)
class DistSchedStudyParameters(
    StudyParameters, quick="seeds=5 machines=100 jobs=100", minutes=(4, 600)
):
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


_TECHNIQUES: Final = ("no-dist", "no-pack", "no-over", "no-obs", "no-preempt")


@register("study", "distsched-end-to-end", parameters=DistSchedStudyParameters)
def end_to_end(parameters: DistSchedStudyParameters) -> Study:
    """DistSched against points, requests and real averages (figures 5.5 and 5.6)."""
    return declared("distsched-end-to-end", MEASURES, cases_of(parameters, MAIN))


@register("study", "distsched-maxima", parameters=DistSchedStudyParameters)
def maxima(parameters: DistSchedStudyParameters) -> Study:
    """Planning with what tasks use at most (figures 5.5 and 5.6, systems named Max)."""
    systems = ("dist", "dist-max", "actual", "actual-max", "point", "point-max")
    return declared("distsched-maxima", MEASURES, cases_of(parameters, systems))


@register("study", "distsched-attribution", parameters=DistSchedStudyParameters)
def attribution(parameters: DistSchedStudyParameters) -> Study:
    """Measure the gain of each of DistSched's techniques (figures 5.7 and 5.8)."""
    systems = ("dist", *(f"dist-{each}" for each in _TECHNIQUES), "point")
    return declared("distsched-attribution", MEASURES, cases_of(parameters, systems))


@dataclass(frozen=True, slots=True)
class ClusterSizeParameters(
    DistSchedStudyParameters, quick="seeds=3 sizes=[70,100,130]", minutes=(5, 3000)
):
    """Parameters of ``distsched-cluster-size``."""

    sizes: tuple[int, ...] = (50, 100, 300, 500, 700, 900, 1100)
    """Numbers of machines that the same jobs run on."""


@register("study", "distsched-cluster-size", parameters=ClusterSizeParameters)
def cluster_size(parameters: ClusterSizeParameters) -> Study:
    """The same jobs on smaller and larger clusters (figure 5.9)."""
    sizes = parameters.sizes
    cases = cases_of(parameters, MAIN, "machines", sizes)
    return declared("distsched-cluster-size", MEASURES, cases, least=min(sizes), most=max(sizes))


@register("study", "distsched-cycle-time", parameters=DistSchedStudyParameters)
def cycle_time(parameters: DistSchedStudyParameters) -> Study:
    """Measure the cost of planning with distributions of use (figure 5.10)."""
    cases = cases_of(parameters, MAIN)
    tenth = f"{100.0 * parameters.cycle_seconds:g}"
    return declared("distsched-cycle-time", MEASURES, cases, tenth=tenth)
