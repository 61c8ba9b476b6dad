"""The loop of the replay of tasks: submissions, ends of tasks, and offers of free slots.

Every decision is taken by ``foresail.schedulers.kernels.task_jobs``; the predictor's steps are
called by their addresses. At the same instant ends come first, in order of start, then submissions,
then one pass that fills the slots.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from foresail.kernels.compile import entry, merged_part, part
from foresail.kernels.heaps import TIME, heap_pop, heap_push
from foresail.kernels.steps import PREDICTOR_INPUTS, PredictorInputs, call_predictor_step
from foresail.schedulers.kernels import task_jobs
from foresail.schedulers.kernels.task_queues import READY, demote, launch, make_ready

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ARRIVED: Final = 0
RUNNING: Final = 1
STARTED: Final = 2
ENDED: Final = 3
COUNTERS: Final = 4
"""Jobs submitted, tasks that run, tasks started and ended so far."""

PREDICT: Final = 0
NOTE_START: Final = 1
OBSERVE: Final = 2
STEPS: Final = 3
"""Addresses of the predictor's steps; all 0 where none is asked."""

JOB: Final = 0
PLACE: Final = 1
QUEUE: Final = 2
CLASS: Final = 3
TASK_COLUMNS: Final = 4
"""A task's row once it has started: its job, its number within that, the queue charged, and the
class of its slot."""

FIRST_TASK: Final = 0
STAGE_JOB: Final = 1
WAITS: Final = 2
LEFT: Final = 3
FIRST_AFTER: Final = 4
STAGE_COLUMNS: Final = 5
"""A stage's row: where its tasks begin, its job, the stages it waits for that have not ended, its
tasks that have not ended, and where the stages that wait for it begin in ``after``. A last row
behind all has where tasks and ``after`` end."""


class TaskReplay(NamedTuple):
    """All that a replay works on."""

    scheduler: task_jobs.TaskJobs
    """Queues, jobs and estimates."""
    free: Integers
    slowdown: Floats
    """By class of slots, the fastest first: how many are free, and how many times longer tasks run
    there than at speed 1; shape (classes,)."""
    submit: Floats
    """Seconds, not descending; shape (jobs,)."""
    first_stage: Integers
    """Number of each job's first stage; shape (jobs + 1,)."""
    stages: Integers
    """Shape (stages + 1, STAGE_COLUMNS)."""
    after: Integers
    """Stages that wait for others, stage by stage."""
    stage_of: Integers
    """The stage of each task; shape (tasks,)."""
    runtime: Floats
    start: Floats
    """Seconds, the former at speed 1; shape (tasks,). The start is nan before."""
    order: Integers
    """Tasks of each job in the order in which they start; shape (tasks,)."""
    tasks: Integers
    """Shape (tasks, TASK_COLUMNS)."""
    runtimes: Floats
    """Seconds of ended pilots, from each job's first task on; shape (tasks,)."""
    end: Floats
    """End of each job, seconds; nan before; shape (jobs,)."""
    ends: Floats
    """The heap of ends; shape (slots, HEAP_COLUMNS)."""
    counters: Integers
    """Shape (COUNTERS,)."""
    steps: Floats
    """Shape (STEPS,)."""
    predictor: PredictorInputs
    """Numbers that its steps read and write, a slot per stage."""


_F = types.float64[::1]
_I = types.int64[::1]
_BOOLEANS = types.boolean[::1]
_ROWS = types.int64[:, ::1]
TASK_REPLAY = types.NamedTuple(
    (
        *(task_jobs.TASK_JOBS, _I, _F, _F, _I, _ROWS, _I, _I, _F, _F, _I, _ROWS, _F, _F),
        *(types.float64[:, ::1], _I, _F, PREDICTOR_INPUTS),
    ),
    TaskReplay,
)


@part
def _step(step: float, inputs: PredictorInputs, stage: int, now: float, seconds: float) -> None:
    """Let the predictor take one of its steps about a stage."""
    given = PredictorInputs(
        stage, now, seconds, inputs.specs, inputs.model, inputs.users, inputs.jobs, inputs.summaries
    )
    call_predictor_step(step, given)


@merged_part
def _predict(at: TaskReplay, job: int, now: float) -> None:
    """Ask what the job's stages are believed to take."""
    row = at.scheduler.queues.jobs[job]
    task_jobs.believe_nothing(row)
    if at.steps[PREDICT] == 0.0:
        return
    first, last = at.first_stage[job], at.first_stage[job + 1]
    for stage in range(first, last):
        _step(at.steps[PREDICT], at.predictor, stage, now, math.nan)
    task_jobs.believe(row, at.predictor.summaries[first:last], at.stages[first:last, LEFT])


@part
def _open(
    scheduler: task_jobs.TaskJobs, stages: Integers, order: Integers, begin: int, stage: int
) -> None:
    """Let the tasks of a stage follow those of its job that may start; ``begin`` is its first."""
    job = stages[stage, STAGE_JOB]
    first = stages[stage, FIRST_TASK]
    count = stages[stage + 1, FIRST_TASK] - first
    place = begin + int(scheduler.queues.jobs[job, READY])
    for i in range(count):
        order[place + i] = first + i
    make_ready(scheduler.queues, job, count)


@merged_part
def _submit(at: TaskReplay, now: float) -> None:
    job = at.counters[ARRIVED]
    at.counters[ARRIVED] += 1
    _predict(at, job, now)
    first, last = at.first_stage[job], at.first_stage[job + 1]
    begin, end = at.stages[first, FIRST_TASK], at.stages[last, FIRST_TASK]
    width = at.stages[first + 1, FIRST_TASK] - begin
    for task in range(begin, begin + width):
        at.order[task] = task
    first_order = at.order[begin : begin + width]
    task_jobs.submit_job(at.scheduler, job, job, first_order, end - begin, now)
    make_ready(at.scheduler.queues, job, width)
    for stage in range(first + 1, last):
        if at.stages[stage, WAITS] == 0:
            _open(at.scheduler, at.stages, at.order, begin, stage)


