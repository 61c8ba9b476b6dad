"""Studies of DistSched: systems, techniques, maxima, cluster size, cycle time; how they are run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.model.registry import register
from foresail_studies.study import (
    Bound,
    GridPoint,
    Mean,
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
class DistSchedStudyParameters(
    StudyParameters, quick="seeds=5 machines=100 jobs=100", minutes=(3, 600)
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


_NO_DIST: Final = "dist-no-dist"
_NO_PACK: Final = "dist-no-pack"
_NO_OVER: Final = "dist-no-over"
_NO_OBS: Final = "dist-no-obs"
_NO_PREEMPT: Final = "dist-no-preempt"
_ATTRIBUTION_SYSTEMS: Final = (*(DIST, _NO_DIST, _NO_PACK, _NO_OVER, _NO_OBS, _NO_PREEMPT, POINT),)


@dataclass(frozen=True, slots=True)
class DistSchedAttributionParameters(DistSchedStudyParameters, minutes=(5, 600)):
    """Parameters of ``distsched-attribution``."""


@register("study", "distsched-attribution", parameters=DistSchedAttributionParameters)
def attribution(parameters: DistSchedAttributionParameters) -> Study:
    """Measure the gain of each of DistSched's techniques (figures 5.7 and 5.8)."""
    return study_of(
        "What does each of DistSched's techniques give?",
        "figures 5.7 and 5.8",
        cases_of(parameters, _ATTRIBUTION_SYSTEMS),
        _attribution_claims(),
    )


def _attribution_claims() -> dict[str, Bound]:
    misses = Mean(MISSES.name, DIST)
    return {
        "Without distributions more deadlines are missed (NoDist, by 18 %).": misses.against(
            _NO_DIST
        ),
        "Without distributions less work is done in time (NoDist, by 15 %).": SLO_GOODPUT.of(
            _NO_DIST
        ).against(DIST),
        "Without over-packing slightly fewer deadlines are missed (NoPack).": MISSES.of(
            _NO_PACK
        ).against(DIST),
        "Without over-packing less work is done in time (NoPack, by 7 %).": SLO_GOODPUT.of(
            _NO_PACK
        ).against(DIST),
        "Without over-estimate handling more deadlines are "
        "missed than by Point (NoOver).": MISSES.of(POINT).against(_NO_OVER),
        "Without observed use as many deadlines are missed (NoObs; taken as: at "
        "most 3 points more).": MISSES.of(_NO_OBS).against(DIST, margin=0.03),
        "Without preemption as many deadlines are missed (NoPreempt; taken as: at most "
        "3 points more).": MISSES.of(_NO_PREEMPT).against(DIST, margin=0.03),
        "Without preemption cpus are throttled more (NoPreempt).": THROTTLES.of(DIST).against(
            _NO_PREEMPT
        ),
    }


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
    return study_of(
        "What happens on smaller and larger clusters?",
        "figure 5.9",
        cases_of(parameters, MAIN, "machines", parameters.sizes),
        _cluster_size_claims(float(min(parameters.sizes)), float(max(parameters.sizes))),
        axis="machines",
        drawn=(*DRAWN, NEVER, LATENCY),
    )


def _cluster_size_claims(least: float, most: float) -> dict[str, Bound]:
    def at(measure: str, system: str, size: float) -> Mean:
        return Mean(measure, system, x=(size,))

    grows = (SLO_GOODPUT, BEST_EFFORT, LATENCY)
    return {
        **{
            f"Fewer deadlines are missed on more machines ({system}).": Bound(
                at(MISSES.name, system, most), at(MISSES.name, system, least)
            )
            for system in MAIN
        },
        **{
            f"Dist misses fewer deadlines than Point on {size:g} machines.": at(
                MISSES.name, DIST, size
            ).against(POINT)
            for size in dict.fromkeys((least, most))
        },
        **{
            f"It grows with the cluster: {measure.label} (Dist).": Bound(
                at(measure.name, DIST, least), at(measure.name, DIST, most)
            )
            for measure in grows
        },
    }


_MEDIAN: Final = Measure("cycle_cpu_milliseconds_median", "median cycle (ms)")
_SLOW: Final = Measure("cycle_cpu_milliseconds_p99", "99 % of cycles below (ms)")
_SLOWEST: Final = Measure("cycle_cpu_milliseconds_max", "slowest cycle (ms)")
_BY_CLOCK: Final = Measure("cycle_milliseconds_p99", "99 % of cycles below, by the clock (ms)")


