"""Generator ``usage``: services and batch jobs like Google's, with their use of cpu and memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.model.distribution import Floats, Integers
from foresail.model.errors import require_at_least, require_share
from foresail.model.registry import register
from foresail.traces.generating import generator
from foresail.traces.measured import tasks_table, usage_table
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from foresail_studies.generators._demands import achieved
from foresail_studies.readers.google import with_use

PERIOD_SECONDS: Final = 300.0
_DAY_SECONDS: Final = 86400.0
_LONGEST_PERIOD_SECONDS: Final = int(PERIOD_SECONDS)
_ROOT: Final = float(np.sqrt(2.0 * np.log(_LONGEST_PERIOD_SECONDS)))
_HIGHEST_OF_SECONDS: Final = _ROOT - float(
    np.log(np.log(_LONGEST_PERIOD_SECONDS)) + np.log(4.0 * np.pi)
) / (2.0 * _ROOT)
"""Mode of the highest of 300 standard normal numbers (extreme value theory)."""

_MEMORY_LOG_DEVIATION: Final = 0.03
_MEMORY_PEAK: Final = 0.05


@dataclass(frozen=True, slots=True)
class Swings:
    """Movement of use around a task's level."""

    regimes: int
    regime_spread: float
    """Number of levels of the Markov chain, and the factor from one to the next."""
    regime_seconds: float
    """Mean stay in a level."""
    daily_swing: float
    """Amplitude of the daily sine, as a share of the level."""
    burst_share: float
    burst_factor: float
    """Share of periods that are bursts, and the factor of their use."""


@dataclass(frozen=True, slots=True)
class MeasuredTasks:
    """The tasks to measure; every array has shape (tasks,).

    ``cpus`` and ``memory_bytes`` are the levels of use, ``day_phase`` the share of the day by which
    the daily sine is shifted, ``second_log_deviation`` that of the logarithm of a second's use
    around its period's mean, ``sampled`` whether the sampling of the task's job worked.
    """

    job_id: NDArray[np.str_]
    task: Integers
    start_seconds: Floats
    end_seconds: Floats
    cpus: Floats
    memory_bytes: Floats
    day_phase: Floats
    second_log_deviation: Floats
    sampled: NDArray[np.bool_]


def measure(tasks: MeasuredTasks, swings: Swings, random: np.random.Generator) -> pl.DataFrame:
    """The usage table of these tasks; periods begin at multiples of 300 s, or with the task."""
    first = np.floor(tasks.start_seconds / PERIOD_SECONDS).astype(np.int64)
    last = np.ceil(tasks.end_seconds / PERIOD_SECONDS).astype(np.int64)
    count = last - first
    of = np.repeat(np.arange(count.size), count)
    begins = np.cumsum(count) - count
    at = first[of] + np.arange(of.size) - begins[of]
    start = np.maximum(at * PERIOD_SECONDS, tasks.start_seconds[of])
    end = np.minimum((at + 1) * PERIOD_SECONDS, tasks.end_seconds[of])
    is_first = np.zeros(of.size, dtype=np.bool_)
    is_first[begins] = True

    middle_days = (start + end) / 2.0 / _DAY_SECONDS
    daily = 1.0 + swings.daily_swing * np.sin(2.0 * np.pi * (middle_days - tasks.day_phase[of]))
    bursting = random.random(of.size) < swings.burst_share
    averaged = (
        tasks.cpus[of]
        * regime_factors(is_first, swings, random)
        * daily
        * np.where(bursting, swings.burst_factor, 1.0)
    )
    deviation = tasks.second_log_deviation[of]
    bias = deviation**2 / 2.0
    sampled = averaged * np.exp(deviation * random.standard_normal(of.size) - bias)
    highest = random.gumbel(_HIGHEST_OF_SECONDS, 1.0 / _ROOT, of.size)
    peak = averaged * np.exp(deviation * np.maximum(highest, deviation / 2.0) - bias)
    memory = tasks.memory_bytes[of] * random.lognormal(0.0, _MEMORY_LOG_DEVIATION, of.size)
    return usage_table(
        {
            "job_id": pl.Series(tasks.job_id).gather(of),
            "task": tasks.task[of],
            "start_seconds": start,
            "end_seconds": end,
            "average_cpus": averaged,
            "maximum_cpus": np.maximum(peak, sampled),
            "sampled_cpus": np.where(tasks.sampled[of], sampled, 0.0),
            "average_memory_bytes": memory,
            "maximum_memory_bytes": memory * (1.0 + random.exponential(_MEMORY_PEAK, of.size)),
        }
    )


