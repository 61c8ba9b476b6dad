"""The compiled replay of tasks: millions of them on equal slots, each in one of its own."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.control.policy import Policy
from foresail.kernels.compile import Step
from foresail.kernels.heaps import HEAP_COLUMNS
from foresail.kernels.steps import step_address
from foresail.model.event import EndedBecause
from foresail.model.protocols import ProgressCallback
from foresail.schedulers.kernels import task_jobs
from foresail.schedulers.kernels.task_jobs import TaskJobs
from foresail.schedulers.of_tasks.scheduler import QueuesTasks
from foresail.simulator.kernels import task_loop as _loop
from foresail.simulator.replay import submitted
from foresail.simulator.task_beliefs import NOT_ASKED, AskedPredictor
from foresail.traces.measured import TaskStages, task_stages
from foresail.traces.nodes import processors_of
from foresail.traces.schedule import Schedule, ScheduleMeta
from foresail.traces.workload import Workload

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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
    """Names of the classes of slots, the fastest first, and in which one each task ran; the latter
    has the shape (tasks,)."""
    queue: Integers
    """Queue charged with each task; shape (tasks,)."""
    pilot: NDArray[np.bool_]
    """True for pilots; shape (tasks,)."""
    submit: Floats
    job_end: Floats
    """Seconds; shape (jobs,)."""
    estimate: Floats
    estimated: Floats
    """Seconds of all tasks of each job as the scheduler estimated them, and when; nan where it did
    not; shape (jobs,)."""
    pilots: Integers
    """Number of pilots of each job; shape (jobs,)."""
    seconds: float
    """Time that the replay proper took."""


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
    asked = NOT_ASKED
    if compiled.asks_predictor:
        asked = AskedPredictor.with_history(
            predictor, workload, stages, history, queues.pilots.proved
        )
    slots = np.array([each.total.cpus for each in classes]).astype(np.int64)
    slowdown = 1.0 / np.array([each.speed for each in classes])
    tables = _tables(queues, stages, submit, slots, slowdown, asked)
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


def _tables(
    scheduler: TaskJobs,
    stages: TaskStages,
    submit: Floats,
    slots: Integers,
    slowdown: Floats,
    asked: AskedPredictor,
) -> _loop.TaskReplay:
    tasks = stages.task.size
    width = stages.width
    rows = np.zeros((width.size + 1, _loop.STAGE_COLUMNS), dtype=np.int64)
    rows[:, _loop.FIRST_TASK] = stages.first_task
    rows[:, _loop.FIRST_AFTER] = stages.first_after
    rows[:-1, _loop.STAGE_JOB] = stages.stage_job
    rows[:-1, _loop.WAITS] = stages.waits
    rows[:-1, _loop.LEFT] = width
    return _loop.TaskReplay(
        scheduler=scheduler,
        free=slots,
        slowdown=slowdown,
        submit=submit,
        first_stage=stages.first_stage,
        stages=rows,
        after=stages.after,
        stage_of=np.repeat(np.arange(width.size), width),
        runtime=stages.runtime_seconds,
        start=np.full(tasks, np.nan),
        order=np.zeros(tasks, dtype=np.int64),
        tasks=np.zeros((tasks, _loop.TASK_COLUMNS), dtype=np.int64),
        runtimes=np.zeros(tasks),
        end=np.full(submit.size, np.nan),
        ends=np.zeros((min(int(slots.sum()), tasks), HEAP_COLUMNS)),
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
    return Schedule.from_columns(
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
            "corrections": np.zeros(count, dtype=np.int64),
            "backfilled": np.zeros(count, dtype=np.bool_),
            "placement": pl.Series(result.classes).gather(result.slot_class),
            "ended_because": pl.Series([EndedBecause.COMPLETED.value]).new_from_index(0, count),
            "deadline_seconds": jobs["deadline_seconds"],
            "stage": names,
            "tasks": pl.Series(stages.task).cast(pl.String),
        },
        ScheduleMeta(
            policy=policy.label,
            processors=workload.processors,
            workload=workload.meta.source,
            counters={"pilots": int(result.pilots.sum())},
            replay_seconds=result.seconds,
            manifest={"policy": policy.text},
        ),
    )
