"""Generator ``packing``: hours of jobs whose tasks share machines, and the history before them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
import polars as pl

from foresail.model.distribution import Floats, Integers
from foresail.model.errors import require_at_least, require_positive, require_share
from foresail.model.registry import register
from foresail.traces import schema
from foresail.traces.generating import generator
from foresail.traces.measured import tasks_table
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from foresail_studies.generators._demands import achieved
from foresail_studies.generators.usage import MeasuredTasks, Swings, measure
from foresail_studies.readers.google import with_use

_GIBIBYTE: Final = 2.0**30
_SLACKS: Final = np.array([1.2, 1.4, 1.6, 1.8])
_SLO_SHARE: Final = 0.5
"""Runtimes from submission to a deadline, each as likely, and the share of jobs with one."""
_CPU_REQUESTS: Final = np.array([0.5, 1.0, 2.0, 4.0])
_MEMORY_PER_CPU: Final = np.array([1.0, 2.0, 4.0])
_MEMORY_SHARES: Final = (0.3, 0.9)
_REQUEST_OVER_USE: Final = ((0.0, 0.25), (0.06, 0.5), (0.26, 2.0), (0.6, 10.0), (1.0, 100.0))
"""Shares of applications that ask for at most so many times the cpus that they use: 20 % within a
factor of two and 74 % more, most of these over ten times (figure 5.1 and section 5.1.1); the least
and the most are chosen."""
_MACHINE_CPUS: Final = 8.0
_MACHINE_GIBIBYTES: Final = 48.0
_APPLICATIONS_PER_USER: Final = 3
_JOB_LOG_DEVIATION: Final = 0.4
_TASK_LOG_DEVIATION: Final = 0.15
"""Scatter of runtimes and of use, in the natural logarithm: of the jobs of an application, and of
the tasks of a job."""
_LOG_MEDIAN_SECONDS: Final = (math.log(120.0), math.log(2400.0))


_SWINGS: Final = Swings(
    regimes=3,
    regime_spread=1.5,
    regime_seconds=1800.0,
    daily_swing=0.0,
    burst_share=0.02,
    burst_factor=2.0,
)


@dataclass(frozen=True, slots=True)
class PackingParameters:
    """Parameters of the generator ``packing``."""

    part: Literal["run", "history"] = "run"
    """``run``: the jobs to be scheduled. ``history``: earlier jobs of the same applications, to
    train a predictor with; they come from the same seed and are other jobs."""
    hours: float = 2.0
    history_hours: float = 20.0
    """Length of either."""
    jobs: int = 700
    """Number of jobs of the run."""
    machines: int = 700
    """How many nodes there are, all alike: 8 cpus and 48 GiB."""
    load: float = 0.8
    """Work that is used, as a share of the run's capacity; runtimes are scaled to it."""
    users: int = 20
    """Whom jobs belong to, three applications each; jobs of one application resemble each other."""
    single_task_share: float = 0.4
    most_tasks: int = 400
    """Share of jobs of one task; the others have 2 to so many, few mostly."""

    def __post_init__(self) -> None:
        require_positive(self, "hours", "history_hours", "load")
        require_at_least(self, 1, "jobs", "machines", "users")
        require_at_least(self, 2, "most_tasks")
        require_share(self, "single_task_share")


@register("generator", "packing", parameters=PackingParameters)
@generator
def packing(parameters: PackingParameters, random: np.random.Generator) -> Workload:
    """Two hours of jobs like those DistSched was tried on: tasks, their use, deadlines, machines.

    As in ``usage``, an application has a request, a median runtime and a share of its request that
    it uses (as published for Google's jobs), and its jobs and their tasks scatter around them.
    Source: Park's dissertation, section 5.4.1.
    """
    count = parameters.users * _APPLICATIONS_PER_USER
    cpus = np.minimum(random.choice(_CPU_REQUESTS, count), _MACHINE_CPUS)
    memory = cpus * random.choice(_MEMORY_PER_CPU, count)
    memory = np.minimum(memory, _MACHINE_GIBIBYTES) * _GIBIBYTE
    used_cpus = np.minimum(cpus / _request_over_use(count, random), _MACHINE_CPUS)
    used_memory = memory * random.uniform(*_MEMORY_SHARES, count)
    levels = np.exp(random.uniform(*_LOG_MEDIAN_SECONDS, count)), used_cpus, used_memory
    run, history = random.spawn(2)
    jobs = _drawn(parameters, levels, run, parameters.jobs)
    capacity = parameters.machines * _MACHINE_CPUS * parameters.hours * 3600.0
    stretch = parameters.load * capacity / float(jobs.seconds @ jobs.cpus)
    if parameters.part == "run":
        return _workload(jobs, cpus, memory, stretch, parameters, run)
    more = round(parameters.jobs * parameters.history_hours / parameters.hours)
    jobs = _drawn(parameters, levels, history, more)
    return _workload(jobs, cpus, memory, stretch, parameters, history)


def _request_over_use(count: int, random: np.random.Generator) -> Floats:
    """Draw requests over use of so many applications, evenly over their shares."""
    shares, ratios = np.array(_REQUEST_OVER_USE).T
    even = (random.permutation(count) + random.random(count)) / count
    drawn: Floats = np.exp(np.interp(even, shares, np.log(ratios)))
    return drawn