@register("study", "distsched-cycle-time", parameters=DistSchedStudyParameters)
def cycle_time(parameters: DistSchedStudyParameters) -> Study:
    """Measure the cost of planning with distributions of use (figure 5.10)."""
    slow = Mean(_SLOW.name, DIST)
    return study_of(
        "What does planning with distributions of use cost?",
        "figure 5.10",
        cases_of(parameters, MAIN),
        {
            "A cycle takes moderately longer than with points (taken as: "
            "99 % of cycles within five times as long).": slow.against(POINT, factor=5.0),
            "99 % of cycles take far less time than lies between them (taken as: a tenth).": Bound(
                slow, 100.0 * parameters.cycle_seconds
            ),
            "99 % of cycles take less than 200 ms (not published).": Bound(slow, 200.0),
        },
        measures=(_MEDIAN, _SLOW, _SLOWEST, _BY_CLOCK, PREEMPTIONS),
        drawn=(_MEDIAN, _SLOW),
        notes=(
            "Cycles in processor time, but where it is said that they are by the clock: that is of "
            "the machine that ran the study, and of what else it had to do. Asking the simulator "
            "what tasks use is part of a cycle. Aggregates of use and expected utility, which the "
            "publication shows apart, are one figure here.",
        ),
    )


@register("study", "distsched-end-to-end", parameters=DistSchedStudyParameters)
def end_to_end(parameters: DistSchedStudyParameters) -> Study:
    """DistSched against points, requests and real averages (figures 5.5 and 5.6)."""
    return study_of(
        "Do distributions of use keep more deadlines on shared machines?",
        "figures 5.5 and 5.6",
        cases_of(parameters, MAIN),
        _end_to_end_claims(),
    )


def _end_to_end_claims() -> dict[str, Bound]:
    misses = Mean(MISSES.name, DIST)
    goodput = Mean(GOODPUT.name, REQUEST)
    latency = Mean(LATENCY.name, DIST)
    return {
        "Dist misses at least 40 % fewer deadlines than Point (published: 49 % "
        "fewer; Point 2.15 to 2.2 times as many).": misses.against(POINT, factor=0.6),
        "Dist misses fewer deadlines than Request.": misses.against(REQUEST),
        "Dist approaches Actual in deadlines missed (taken as: within 5 points).": misses.against(
            ACTUAL, margin=0.05
        ),
        "Request misses about as many deadlines as Point (taken as: at most 5 points "
        "fewer).": MISSES.of(POINT).against(REQUEST, margin=0.05),
        "More work of jobs with deadlines gets done in time than "
        "under Point (by 5 %).": SLO_GOODPUT.of(POINT).against(DIST),
        "Request gets less done than Point.": goodput.against(POINT),
        "Point does more best-effort work than Dist.": BEST_EFFORT.of(DIST).against(POINT),
        "Best-effort latency is similar for all "
        "(taken as: Dist's within 10 % of Point's).": latency.against(POINT, factor=1.1),
        "Under Dist more tasks are evicted than under Actual.": EVICTIONS.of(ACTUAL).against(DIST),
        "Under Point more jobs with deadlines never start than under Dist.": NEVER.of(DIST).against(
            POINT
        ),
    }


_MAXIMA_SYSTEMS: Final = (*(DIST, "dist-max", ACTUAL, "actual-max", POINT, "point-max"),)


@register("study", "distsched-maxima", parameters=DistSchedStudyParameters)
def maxima(parameters: DistSchedStudyParameters) -> Study:
    """Planning with what tasks use at most (figures 5.5 and 5.6, systems named Max)."""
    misses = Mean(MISSES.name, "actual-max")
    return study_of(
        "Is it better to plan with what tasks use at most?",
        "figures 5.5 and 5.6",
        cases_of(parameters, _MAXIMA_SYSTEMS),
        {
            "ActualMax misses slightly fewer deadlines than Actual.": misses.against(ACTUAL),
            "PointMax misses far fewer deadlines than Point.": MISSES.of("point-max").against(
                POINT
            ),
            **{
                f"Cpus are throttled less by maxima ({maximum}).": THROTTLES.of(maximum).against(
                    average
                )
                for maximum, average in (
                    ("actual-max", ACTUAL),
                    ("point-max", POINT),
                )
            },
            "PointMax does less best-effort work than Dist.": BEST_EFFORT.of("point-max").against(
                DIST
            ),
            "DistMax gets less done than Dist.": GOODPUT.of("dist-max").against(DIST),
        },
    )
