"""Shared parts of the studies of SLearn: traces, systems, runs, and figures of jobs with tasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.control.policy import parse_policy
from foresail.model.distribution import Booleans, Floats, Integers
from foresail.simulator.task_replay import TasksReplayed, replay_task_arrays
from foresail_studies.study import (
    Bound,
    GridPoint,
    Measure,
    PublishedClaim,
    StudyParameters,
    Task,
    generated,
    published,
)

SMALL_SECONDS: Final = 1000.0
THIN_BELOW: Final = 3
WORK_SECONDS: Final = 1000.0
_LARGEST_ERROR_PERCENT: Final = 1000.0


@dataclass(frozen=True, slots=True)
class Speedup:
    """Speed-up of jobs over a baseline; above 1: faster."""

    average: float
    """The baseline's mean completion time over ours: not a mean of ratios."""
    median: float
    p90: float
    """Quantiles of the jobs' ratios; of jobs that take no time at all, the ratio is 1."""


def speedup(baseline_seconds: Floats, seconds: Floats) -> Speedup:
    """Return the speed-up of jobs with these completion times (submission to the last end)."""
    if not seconds.size:
        return Speedup(math.nan, math.nan, math.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(baseline_seconds == seconds, 1.0, baseline_seconds / seconds)
        average = float(baseline_seconds.mean() / seconds.mean())
    median, p90 = np.quantile(ratio, [0.5, 0.9])
    return Speedup(average, float(median), float(p90))


def normalised_waiting(
    submit: Floats, start: Floats, seconds: Floats, first_task: Integers
) -> Floats:
    """Mean wait of a job's tasks over their mean runtime; nan for jobs that take no time.

    ``submit`` has the shape (jobs,), ``start`` and ``seconds`` (tasks,); ``first_task`` is where
    each job's tasks begin, and where the last one's end, of shape (jobs + 1,).
    """
    waits = start - np.repeat(submit, np.diff(first_task))
    waited = np.add.reduceat(waits, first_task[:-1])
    worked = np.add.reduceat(seconds, first_task[:-1])
    ratio: Floats = np.divide(waited, worked, out=np.full(submit.size, np.nan), where=worked > 0.0)
    return ratio


def signed_error_percent(estimate: Floats, size: Floats) -> Floats:
    """Return the errors of estimates of the true seconds of all tasks; at most 1000 %."""
    error = np.full(size.size, np.nan)
    np.divide(100.0 * (estimate - size), size, out=error, where=size > 0.0)
    capped: Floats = np.minimum(error, _LARGEST_ERROR_PERCENT)
    return capped


@dataclass(frozen=True, slots=True)
class QueueCorrectness:
    """Shares of the wide jobs with an estimate, in percent: rightly placed, too low, too high."""

    right: float
    too_low_priority: float
    too_high_priority: float


def queue_correctness(queue: Integers, right_queue: Integers, wide: Booleans) -> QueueCorrectness:
    """Return whether wide jobs were in the queue of their true size; all nan without any."""
    if not wide.any():
        return QueueCorrectness(math.nan, math.nan, math.nan)
    off = queue[wide] - right_queue[wide]
    right, low, high = (100.0 * float(part.mean()) for part in (off == 0, off > 0, off < 0))
    return QueueCorrectness(right, low, high)


def size_queues(
    seconds: Floats, queues: int = 10, first_threshold_seconds: float = 1000.0, growth: float = 10.0
) -> Integers:
    """The queue of each job by the seconds of its tasks; the first where these are unknown."""
    thresholds = first_threshold_seconds * growth ** np.arange(queues - 1)
    known = np.where(np.isnan(seconds), 0.0, seconds)
    found: Integers = np.searchsorted(thresholds, known, side="right").astype(np.int64)
    return found


def resistance(
    when: Floats,
    queue: Integers,
    entered: Floats,
    start: Floats,
    seconds: Floats,
    first_task: Integers,
    slots: int,
) -> Floats:
    """Work of higher priority that each job finds, with what is left of the tasks that run.

    That is what is left, then, of jobs in higher queues, and of those in its own that entered it
    earlier; and what is left of any other task that already runs.

    Parameters
    ----------
    when
        When each job is looked at: its submission, or when it was estimated; shape (jobs,).
    queue, entered
        Of each job, from ``entered`` on; shape (jobs,).
    start, seconds
        Of each task; shape (tasks,).
    first_task
        Shape (jobs + 1,).
    slots
        Task slots of the cluster.
    """
    end = start + seconds
    job_end = np.maximum.reduceat(end, first_task[:-1])
    job_of = np.repeat(np.arange(when.size), np.diff(first_task))
    found = np.zeros(when.size)
    for job, now in enumerate(when.tolist()):
        there = (entered <= now) & (job_end > now)
        there[job] = False
        earlier = (queue == queue[job]) & (entered < entered[job])
        ahead = there & ((queue < queue[job]) | earlier)
        of_task = there[job_of]
        running = of_task & (start <= now) & (end > now)
        waiting = ahead[job_of] & (start > now)
        found[job] = (end[running] - now).sum() + seconds[waiting].sum()
    return found / (slots * WORK_SECONDS)


@dataclass(frozen=True, slots=True)
class Bin:
    """Jobs of one kind: their share of jobs and work (percent), and how much faster they are."""

    name: str
    jobs_percent: float
    work_percent: float
    speedup: Speedup


def bins(
    width: Integers, size: Floats, baseline_seconds: Floats, seconds: Floats
) -> tuple[Bin, ...]:
    """Jobs by width (thin: fewer than 3 tasks) and size (small: below 1000 s), as in table 9."""
    thin, small = width < THIN_BELOW, size < SMALL_SECONDS
    parts = {
        "thin, small": thin & small,
        "wide, small": ~thin & small,
        "thin, large": thin & ~small,
        "wide, large": ~thin & ~small,
    }
    return tuple(
        Bin(
            name,
            100.0 * float(part.mean()),
            100.0 * float(size[part].sum() / size.sum()),
            speedup(baseline_seconds[part], seconds[part]),
        )
        for name, part in parts.items()
    )


SOURCE: Final = "SLearn (A. Jajoo et al., The case for task sampling based learning)"
FASTER: Final = Measure("speedup", "speed-up (ratio of mean completion times)")
MEDIAN: Final = Measure("median_speedup", "median of the jobs' speed-ups")
NINE_TENTHS: Final = Measure("p90_speedup", "90 % of the jobs' speed-ups below")
COMPLETION: Final = Measure("completion_seconds", "mean completion time", "duration")
WAITING: Final = Measure("normalised_waiting", "median normalised waiting time")
ERROR: Final = Measure("error_median", "median error of the estimate", "share")
LARGE_ERROR: Final = Measure("error_p90", "90 % of errors below", "share")
OVER: Final = Measure("over_estimated", "jobs over-estimated", "share")
RIGHT: Final = Measure("right_queue", "wide jobs in the right queue", "share")
TOO_LOW: Final = Measure("too_low", "of too low a priority", "share")
TOO_HIGH: Final = Measure("too_high", "of too high a priority", "share")
SIGNED_ERROR: Final = Measure("signed_error", "error of the estimate, too long above 0", "share")
AHEAD: Final = Measure("resistance", "work ahead of a job, in 1000 s of the whole cluster")
AHEAD_IS: Final = (
    "The work ahead (resistance) is what is left of tasks that run, and of jobs in higher queues "
    "or earlier in the same, when a job is submitted, or, of a sampled one, when its pilots have "
    "told. By then some of it is done, and of others that are being sampled only what runs counts: "
    "so it may be less than under the oracle."
)

SLEARN: Final = "slearn"
SIGMA: Final = "slearn-3sigma"
SIGMA_THIN: Final = "slearn-3sigma-tl"
POINT: Final = "slearn-point-est"
ORACLE: Final = "slearn-oracle"
JOINT: Final = "slearn-joint"
LAS: Final = "las"
FIFO: Final = "task_fifo"

TRACES: Final = {"2strace": "2STrace", "gtrace11": "GTrace11", "gtrace19": "GTrace19"}
"""The published traces by the name of their calibration."""
WIDE_BEGINS: Final = 3


@dataclass(frozen=True, slots=True)
class SLearnStudyParameters(StudyParameters, quick="seeds=6", minutes=(2, 6)):
    """Parameters that these studies share."""

    POSITIVE: ClassVar[tuple[str, ...]] = ("median_tasks",)

    seeds: int = 20

    jobs: int = 1250
    """Of a run."""
    median_tasks: float = 60.0
    """Of the traces whose jobs are wider than SLearn's section 5.3.5 says."""


class Traces(NamedTuple):
    """Short forms of the generators of a run and of its history, and what the trace is called."""

    name: str
    run: str
    history: str


def narrow(trace: str) -> str:
    """Return the name of a trace whose widths are those of section 5.3.5."""
    return TRACES[trace]


def wider(trace: str) -> str:
    """Return the name of a trace whose jobs are wider."""
    return f"{TRACES[trace]}, wider jobs"


def traces(parameters: SLearnStudyParameters) -> tuple[Traces, ...]:
    """All three traces, with the widths of section 5.3.5 and with wider jobs."""
    wide = f",median_tasks={parameters.median_tasks:g}"
    return tuple(
        made_by("slearn", name(trace), f"calibration={trace},jobs={parameters.jobs}{extra}")
        for name, extra in ((narrow, ""), (wider, wide))
        for trace in TRACES
    )


def made_by(generator: str, name: str, settings: str) -> Traces:
    """Generate a run with a history of its own."""
    return Traces(name, f"{generator}({settings})", f"{generator}({settings},part=history)")


def by_name(*policies: str) -> Mapping[str, str]:
    """Systems that are called as their policies."""
    return {policy: policy for policy in policies}


def points(
    places: Iterable[Traces],
    seeds: int,
    systems: Mapping[str, str],
    task: Callable[[str, str, int, str], Task],
) -> tuple[GridPoint, ...]:
    """Every system on every trace; a task is made of run, history, seed and what systems has."""
    return tuple(
        GridPoint(place.name, None, system, seed, task(place.run, place.history, seed, told))
        for place in places
        for seed in range(seeds)
        for system, told in systems.items()
    )


def cases(
    places: Iterable[Traces],
    seeds: int,
    policies: Mapping[str, str],
    *,
    faster: str | None = None,
    slower: str | None = None,
) -> tuple[GridPoint, ...]:
    """Every policy, by its system's name, on every trace.

    The speed-up is that of ``faster`` over ``slower``: the system itself where none is given.
    """

    def trial(run: str, history: str, seed: int, policy: str) -> TaskTrial:
        return TaskTrial(run, history, seed, policy, faster or policy, slower or policy)

    return points(places, seeds, policies, trial)


def claims(
    about: Callable[[str, str], Mapping[str, Bound]],
) -> tuple[PublishedClaim, ...]:
    """Return the claims about each trace (its calibration and its group), wider jobs first."""
    return published(*(about(trace, name(trace)) for name in (wider, narrow) for trace in TRACES))


@dataclass(frozen=True, slots=True)
class TaskTrial:
    """A replay of tasks, and how much faster one policy is than another on the same jobs."""

    workload: str
    history: str
    """Short forms of the generators of the run, and of what the predictor has learned from."""
    seed: int
    """Of both."""
    policy: str
    """Whose estimates and completion times are measured."""
    faster: str
    slower: str
    """Whose speed-up over whom; one of them is the policy, as a rule."""

    def measure(self) -> dict[str, float]:
        """The measures of this module, as far as the policy has estimates."""
        found = self._replay(self.policy)
        stages = found.stages
        first_task = first_tasks(found)
        size = np.add.reduceat(stages.runtime_seconds, first_task[:-1])
        waits = normalised_waiting(found.submit, found.start, stages.runtime_seconds, first_task)
        gain = speedup(completion(self._replay(self.slower)), completion(self._replay(self.faster)))
        return {
            FASTER.name: gain.average,
            MEDIAN.name: gain.median,
            NINE_TENTHS.name: gain.p90,
            COMPLETION.name: float(completion(found).mean()),
            WAITING.name: float(np.nanmedian(waits)),
            **estimates(found.estimate, size, np.diff(first_task) >= WIDE_BEGINS),
        }

    def _replay(self, policy: str) -> TasksReplayed:
        return replayed(self.workload, self.history, self.seed, policy)


def completion(found: TasksReplayed) -> NDArray[np.float64]:
    """Seconds from each job's submission to the end of its last task; shape (jobs,)."""
    return found.job_end - found.submit


def first_tasks(found: TasksReplayed) -> NDArray[np.int64]:
    """Return where each job's tasks begin, and where the last one's end; shape (jobs + 1,)."""
    begins: NDArray[np.int64] = found.stages.first_task[found.stages.first_stage]
    return begins


@lru_cache(maxsize=4)
def by_job(
    workload: str, history: str, seed: int, policy: str
) -> Mapping[str, NDArray[np.float64]]:
    """Waits, signed errors of wide jobs and work ahead of each job; nan where it has none.

    Shape (jobs,) each.
    """
    found = replayed(workload, history, seed, policy)
    first_task = first_tasks(found)
    runtime = found.stages.runtime_seconds
    known = np.where(found.pilots > 0, found.estimated, found.submit)
    error = signed_error_percent(found.estimate, found.stages.job_seconds) / 100.0
    return {
        WAITING.name: normalised_waiting(found.submit, found.start, runtime, first_task),
        SIGNED_ERROR.name: np.where(np.diff(first_task) >= WIDE_BEGINS, error, np.nan),
        AHEAD.name: resistance(
            known,
            size_queues(found.estimate),
            known,
            found.start,
            runtime,
            first_task,
            generated(workload, seed).processors,
        ),
    }


def estimates(
    estimate: NDArray[np.float64], size: NDArray[np.float64], wide: NDArray[np.bool_]
) -> dict[str, float]:
    """Errors and queues of the wide jobs with an estimate; nothing without any."""
    known = wide & np.isfinite(estimate) & (size > 0.0)
    if not known.any():
        return {}
    error = np.abs(estimate[known] - size[known]) / size[known]
    queues = queue_correctness(size_queues(estimate), size_queues(size), known)
    return {
        ERROR.name: float(np.quantile(error, 0.5)),
        LARGE_ERROR.name: float(np.quantile(error, 0.9)),
        OVER.name: float((estimate[known] > size[known]).mean()),
        RIGHT.name: queues.right / 100.0,
        TOO_LOW.name: queues.too_low_priority / 100.0,
        TOO_HIGH.name: queues.too_high_priority / 100.0,
    }


@lru_cache(maxsize=32)
def replayed(workload: str, history: str, seed: int, policy: str) -> TasksReplayed:
    """Replay the run under a policy that has learned the history; kept for other cases."""
    return replay_task_arrays(
        generated(workload, seed), parse_policy(policy), generated(history, seed)
    )


def notes(parameters: SLearnStudyParameters) -> tuple[str, ...]:
    """Return where these studies differ from the published ones."""
    return (
        "The traces are generated, since 2Sigma's is not public: with the published coefficients "
        "of variation over time and over space (table 4), loads (table 5), and shares of jobs and "
        "work by width and size (table 9, published for 2STrace and taken for all).",
        "Widths are not published but for two statements that contradict each other (section "
        "5.3.5 and table 9: 58.5 % of the jobs have four tasks or fewer, which table 8 does not "
        "bear out). With them most large jobs are a few long tasks: 70 to 94 % of the mean "
        "completion time is the longest task itself, which no scheduler shortens. Traces with "
        f"wider jobs take a median of {parameters.median_tasks:g} tasks and none of three or four; "
        "all else is the same.",
        "What table 4 measures over time is the least variation over the features of a job, in a "
        "window. The generator gives the published values to the jobs of a name. By the measure "
        "itself that is too low where two similar jobs count (0.58 for 1.00, 0.17 for 0.20, 0.73 "
        "for 1.35), and about right or too high where ten are needed (1.09, 0.46, 1.36): these "
        "traces have too few jobs a day to tell (study slearn-variability).",
        "Within a name runtimes are log-normal. A utility of 1 / t ** 2 then makes 3Sigma's "
        "estimates too short for most jobs (published: too long for 60 %).",
        "Every seed is another trace; the history is what the paper's first half is.",
    )
