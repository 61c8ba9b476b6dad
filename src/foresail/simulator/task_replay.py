"""The compiled replay of tasks: millions of them on equal slots, each in one of its own."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.control.policy import Policy
from foresail.kernels.calling import step_address
from foresail.kernels.columns import CPUS, SUBMIT, SUMMARY_COLUMNS, TASKS
from foresail.kernels.compile import Step
from foresail.kernels.heaps import HEAP_COLUMNS
from foresail.kernels.signatures import (
    CompiledPredictor,
    PredictorInputs,
    PredictorState,
    PredictorSteps,
)
from foresail.model.cluster import Partition
from foresail.model.errors import InputError
from foresail.model.event import EndedBecause
from foresail.model.protocols import Predictor, ProgressCallback
from foresail.predictors.training import END, SUBMISSION, order_of_events
from foresail.schedulers.kernels import task_jobs
from foresail.schedulers.kernels.task_jobs import TaskJobs
from foresail.schedulers.of_tasks.scheduler import QueuesTasks
from foresail.simulator.kernels import task_loop as _loop
from foresail.simulator.replay import submitted
from foresail.traces import schema
from foresail.traces.measured import TaskStages, task_stages
from foresail.traces.nodes import processors_of
from foresail.traces.schedule import Schedule, ScheduleMeta
from foresail.traces.workload import Workload

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SLOT_STAGE: Final = "stage"
"""The attribute that a stage's name is, for predictors that look at it."""
_WEEK_SECONDS: Final = 604_800.0


@dataclass(frozen=True)
class TasksReplayed:
    """A replay's arrays."""

    stages: TaskStages
    """The tasks, in the order of the following."""
    start: Floats
    end: Floats
    """Seconds; shape (tasks,)."""
    classes: tuple[str, ...]
    slot_class: Integers
    """What the classes of slots are called, the fastest first, and in which one each task ran; the
    latter has the shape (tasks,)."""
    queue: Integers
    """To which each task was charged; shape (tasks,)."""
    pilot: NDArray[np.bool_]
    """Whether it was a pilot; shape (tasks,)."""
    submit: Floats
    job_end: Floats
    """Seconds; shape (jobs,)."""
    estimate: Floats
    estimated: Floats
    """Seconds of all tasks of each job as the scheduler estimated them, and when; nan where it did
    not; shape (jobs,)."""
    pilots: Integers
    """How many pilots each job had; shape (jobs,)."""
    seconds: float
    """What the replay proper took."""


def steps_of_tasks(policy: Policy) -> tuple[Step, ...]:
    """Return the steps to compile for a replay under a policy of tasks, the longest first."""
    _, predictor, _ = policy.build()
    of_predictor: tuple[Step, ...] = getattr(predictor, "steps", ())
    return (_loop.task_loop, *of_predictor)


def replay_tasks(
    workload: Workload,
    policy: Policy,
    history: Workload | None = None,
    watch: ProgressCallback | None = None,
) -> Schedule:
    """Replay the tasks of a workload on as many slots as it has processors; a row for each.

    Slots are as fast as its nodes (``foresail.traces.nodes.processors_of``). Each task takes one
    processor, whatever it asked for. The policy's scheduler must let tasks start apart; its
    correction is not asked. The predictor has learned from the jobs of ``history`` before;
    ``watch`` is given a measure of the seconds of the log whose jobs have been submitted.

    Raises ``InputError`` if the tasks are not as ``task_stages`` wants them, or the predictor has
    no compiled steps.
    """
    result = replay_task_arrays(workload, policy, history, watch)
    return _schedule(workload, policy, result)


def replay_task_arrays(
    workload: Workload,
    policy: Policy,
    history: Workload | None = None,
    watch: ProgressCallback | None = None,
) -> TasksReplayed:
    """Replay like ``replay_tasks``, without making a table of the result."""
    scheduler, predictor, _ = policy.build()
    compiled = cast("QueuesTasks", scheduler).compiled_tasks()
    stages = task_stages(workload)
    submit = workload.jobs["submit_seconds"].to_numpy().astype(np.float64)
    classes = processors_of(workload).partitions
    queues = compiled.without_jobs(submit.size)
    deadlines = workload.jobs["deadline_seconds"].fill_null(math.nan)
    queues.queues.jobs[:, task_jobs.DEADLINE] = deadlines.to_numpy()
    asked = _NONE
    if compiled.asks_predictor:
        asked = _Asked.with_history(predictor, workload, stages, history, queues.pilots.proved)
    tables = _tables(queues, stages, submit, classes, asked)
    step_address(_loop.task_loop)  # compiled, if it is not yet, outside of what is measured
    if watch is not None:
        watch(submitted(submit, [tables.counters], _loop.ARRIVED))
    begin = time.perf_counter()
    _loop.task_loop(tables)
    seconds = time.perf_counter() - begin
    jobs = tables.scheduler.queues.jobs
    pilots = jobs[:, task_jobs.PILOTS_OF_JOB].astype(np.int64)
    of_class = tables.tasks[:, _loop.CLASS]
    return TasksReplayed(
        stages,
        tables.start,
        tables.start + stages.runtime_seconds * tables.slowdown[of_class],
        tuple(each.name for each in classes),
        of_class.copy(),
        tables.tasks[:, _loop.QUEUE].copy(),
        tables.tasks[:, _loop.PLACE] < pilots[tables.tasks[:, _loop.JOB]],
        submit,
        tables.end,
        jobs[:, task_jobs.ESTIMATE].copy(),
        jobs[:, task_jobs.ESTIMATED].copy(),
        pilots,
        seconds,
    )


