"""Shared parts of the studies of SLearn: traces, systems, runs, and figures of jobs with tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final, NamedTuple

import numpy as np

from foresail.control.policy import parse_policy
from foresail.model.distribution import Booleans, Floats, Integers
from foresail.simulator.task_replay import TasksReplayed, replay_task_arrays
from foresail_studies.study import Measure, StudyParameters, generated

SMALL_SECONDS: Final = 1000.0
THIN_BELOW: Final = 3
WORK_SECONDS: Final = 1000.0
_LARGEST_ERROR_PERCENT: Final = 1000.0

MEASURES: Final = (
    Measure("speedup", "speed-up (ratio of mean completion times)"),
    Measure("median_speedup", "median of the jobs' speed-ups"),
    Measure("p90_speedup", "90 % of the jobs' speed-ups below"),
    Measure("completion_seconds", "mean completion time", "duration"),
    Measure("normalised_waiting", "median normalised waiting time"),
    Measure("error_median", "median error of the estimate", "share"),
    Measure("error_p90", "90 % of errors below", "share"),
    Measure("over_estimated", "jobs over-estimated", "share"),
    Measure("right_queue", "wide jobs in the right queue", "share"),
    Measure("too_low", "of too low a priority", "share"),
    Measure("too_high", "of too high a priority", "share"),
    Measure("signed_error", "error of the estimate, too long above 0", "share"),
    Measure("resistance", "work ahead of a job, in 1000 s of the whole cluster"),
    Measure("jobs_share", "of the jobs", "share"),
    Measure("work_share", "of the work", "share"),
    Measure("p50", "half of the jobs below"),
    Measure("p90", "90 % of the jobs below"),
    Measure("time_exceeds", "jobs that vary more over time", "share"),
    Measure("load", "work submitted, over what all slots can do"),
    Measure("of_better", "of the better of history and sampling (completion)", "share"),
    Measure("misordered", "two jobs put in the wrong order (model)", "share"),
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


def traces(parameters: SLearnStudyParameters) -> tuple[Traces, ...]:
    """All three traces, with the widths of section 5.3.5 and with wider jobs."""
    wide = f",median_tasks={parameters.median_tasks:g}"
    return tuple(
        made_by("slearn", name + called, f"calibration={trace},jobs={parameters.jobs}{extra}")
        for called, extra in (("", ""), (", wider jobs", wide))
        for trace, name in TRACES.items()
    )


def made_by(generator: str, name: str, settings: str) -> Traces:
    """Generate a run with a history of its own."""
    return Traces(name, f"{generator}({settings})", f"{generator}({settings},part=history)")


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
    """Errors of estimates of the true seconds of all tasks; at most 1000 %."""
    error = np.full(size.size, np.nan)
    np.divide(100.0 * (estimate - size), size, out=error, where=size > 0.0)
    capped: Floats = np.minimum(error, _LARGEST_ERROR_PERCENT)
    return capped


def queue_correctness(
    queue: Integers, right_queue: Integers, wide: Booleans
) -> tuple[float, float, float]:
    """Shares of the wide jobs: rightly placed, of too low a priority, and of too high a one.

    All nan without any.
    """
    if not wide.any():
        return math.nan, math.nan, math.nan
    off = queue[wide] - right_queue[wide]
    return float((off == 0).mean()), float((off > 0).mean()), float((off < 0).mean())


def size_queues(seconds: Floats) -> Integers:
    """The queue of each job by the seconds of its tasks; the first where these are unknown."""
    thresholds = SMALL_SECONDS * 10.0 ** np.arange(9)
    known = np.where(np.isnan(seconds), 0.0, seconds)
    return np.searchsorted(thresholds, known, side="right").astype(np.int64)


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

    Jobs are looked at at ``when``: their submission, or when they were estimated; they are in
    ``queue`` from ``entered`` on. ``start`` and ``seconds`` are those of tasks, ``first_task`` is
    as above, ``slots`` are the cluster's.
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

    def measure(self) -> Mapping[str, float]:
        """The measures of this module, as far as the policy has estimates."""
        of_trace = (self.workload, self.history, self.seed)
        found, faster, slower = (
            replayed(*of_trace, policy) for policy in (self.policy, self.faster, self.slower)
        )
        first_task = first_tasks(found)
        runtime = found.stages.runtime_seconds
        size = np.add.reduceat(runtime, first_task[:-1])
        waits = normalised_waiting(found.submit, found.start, runtime, first_task)
        gain = speedup(completion(slower), completion(faster))
        return {
            "speedup": gain.average,
            "median_speedup": gain.median,
            "p90_speedup": gain.p90,
            "completion_seconds": float(completion(found).mean()),
            "normalised_waiting": float(np.nanmedian(waits)),
            **estimates(found.estimate, size, np.diff(first_task) >= THIN_BELOW),
        }


def completion(found: TasksReplayed) -> Floats:
    """Seconds from each job's submission to the end of its last task; shape (jobs,)."""
    return found.job_end - found.submit


def first_tasks(found: TasksReplayed) -> Integers:
    """Return where each job's tasks begin, and where the last one's end; shape (jobs + 1,)."""
    begins: Integers = found.stages.first_task[found.stages.first_stage]
    return begins


@lru_cache(maxsize=4)
def by_job(workload: str, history: str, seed: int, policy: str) -> Mapping[str, Floats]:
    """Waits, signed errors of wide jobs and work ahead of each job; nan where it has none.

    Shape (jobs,) each.
    """
    found = replayed(workload, history, seed, policy)
    first_task = first_tasks(found)
    runtime = found.stages.runtime_seconds
    known = np.where(found.pilots > 0, found.estimated, found.submit)
    error = signed_error_percent(found.estimate, found.stages.job_seconds) / 100.0
    queues, slots = size_queues(found.estimate), generated(workload, seed).processors
    return {
        "normalised_waiting": normalised_waiting(found.submit, found.start, runtime, first_task),
        "signed_error": np.where(np.diff(first_task) >= THIN_BELOW, error, np.nan),
        "resistance": resistance(known, queues, known, found.start, runtime, first_task, slots),
    }


def estimates(estimate: Floats, size: Floats, wide: Booleans) -> Mapping[str, float]:
    """Errors and queues of the wide jobs with an estimate; nothing without any."""
    known = wide & np.isfinite(estimate) & (size > 0.0)
    if not known.any():
        return {}
    error = np.abs(estimate[known] - size[known]) / size[known]
    right, low, high = queue_correctness(size_queues(estimate), size_queues(size), known)
    return {
        "error_median": float(np.quantile(error, 0.5)),
        "error_p90": float(np.quantile(error, 0.9)),
        "over_estimated": float((estimate[known] > size[known]).mean()),
        "right_queue": right,
        "too_low": low,
        "too_high": high,
    }


@lru_cache(maxsize=32)
def replayed(workload: str, history: str, seed: int, policy: str) -> TasksReplayed:
    """Replay the run under a policy that has learned the history; kept for other cases."""
    return replay_task_arrays(
        generated(workload, seed), parse_policy(policy), generated(history, seed)
    )