class _PackingJobs(NamedTuple):
    """Jobs: their application and how many tasks they have; of tasks, their job and all else."""

    application: Integers
    tasks: Integers
    of: Integers
    seconds: Floats
    cpus: Floats
    memory: Floats


def _scatter(log_deviation: float, count: int, random: np.random.Generator) -> Floats:
    return np.exp(random.normal(0.0, log_deviation, count))


def _drawn(
    parameters: PackingParameters, levels: Sequence[Floats], random: np.random.Generator, count: int
) -> _PackingJobs:
    """So many jobs, by the applications' levels of runtime, cpus and memory."""
    application = random.integers(0, levels[0].size, count)
    several = random.random(count) >= parameters.single_task_share
    widths = np.exp(random.uniform(np.log(2.0), np.log(parameters.most_tasks + 1.0), count))
    tasks = np.where(several, np.floor(widths), 1.0).astype(np.int64)
    of = np.repeat(np.arange(count), tasks)

    def scattered(level: Floats) -> Floats:
        jobs = level[application] * _scatter(_JOB_LOG_DEVIATION, count, random)
        return np.asarray(jobs[of] * _scatter(_TASK_LOG_DEVIATION, of.size, random))

    return _PackingJobs(application, tasks, of, *map(scattered, levels))


def _workload(
    jobs: _PackingJobs,
    asked_cpus: Floats,
    asked_memory: Floats,
    stretch: float,
    parameters: PackingParameters,
    random: np.random.Generator,
) -> Workload:
    """The tables of the jobs, submitted evenly over the hours."""
    count = jobs.tasks.size
    hours = parameters.hours if parameters.part == "run" else parameters.history_hours
    submit = np.sort(np.floor(random.uniform(0.0, hours * 3600.0, count)))
    seconds = np.maximum(np.round(jobs.seconds * stretch), 1.0)
    first = np.cumsum(jobs.tasks) - jobs.tasks
    longest = np.maximum.reduceat(seconds, first)
    task = np.arange(jobs.of.size) - first[jobs.of]
    ids = np.char.mod("%d", np.arange(1, count + 1))
    start = submit[jobs.of]
    measured = MeasuredTasks(
        job_id=ids[jobs.of],
        task=task,
        start_seconds=start,
        end_seconds=start + seconds,
        cpus=jobs.cpus,
        memory_bytes=jobs.memory,
        day_phase=np.zeros(jobs.of.size),
        second_log_deviation=np.full(jobs.of.size, 0.3),
        sampled=np.ones(jobs.of.size, dtype=np.bool_),
    )
    usage = measure(measured, _SWINGS, random)
    most_memory = 0.9 * _MACHINE_GIBIBYTES * _GIBIBYTE
    usage = usage.with_columns(
        pl.col("average_cpus", "maximum_cpus").clip(upper_bound=_MACHINE_CPUS),
        pl.col("average_memory_bytes", "maximum_memory_bytes").clip(upper_bound=most_memory),
    )
    slack = random.choice(_SLACKS, count)
    slo = random.permutation(np.arange(count) < round(_SLO_SHARE * count))
    cpus, memory = asked_cpus[jobs.application], asked_memory[jobs.application]
    table = jobs_table(
        {
            "job_id": ids,
            "submit_seconds": submit,
            "runtime_seconds": longest,
            "tasks": jobs.tasks,
            "cpus_per_task": cpus,
            "memory_bytes_per_task": memory,
            "allocated_cpus": jobs.tasks * cpus,
            "status": np.full(count, "completed"),
            "user": np.char.mod("user%d", jobs.application // _APPLICATIONS_PER_USER + 1),
            "executable": np.char.mod("application%d", jobs.application + 1),
            "deadline_seconds": pl.Series(
                np.where(slo, submit + slack * longest, np.nan), nan_to_null=True
            ),
        }
    )
    tasks = tasks_table(
        {
            "job_id": ids[jobs.of],
            "task": task,
            "runtime_seconds": seconds,
            "cpus": cpus[jobs.of],
            "memory_bytes": memory[jobs.of],
        }
    )
    used = float((usage["average_cpus"] * (usage["end_seconds"] - usage["start_seconds"])).sum())
    capacity = parameters.machines * _MACHINE_CPUS * hours * 3600.0
    room = capacity / _MACHINE_CPUS * _MACHINE_GIBIBYTES * _GIBIBYTE
    figures = achieved(
        load=used / capacity,
        requested_load=float(cpus[jobs.of] @ seconds) / capacity,
        requested_memory_load=float(memory[jobs.of] @ seconds) / room,
        used_memory_load=float(jobs.memory @ seconds) / room,
        mean_runtime_seconds=float(longest.mean()),
        slo_jobs=float(slo.sum()),
        tasks=float(jobs.of.size),
        periods=float(usage.height),
    )
    meta = WorkloadMeta(
        "", "", processors=round(parameters.machines * _MACHINE_CPUS), header=figures
    )
    node = {
        "node": "m",
        "partition": "all",
        "count": parameters.machines,
        "cpus": _MACHINE_CPUS,
        "memory_bytes": _MACHINE_GIBIBYTES * _GIBIBYTE,
        "gpus": 0.0,
    }
    nodes = schema.laid_out(pl.DataFrame([node]), schema.NODES)
    return Workload(with_use(table, usage), meta, nodes, tasks, usage)