@dataclass(frozen=True)
class _Asked:
    """A predictor's steps by address, and what they read and write, a slot per stage."""

    steps: Floats
    inputs: PredictorInputs

    @classmethod
    def with_history(
        cls,
        predictor: Predictor,
        workload: Workload,
        stages: TaskStages,
        history: Workload | None,
        proved: Floats,
    ) -> _Asked:
        """The predictor of a policy, which has learned from the history.

        What the history says of its beliefs is added to ``proved``.
        """
        if not predictor.is_compiled:
            raise InputError(
                "the predictor has no compiled steps",
                value=type(predictor).__name__,
                expected="one that has",
            )
        both = workload if history is None else _with_history(workload, history)
        known = [stages] if history is None else [stages, task_stages(history)]
        specs, features = _stage_specs(both, known)
        if predictor.needs_truth:
            means = np.concatenate([each.stage_seconds / each.width for each in known])
            predictor.reveal({str(slot): mean for slot, mean in enumerate(means.tolist())})
        steps, state = cast("CompiledPredictor", predictor).compiled(specs, features)
        asked = cls(_addresses(steps), _inputs(specs, state))
        if history is not None:
            _teach(asked, history, known[1], stages.width.size, proved)
        return asked


def _addresses(steps: PredictorSteps) -> Floats:
    addresses = np.zeros(_loop.STEPS)
    addresses[_loop.PREDICT] = step_address(steps.predict)
    addresses[_loop.NOTE_START] = step_address(steps.started)
    addresses[_loop.OBSERVE] = step_address(steps.observe)
    return addresses


def _inputs(specs: Floats, state: PredictorState) -> PredictorInputs:
    summaries = np.zeros((len(specs), SUMMARY_COLUMNS))
    return PredictorInputs(0, 0.0, 0.0, specs, state.model, state.users, state.jobs, summaries)


_NONE: Final = _Asked(
    np.zeros(_loop.STEPS),
    _inputs(np.zeros((1, 1)), PredictorState(np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1)))),
)


def _with_history(workload: Workload, history: Workload) -> Workload:
    """Both, with the history's jobs whole weeks earlier, so that they end before the first job."""
    ends = history.jobs["submit_seconds"] + history.jobs["runtime_seconds"].fill_null(0.0)
    late = float(ends.max()) - float(workload.jobs["submit_seconds"][0])  # type: ignore[arg-type]
    shift = math.ceil(max(late, 0.0) / _WEEK_SECONDS) * _WEEK_SECONDS
    earlier = history.jobs.with_columns(pl.col("submit_seconds") - shift)
    names = [name for name in workload.jobs.columns if name in earlier.columns]
    both = pl.concat([workload.jobs.select(names), earlier.select(names)])
    return workload.with_jobs(both)


def _stage_specs(both: Workload, known: list[TaskStages]) -> tuple[Floats, tuple[str, ...]]:
    """Specification rows of all stages, with the stage's name behind the source's features."""
    rows, begin = [], 0
    for stages in known:
        rows.append(stages.stage_job + begin)
        begin += stages.first_stage.size - 1
    of_job = both.specs[np.concatenate(rows)]
    width = np.concatenate([stages.width for stages in known])
    of_job[:, CPUS] *= width / of_job[:, TASKS]
    of_job[:, TASKS] = width
    names = pl.concat([stages.stage_name for stages in known]).rank("dense").to_numpy()
    specs = np.column_stack((of_job, names.astype(np.float64)))
    return np.ascontiguousarray(specs), (*both.feature_names, SLOT_STAGE)