@part
def _observe(
    steps: Floats,
    predictor: PredictorInputs,
    stages: Integers,
    runtime: Floats,
    stage: int,
    now: float,
) -> None:
    """Let the predictor learn the mean runtime of a stage's tasks."""
    if steps[OBSERVE] == 0.0:
        return
    first, last = stages[stage, FIRST_TASK], stages[stage + 1, FIRST_TASK]
    total = 0.0
    for task in range(first, last):
        total += runtime[task]
    _step(steps[OBSERVE], predictor, stage, now, total / (last - first))


@merged_part
def _end_stage(at: TaskReplay, stage: int, begin: int, now: float) -> None:
    """Let the stages start that have waited for this one alone."""
    _observe(at.steps, at.predictor, at.stages, at.runtime, stage, now)
    for i in range(at.stages[stage, FIRST_AFTER], at.stages[stage + 1, FIRST_AFTER]):
        later = at.after[i]
        at.stages[later, WAITS] -= 1
        if at.stages[later, WAITS] == 0:
            _open(at.scheduler, at.stages, at.order, begin, later)


@merged_part
def _end(at: TaskReplay, now: float) -> None:
    """The earliest end of a task."""
    task = heap_pop(at.ends, at.counters[RUNNING])
    at.counters[RUNNING] -= 1
    at.counters[ENDED] += 1
    job, place, of_class = at.tasks[task, JOB], at.tasks[task, PLACE], at.tasks[task, CLASS]
    at.free[of_class] += 1
    stage = at.stage_of[task]
    begin = at.stages[at.first_stage[job], FIRST_TASK]
    runtimes = at.runtimes[begin : at.stages[at.first_stage[job] + 1, FIRST_TASK]]
    queue, slowdown = at.tasks[task, QUEUE], at.slowdown[of_class]
    last_pilot = task_jobs.end_task_of_job(
        at.scheduler, job, place, queue, at.start[task], now, slowdown, runtimes
    )
    at.stages[stage, LEFT] -= 1
    if at.stages[stage, LEFT] == 0:
        _end_stage(at, stage, begin, now)
    if last_pilot:
        task_jobs.estimate_job(at.scheduler, job, runtimes, now)
    row = at.scheduler.queues.jobs[job]
    if row[task_jobs.ENDED_TASKS] == row[task_jobs.TASKS]:
        at.end[job] = now
        task_jobs.end_job(at.scheduler, job, at.submit[job], now)


@merged_part
def _fill_slots(at: TaskReplay, now: float) -> None:
    """Offer free slots, the fastest first, until none is left, or no task may start."""
    queues = at.scheduler.queues
    # Before any offer: a job that has had its share of the queue is not offered from it.
    demote(queues, now)
    of_class = 0
    while of_class < at.free.size:
        if at.free[of_class] == 0:
            of_class += 1
            continue
        job, queue = task_jobs.next_offer(at.scheduler, now)
        if job < 0:
            return
        place = launch(queues, job, queue, now)
        first = at.first_stage[job]
        task = at.order[at.stages[first, FIRST_TASK] + place]
        at.start[task] = now
        at.tasks[task, JOB] = job
        at.tasks[task, PLACE] = place
        at.tasks[task, QUEUE] = queue
        at.tasks[task, CLASS] = of_class
        at.free[of_class] -= 1
        ends = now + at.runtime[task] * at.slowdown[of_class]
        heap_push(at.ends, at.counters[RUNNING], ends, at.counters[STARTED], task)
        at.counters[RUNNING] += 1
        at.counters[STARTED] += 1
        if at.steps[NOTE_START] != 0.0 and place == 0:
            _step(at.steps[NOTE_START], at.predictor, first, now, math.nan)


@entry(types.void(TASK_REPLAY))
def task_loop(at: TaskReplay) -> None:
    """Run all jobs to their ends."""
    jobs, counters = at.submit.size, at.counters
    while counters[ARRIVED] < jobs or counters[RUNNING] > 0:
        now = math.inf
        if counters[ARRIVED] < jobs:
            now = at.submit[counters[ARRIVED]]
        if counters[RUNNING] > 0:
            now = min(now, at.ends[0, TIME])
        while counters[RUNNING] > 0 and at.ends[0, TIME] <= now:
            _end(at, now)
        while counters[ARRIVED] < jobs and at.submit[counters[ARRIVED]] <= now:
            _submit(at, now)
        _fill_slots(at, now)


@entry(types.void(_F, PREDICTOR_INPUTS, _I, _F, _F, _BOOLEANS, types.float64[:, ::1]))
def teach_loop(
    steps: Floats,
    predictor: PredictorInputs,
    slots: Integers,
    times: Floats,
    seconds: Floats,
    judged: NDArray[np.bool_],
    proved: Floats,
) -> None:
    """Let a predictor learn what happened before, and note what its beliefs were worth.

    ``slots``, ``times`` and ``seconds`` say what happened, in order: to which slot, when, and the
    mean runtime of its tasks (nan where it was submitted); ``judged`` whether ``proved``
    (``pilots.nothing_proved``) learns the error of a belief about a job's first stage.
    """
    for i in range(slots.size):
        ends = not math.isnan(seconds[i])
        if ends and judged[i]:
            mean, variance = task_jobs.log_belief(predictor.summaries[slots[i]])
            task_jobs.judge_belief(proved, mean, variance, seconds[i])
        _step(steps[OBSERVE if ends else PREDICT], predictor, slots[i], times[i], seconds[i])