def regime_factors(
    is_first: NDArray[np.bool_], swings: Swings, random: np.random.Generator
) -> Floats:
    """Level of each period relative to its task's: a Markov chain, anew for every task.

    A level is left with probability 300 s / ``regime_seconds`` for any other, all alike, so that
    all levels are as frequent; they are ``regime_spread`` apart and 1 on average. ``is_first`` says
    whether a period is its task's first, shape (periods,).
    """
    leaves = random.random(is_first.size) < PERIOD_SECONDS / swings.regime_seconds
    steps = np.where(leaves, random.integers(1, max(swings.regimes, 2), is_first.size), 0)
    steps[is_first] = random.integers(0, swings.regimes, int(is_first.sum()))
    levels = swings.regime_spread ** np.arange(swings.regimes)
    factors: Floats = (levels / levels.mean())[np.cumsum(steps) % swings.regimes]
    return factors


_GIBIBYTE: Final = 2.0**30
_CPU_REQUESTS: Final = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
_MEMORY_REQUESTS: Final = np.array([0.25, 0.5, 1.0, 2.0, 4.0, 8.0]) * _GIBIBYTE
_MEDIAN_SECONDS: Final = (300.0, 6 * 3600.0)
_UTILISATION: Final = 0.4
_UTILISATION_LOG_DEVIATION: Final = 0.6
_MEMORY_SHARES: Final = (0.3, 0.9)
_BATCH_CLASSES: Final = np.array(["0", "1"])
_SERVICE_CLASSES: Final = np.array(["2", "3"])
_BATCH_PRIORITIES: Final = np.array(["0", "1", "2", "4"])
_SERVICE_PRIORITIES: Final = np.array(["9", "10", "11"])


SWINGS: Final = Swings(
    regimes=3,
    regime_spread=2.0,
    regime_seconds=6 * 3600.0,
    daily_swing=0.3,
    burst_share=0.02,
    burst_factor=3.0,
)
_APPLICATIONS_PER_USER: Final = 3
_MEAN_WAIT_SECONDS: Final = 10.0
"""Recorded, of batch jobs."""
_JOB_LOG_DEVIATION: Final = 0.5
_TASK_LOG_DEVIATION: Final = 0.15
"""Scatter of runtimes and of use, in the natural logarithm: of the jobs of an application, and of
the tasks of a job."""


@dataclass(frozen=True, slots=True)
class UsageParameters:
    """Parameters of the generator ``usage``."""

    jobs: int = 300
    """Number of jobs."""
    days: float = 7.0
    """Length of the trace, at least one day."""
    processors: int = 1000
    """Processors of the machine (they bound nothing here)."""
    service_share: float = 0.2
    """Share of jobs that are services: there from the first second to the last."""
    users: int = 20
    """Whom jobs belong to, three applications each; jobs of one application resemble each other."""
    single_task_share: float = 0.77
    """Share of jobs of one task (77 % at Google); the others have 2 to ``most_tasks``, few
    mostly."""
    most_tasks: int = 20
    """Tasks of the widest job."""
    corrupt_share: float = 0.25
    """Share of jobs whose sampled seconds are all 0, because their sampling failed."""
    second_log_deviation: float = 0.5
    second_scatter: float = 0.4
    """Deviation of the logarithm of a second's use around its period's mean: the median of the
    applications, and their scatter around it in the natural logarithm."""

    def __post_init__(self) -> None:
        least = {
            "jobs": 1,
            "days": 1.0,
            "processors": 1,
            "users": 1,
            "most_tasks": 2,
            "second_log_deviation": 0.0,
            "second_scatter": 0.0,
        }
        for name, lowest in least.items():
            require_at_least(self, lowest, name)
        require_share(self, "service_share", "single_task_share", "corrupt_share")

    @property
    def seconds(self) -> float:
        """Length of the trace."""
        return self.days * _DAY_SECONDS