def _teach(
    asked: _Asked, history: Workload, stages: TaskStages, first_slot: int, proved: Floats
) -> None:
    """Let the predictor learn the history, every stage as if it had begun with its job.

    Its beliefs are judged as soon as half of the jobs have taught it: a beginner's say little.
    """
    order = order_of_events(history, np.ones(len(history), dtype=np.bool_), "on_completion")
    shift = float(asked.inputs.specs[first_slot, SUBMIT] - history.jobs["submit_seconds"][0])
    mean = stages.stage_seconds / stages.width
    told = (order.kind == SUBMISSION) | (order.kind == END)
    jobs = order.slot[told]
    counts = np.diff(stages.first_stage)[jobs]
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    rows = np.repeat(stages.first_stage[jobs], counts) + within
    is_end = order.kind[told] == END
    ends = np.repeat(is_end, counts)
    learned = np.cumsum(is_end)
    experienced = np.zeros(len(history), dtype=np.bool_)
    experienced[jobs[~is_end]] = 2 * learned[~is_end] >= learned[-1]
    _loop.teach_loop(
        asked.steps,
        asked.inputs,
        rows + first_slot,
        np.repeat(order.time[told], counts) + shift,
        np.where(ends, mean[rows], np.nan),
        (within == 0) & np.repeat(experienced[jobs], counts),
        proved,
    )


def _tables(
    scheduler: TaskJobs,
    stages: TaskStages,
    submit: Floats,
    classes: Sequence[Partition],
    asked: _Asked,
) -> _loop.TaskReplay:
    tasks = stages.task.size
    width = stages.width
    free = np.array([each.total.cpus for each in classes]).astype(np.int64)
    rows = np.zeros((width.size + 1, _loop.STAGE_COLUMNS), dtype=np.int64)
    rows[:, _loop.FIRST_TASK] = stages.first_task
    rows[:, _loop.FIRST_AFTER] = stages.first_after
    rows[:-1, _loop.STAGE_JOB] = stages.stage_job
    rows[:-1, _loop.WAITS] = stages.waits
    rows[:-1, _loop.LEFT] = width
    return _loop.TaskReplay(
        scheduler=scheduler,
        free=free,
        slowdown=1.0 / np.array([each.speed for each in classes]),
        submit=submit,
        first_stage=stages.first_stage,
        stages=rows,
        after=stages.after,
        stage_of=np.repeat(np.arange(width.size), width),
        runtime=stages.runtime_seconds,
        start=np.full(tasks, np.nan),
        order=np.zeros(tasks, dtype=np.int64),
        tasks=np.zeros((tasks, _loop.TASK_COLUMNS), dtype=np.int64),
        told=np.zeros(tasks),
        end=np.full(submit.size, np.nan),
        ends=np.zeros((min(int(free.sum()), tasks), HEAP_COLUMNS)),
        counters=np.zeros(_loop.COUNTERS, dtype=np.int64),
        steps=asked.steps,
        predictor=asked.inputs,
    )


def _schedule(workload: Workload, policy: Policy, result: TasksReplayed) -> Schedule:
    stages = result.stages
    of_task = np.repeat(stages.stage_job, stages.width)
    names = stages.stage_name[np.repeat(np.arange(stages.width.size), stages.width)]
    jobs = workload.jobs[of_task]
    each = (result.estimate / stages.job_tasks)[of_task]
    known = np.where(result.start >= result.estimated[of_task], each, np.nan)
    count = of_task.size
    unknown = pl.Series([None]).new_from_index(0, count)
    table = pl.DataFrame(
        {
            "job_id": jobs["job_id"],
            "attempt": np.ones(count, dtype=np.int64),
            "submit_seconds": jobs["submit_seconds"],
            "start_seconds": result.start,
            "end_seconds": result.end,
            "cpus": np.ones(count),
            "user": jobs["user"],
            "requested_seconds": jobs["requested_seconds"],
            "predicted_seconds": pl.Series(known).fill_nan(None),
            "predicted_low_seconds": unknown,
            "predicted_high_seconds": unknown,
            "corrections": np.zeros(count, dtype=np.int64),
            "backfilled": np.zeros(count, dtype=np.bool_),
            "placement": pl.Series(result.classes).gather(result.slot_class),
            "ended_because": pl.Series([EndedBecause.COMPLETED.value]).new_from_index(0, count),
            "deadline_seconds": jobs["deadline_seconds"],
            "nominal_runtime_seconds": unknown,
            "accepted": unknown,
            "eligible_seconds": unknown,
            "stage": names,
            "tasks": pl.Series(stages.task).cast(pl.String),
        },
        schema_overrides={**schema.SCHEDULE, **schema.PARTS},
    )
    meta = ScheduleMeta(
        policy=policy.label,
        processors=workload.processors,
        workload=workload.meta.source,
        counters={"pilots": int(result.pilots.sum())},
        replay_seconds=result.seconds,
        manifest={"policy": policy.text},
    )
    return Schedule(table, meta)