@register("generator", "usage", parameters=UsageParameters)
@generator
def usage(parameters: UsageParameters, random: np.random.Generator) -> Workload:
    """Services and batch jobs like Google's with tasks and their use of cpu and memory over time.

    Each application has a request, a median runtime, a share of its request that it uses, a
    scheduling class and a priority; its jobs and their tasks scatter around them. Cpu use of a task
    moves between regimes (a Markov chain of levels), swings daily, and bursts; the sampled second
    is the period's mean times log-normal noise of mean 1, and some jobs' samples are all 0.
    Services run throughout the trace, batch jobs begin and end within it. Second zero is midnight
    of the first day.
    """
    count, length = parameters.jobs, parameters.seconds
    service = _exactly(parameters.service_share, count, random)
    kinds = 2 * parameters.users * _APPLICATIONS_PER_USER
    application = random.integers(0, kinds // 2, count) * 2 + service
    cpus, memory = random.choice(_CPU_REQUESTS, kinds), random.choice(_MEMORY_REQUESTS, kinds)
    least, most = np.log(_MEDIAN_SECONDS).tolist()
    median = np.exp(random.uniform(least, most, kinds))
    used_cpus = cpus * _UTILISATION * _scatter(kinds, _UTILISATION_LOG_DEVIATION, random)
    used_memory = memory * random.uniform(*_MEMORY_SHARES, kinds)
    second = parameters.second_log_deviation * _scatter(kinds, parameters.second_scatter, random)
    several = random.random(count) >= parameters.single_task_share
    widths = np.exp(random.uniform(np.log(2.0), np.log(parameters.most_tasks + 1.0), count))
    tasks = np.where(several, np.floor(widths), 1.0).astype(np.int64)
    level = median[application] * _scatter(count, _JOB_LOG_DEVIATION, random)
    cpu_level = used_cpus[application] * _scatter(count, _JOB_LOG_DEVIATION, random)

    of = np.repeat(np.arange(count), tasks)
    batch = np.round(level[of] * _scatter(of.size, _TASK_LOG_DEVIATION, random))
    runtimes = np.where(service[of], length, np.clip(batch, 1.0, length / 2.0))
    first = np.cumsum(tasks) - tasks
    longest = np.maximum.reduceat(runtimes, first)
    # Jobs end within the trace.
    waited = np.round(random.exponential(1.0, count) * _MEAN_WAIT_SECONDS)
    wait = np.where(service, 0.0, np.minimum(waited, np.floor(length - longest)))
    submit = np.floor(random.random(count) * (length - longest - wait))
    number = np.empty(count, dtype=np.int64)
    number[np.argsort(submit, kind="stable")] = np.arange(1, count + 1)
    ids = np.char.mod("%d", number)
    start = (submit + wait)[of]
    corrupt = _exactly(parameters.corrupt_share, count, random)
    task = np.arange(of.size) - first[of]
    measured = measure(
        MeasuredTasks(
            job_id=ids[of],
            task=task,
            start_seconds=start,
            end_seconds=start + runtimes,
            cpus=cpu_level[of] * _scatter(of.size, _TASK_LOG_DEVIATION, random),
            memory_bytes=used_memory[application][of],
            second_log_deviation=second[application][of],
            day_phase=random.normal(0.4, 0.05, count)[of],
            sampled=~corrupt[of],
        ),
        SWINGS,
        random,
    )

    def in_turn(of_services: NDArray[np.str_], of_batch: NDArray[np.str_]) -> NDArray[np.str_]:
        turn = application // 2
        of_both = of_services[turn % of_services.size], of_batch[turn % of_batch.size]
        return np.where(service, *of_both)

    asked, asked_memory = cpus[application], memory[application]
    table = jobs_table(
        {
            "job_id": ids,
            "submit_seconds": submit,
            "recorded_wait_seconds": wait,
            "runtime_seconds": longest,
            "tasks": tasks,
            "cpus_per_task": asked,
            "memory_bytes_per_task": asked_memory,
            "allocated_cpus": tasks * asked,
            "status": ["completed"] * count,
            "user": np.char.mod("user%d", application // (2 * _APPLICATIONS_PER_USER) + 1),
            "executable": np.char.mod("application%d", application + 1),
            "scheduling_class": in_turn(_SERVICE_CLASSES, _BATCH_CLASSES),
            "priority": in_turn(_SERVICE_PRIORITIES, _BATCH_PRIORITIES),
        }
    )
    of_tasks = tasks_table(
        {
            "job_id": ids[of],
            "task": task,
            "runtime_seconds": runtimes,
            "cpus": asked[of],
            "memory_bytes": asked_memory[of],
        }
    )
    seconds = pl.col("end_seconds") - pl.col("start_seconds")
    used = float(measured.select((pl.col("average_cpus") * seconds).sum()).item())
    capacity = parameters.processors * length
    header = achieved(
        load=float(asked[of] @ runtimes) / capacity,
        used_load=used / capacity,
        services=float(service.sum()),
        single_task_jobs=float((tasks == 1).sum()),
        tasks=float(of.size),
        periods=float(measured.height),
        corrupt_jobs=float(corrupt.sum()),
    )
    meta = WorkloadMeta("", "", processors=parameters.processors, header=header)
    return Workload(with_use(table, measured), meta, tasks=of_tasks, usage=measured)


def _exactly(share: float, count: int, random: np.random.Generator) -> NDArray[np.bool_]:
    """Flags of which this share, rounded, are set; which ones is drawn."""
    flags = np.arange(count) < round(share * count)
    return random.permutation(flags)


def _scatter(count: int, log_deviation: float, random: np.random.Generator) -> Floats:
    return np.exp(random.normal(0.0, log_deviation, count))
