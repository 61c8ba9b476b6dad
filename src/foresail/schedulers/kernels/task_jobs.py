"""The life of a job whose tasks start apart, as its scheduler sees it; who calls keeps the clock.

Who simulates or runs tasks says that a job was submitted, that a stage of it may start, that a task
has ended, and asks which task starts in a free slot. Everything else is decided here: the queue of
a new job, how many pilots it gets, what they show, and the queue that follows. The last functions
are called from Python, one event at a time.

Source: Jajoo et al., SLearn (NSDI 2022).
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from numba import types

from foresail.kernels.columns import PREDICTED, Q10, Q50, Q90
from foresail.kernels.compile import bare_kernel, part
from foresail.model.distribution import Floats, Integers
from foresail.schedulers.kernels import pilots as pilot_tasks
from foresail.schedulers.kernels import task_queues

ARRIVAL_ORDER: Final = 0
PREDICTION: Final = 1
SAMPLING: Final = 2
"""Source of a job's queue: nothing (all begin in the first), the predictor's belief about its
tasks, or its pilots."""

SOURCE: Final = 0
THIN_BELOW: Final = 1
WAY_NUMBERS: Final = 2
"""The way: one of the three, and the number of tasks below which jobs go to the first queue."""

TASKS: Final = task_queues.QUEUE_COLUMNS
PILOTS_OF_JOB: Final = task_queues.QUEUE_COLUMNS + 1
SEEN: Final = task_queues.QUEUE_COLUMNS + 2
RATIO: Final = task_queues.QUEUE_COLUMNS + 3
ESTIMATE: Final = task_queues.QUEUE_COLUMNS + 4
ESTIMATED: Final = task_queues.QUEUE_COLUMNS + 5
FIRST_TASKS: Final = task_queues.QUEUE_COLUMNS + 6
PRIOR: Final = task_queues.QUEUE_COLUMNS + 7
PRIOR_VARIANCE: Final = task_queues.QUEUE_COLUMNS + 8
OTHERS: Final = task_queues.QUEUE_COLUMNS + 9
ENDED_TASKS: Final = task_queues.QUEUE_COLUMNS + 10
SECONDS: Final = task_queues.QUEUE_COLUMNS + 11
FIRST_SECONDS: Final = task_queues.QUEUE_COLUMNS + 12
FIRST_SQUARES: Final = task_queues.QUEUE_COLUMNS + 13
ORDINAL: Final = task_queues.QUEUE_COLUMNS + 14
LOG_PRIOR: Final = task_queues.QUEUE_COLUMNS + 15
LOG_PRIOR_VARIANCE: Final = task_queues.QUEUE_COLUMNS + 16
DEADLINE: Final = task_queues.QUEUE_COLUMNS + 17
EACH: Final = task_queues.QUEUE_COLUMNS + 18
RELATIVE_VARIANCE: Final = task_queues.QUEUE_COLUMNS + 19
JOB_COLUMNS: Final = task_queues.QUEUE_COLUMNS + 20
"""A job's row, behind what the queues need: its tasks; its pilots, and how many of these have
ended; the ratio that it was given to learn about (0: none); the seconds of all its tasks as
estimated (nan: not) and when; the tasks of its first stage, the belief about their mean and its
variance, and the predicted seconds of all other stages' tasks (nan: unknown); tasks that have
ended, their seconds, and those of the first stage with their squares; how many jobs came before;
the belief about the logarithm of that mean, and its variance; its deadline (nan: none), which who
submits it writes; seconds of a task by its pilots, and their squared coefficient of variation."""

_TENTHS_APART: Final = 2.0 * 1.2815515655446004
"""Standard deviations between the 10 % and the 90 % quantile of a normal distribution."""


class TaskJobs(NamedTuple):
    """Queues with the jobs in them, and how these are estimated.

    ``queues.jobs`` has JOB_COLUMNS columns; ``way`` has the shape (WAY_NUMBERS,).
    """

    queues: task_queues.TaskQueues
    pilots: pilot_tasks.Pilots
    way: Floats


TASK_JOBS = types.NamedTuple(
    (task_queues.TASK_QUEUES, pilot_tasks.PILOTS, types.float64[::1]), TaskJobs
)


@part
def believe_nothing(row: Floats) -> None:
    """Note that nothing is believed of a job's stages."""
    for column in (PRIOR, PRIOR_VARIANCE, OTHERS, LOG_PRIOR, LOG_PRIOR_VARIANCE):
        row[column] = math.nan


@part
def log_belief(summary: Floats) -> tuple[float, float]:
    """Mean and variance of the logarithm of what a predictor believes; nan if it may be 0."""
    low, middle, high = summary[Q10], summary[Q50], summary[Q90]
    if not low > 0.0:
        return math.nan, math.nan
    spread = math.log(high / low) / _TENTHS_APART
    return math.log(middle), spread * spread


@part
def judge_belief(proved: Floats, log_mean: float, log_variance: float, seconds: float) -> None:
    """Note how a belief about the mean of a stage's tasks has turned out: they took ``seconds``."""
    if seconds > 0.0 and math.isfinite(log_mean):
        pilot_tasks.learn_error(proved, log_variance, math.log(seconds) - log_mean)


@part
def believe(row: Floats, summaries: Floats, widths: Integers) -> None:
    """Write what a predictor believes of a job's stages into its row.

    ``summaries`` are beliefs about the mean of each stage's tasks, a row a stage
    (``foresail.kernels.columns``), ``widths`` tasks of each stage.
    """
    row[PRIOR] = summaries[0, PREDICTED]
    spread = (summaries[0, Q90] - summaries[0, Q10]) / _TENTHS_APART
    row[PRIOR_VARIANCE] = spread * spread
    row[LOG_PRIOR], row[LOG_PRIOR_VARIANCE] = log_belief(summaries[0])
    others = 0.0
    for stage in range(1, widths.size):
        others += summaries[stage, PREDICTED] * widths[stage]
    row[OTHERS] = others


@part
def _sample(at: TaskJobs, job: int) -> int:
    """Return how many pilots a job gets."""
    row, numbers = at.queues.jobs[job], at.pilots.numbers
    width = int(row[FIRST_TASKS])
    percent = numbers[pilot_tasks.PERCENT]
    if percent == 0.0:
        row[RATIO] = pilot_tasks.ratio_percent(numbers, at.pilots.scores)
        percent = row[RATIO]
    else:
        numbers[pilot_tasks.ASKED] += 1.0
    return pilot_tasks.pilot_count(percent, width)


@part
def _predicted(row: Floats) -> float:
    """Seconds of all tasks of a job as the predictor has them."""
    return float(row[PRIOR] * row[FIRST_TASKS] + row[OTHERS])


@part
def _likely_queue(at: TaskJobs, row: Floats, spreads: float) -> int:
    """The queue of a job that has so many proved standard deviations more work than is believed.

    The last (or the first) as long as nothing is proved, or nothing is believed.
    """
    queues = at.queues.costs.size
    predicted = _predicted(row)
    variance = pilot_tasks.proved_variance(at.pilots.proved, row[LOG_PRIOR_VARIANCE])
    if not (predicted > 0.0 and math.isfinite(variance)):
        return queues - 1 if spreads > 0.0 else 0
    return int(
        task_queues.queue_of(at.queues.rules, queues, predicted * math.exp(spreads * variance**0.5))
    )


@part
def submit_job(
    at: TaskJobs, job: int, ordinal: int, first_order: Integers, tasks: int, now: float
) -> None:
    """A job comes, of whose stages the predictor's belief is in its row (or nan).

    ``ordinal`` jobs came before. ``first_order`` has the numbers of the first stage's tasks, in the
    order in which they are to start: the pilots are brought to the front. ``tasks`` are those of
    all stages.
    """
    queues, way = at.queues, at.way
    row = queues.jobs[job]
    row[TASKS] = tasks
    row[FIRST_TASKS] = first_order.size
    row[ORDINAL] = ordinal
    for column in (PILOTS_OF_JOB, SEEN, RATIO, ENDED_TASKS, SECONDS, FIRST_SECONDS, FIRST_SQUARES):
        row[column] = 0.0
    row[ESTIMATE] = math.nan
    row[ESTIMATED] = math.nan
    source = way[SOURCE]
    row[task_queues.DUE] = row[DEADLINE] if queues.rules[task_queues.BY_DUE] != 0.0 else math.nan
    if source == ARRIVAL_ORDER and math.isnan(row[task_queues.DUE]):
        row[task_queues.DUE] = math.inf
    pilots, meanwhile = 0, task_queues.NOWHERE
    # History instead of pilots where it errs less, or where the queue is the same either way.
    if source == SAMPLING and tasks >= way[THIN_BELOW]:
        pilots = _sample(at, job)
        numbers = at.pilots.numbers
        does = False
        if numbers[pilot_tasks.CHOOSES] != 0.0:
            does = pilot_tasks.history_is_surer(numbers, row[PRIOR], row[PRIOR_VARIANCE], pilots)
        if numbers[pilot_tasks.SPREADS] > 0.0:
            meanwhile = _likely_queue(at, row, numbers[pilot_tasks.SPREADS])
            does = _likely_queue(at, row, -numbers[pilot_tasks.SPREADS]) == meanwhile
        if does:
            source = PREDICTION
            row[RATIO] = 0.0
    if source == SAMPLING and pilots > 0:
        row[PILOTS_OF_JOB] = pilots
        pilot_tasks.draw_pilots(
            first_order, first_order.size, pilots, int(at.pilots.numbers[pilot_tasks.SEED]), ordinal
        )
        sampling = int(queues.rules[task_queues.SAMPLING_QUEUE])
        if not math.isnan(row[task_queues.DUE]):
            task_queues.submit(queues, job, 0, math.inf, task_queues.NOWHERE, now)
        elif meanwhile == task_queues.NOWHERE or meanwhile > sampling:
            task_queues.submit(queues, job, sampling, float(pilots), meanwhile, now)
        else:
            task_queues.submit(queues, job, meanwhile, math.inf, meanwhile, now)
        return
    queue = 0
    if source == PREDICTION:
        row[ESTIMATE] = _predicted(row)
        row[ESTIMATED] = now
        row[EACH] = row[ESTIMATE] / tasks
        row[RELATIVE_VARIANCE] = pilot_tasks.usual_variation(at.pilots.numbers)
        if tasks >= way[THIN_BELOW] and math.isnan(row[task_queues.DUE]):
            queue = task_queues.queue_of(queues.rules, queues.costs.size, row[ESTIMATE])
    task_queues.submit(queues, job, queue, math.inf, task_queues.NOWHERE, now)


@part
def _learn_running(at: TaskJobs, held: float, seconds: float) -> None:
    """Note how many tasks run at once at most, how long one held its slot, and at speed 1."""
    numbers = at.pilots.numbers
    running = 1.0  # the one that has ended
    for used in at.queues.used:
        running += used
    numbers[pilot_tasks.MOST_RUNNING] = max(numbers[pilot_tasks.MOST_RUNNING], running)
    numbers[pilot_tasks.HELD] += held
    numbers[pilot_tasks.WORKED] += seconds


@part
def end_task_of_job(
    at: TaskJobs,
    job: int,
    place: int,
    queue: int,
    start: float,
    now: float,
    slowdown: float,
    pilot_seconds: Floats,
) -> bool:
    """A task of a job has ended; returns whether it was the last pilot.

    What is learned of it are the seconds that it would have run at speed 1 (it ran ``slowdown``
    times longer); who counts the service of jobs counts for how long they hold slots. It was the
    ``place``-th of the job's tasks to start, from 0, charged to a queue. ``pilot_seconds`` are
    those of each of the job's pilots that have ended, as long as the first stage has tasks.
    """
    queues = at.queues
    row = queues.jobs[job]
    task_queues.end_task(queues, job, queue, start, now)
    held = now - start
    seconds = held / slowdown
    if at.pilots.numbers[pilot_tasks.HOPELESS_BELOW] != 0.0:
        _learn_running(at, held, seconds)
    row[ENDED_TASKS] += 1.0
    row[SECONDS] += seconds
    if place < row[FIRST_TASKS]:
        row[FIRST_SECONDS] += seconds
        row[FIRST_SQUARES] += seconds * seconds
    # Pilots are the first in the order of starts.
    if place >= row[PILOTS_OF_JOB]:
        return False
    pilot_seconds[int(row[SEEN])] = seconds
    row[SEEN] += 1.0
    return bool(row[SEEN] == row[PILOTS_OF_JOB])


@part
def _fair_slots(at: TaskJobs, queue: int) -> float:
    """The slots that the first job of a queue has, beside the queues in which others wait."""
    costs = at.queues.costs
    weights = 0.0
    for other in range(costs.size):
        if other == queue or at.queues.waiting[other] > 0:
            weights += 1.0 / costs[other]
    return float(max(at.pilots.numbers[pilot_tasks.MOST_RUNNING] / costs[queue] / weights, 1.0))


@part
def _is_hopeless(at: TaskJobs, job: int, queue: int, now: float) -> bool:
    """Return whether a job that is due has too small odds to be in time, if it starts a task now.

    Tasks of later stages count as if they could start, too.
    """
    row = at.queues.jobs[job]
    if math.isnan(row[task_queues.DUE]):
        return False
    left = row[task_queues.DUE] - now
    if math.isnan(row[ESTIMATED]):
        return bool(left <= 0.0)
    tasks = row[TASKS] - row[task_queues.LAUNCHED]
    numbers = at.pilots.numbers
    usual = (
        numbers[pilot_tasks.HELD] / numbers[pilot_tasks.WORKED]
        if numbers[pilot_tasks.WORKED] > 0.0
        else 1.0
    )
    each = row[EACH] * usual
    odds = pilot_tasks.in_time(each, row[RELATIVE_VARIANCE], tasks, _fair_slots(at, queue), left)
    return bool(odds < numbers[pilot_tasks.HOPELESS_BELOW])


@part
def next_offer(at: TaskJobs, now: float) -> tuple[int, int]:
    """The job whose task is to start next, and the queue it would be charged to; as ``offered``.

    A job whose turn comes and that is hopeless is no longer due: it goes to the queue for its size,
    but below the first, where others are due.
    """
    queues = at.queues
    job, queue = task_queues.offered(queues)
    if at.pilots.numbers[pilot_tasks.HOPELESS_BELOW] == 0.0:
        return job, queue
    while job != task_queues.NOWHERE and _is_hopeless(at, job, queue, now):
        row = queues.jobs[job]
        row[task_queues.DUE] = math.nan
        later = int(queues.rules[task_queues.SAMPLING_QUEUE])
        if not math.isnan(row[ESTIMATED]):
            later = max(later, task_queues.queue_of(queues.rules, queues.costs.size, row[ESTIMATE]))
        task_queues.enter(queues, job, later, now)
        job, queue = task_queues.offered(queues)
    return job, queue


@part
def estimate_job(at: TaskJobs, job: int, pilot_seconds: Floats, now: float) -> None:
    """Put a job whose pilots have ended, after so many seconds, into its next queue."""
    row = at.queues.jobs[job]
    each = pilot_tasks.task_seconds(
        at.pilots.numbers,
        pilot_seconds[: int(row[PILOTS_OF_JOB])],
        pilot_tasks.Prior(
            row[PRIOR],
            row[PRIOR_VARIANCE],
            row[LOG_PRIOR],
            pilot_tasks.proved_variance(at.pilots.proved, row[LOG_PRIOR_VARIANCE]),
        ),
    )
    first = row[FIRST_TASKS]
    share = (row[TASKS] - first) / first
    row[ESTIMATE] = pilot_tasks.total_seconds(each * first, row[PRIOR] * first, row[OTHERS], share)
    row[EACH] = each
    row[RELATIVE_VARIANCE] = pilot_tasks.relative_variance(
        at.pilots.numbers, pilot_seconds[: int(row[PILOTS_OF_JOB])]
    )
    row[ESTIMATED] = now
    if math.isnan(row[task_queues.DUE]):
        task_queues.end_sampling(at.queues, job, row[ESTIMATE], now)


@bare_kernel
def end_job(at: TaskJobs, job: int, submitted: float, now: float) -> None:
    """All tasks of a job have ended: its ratio of pilots is judged, and what was believed of it."""
    row = at.queues.jobs[job]
    mean = row[FIRST_SECONDS] / row[FIRST_TASKS]
    judge_belief(at.pilots.proved, row[LOG_PRIOR], row[LOG_PRIOR_VARIANCE], mean)
    pilot_tasks.learn_variation(
        at.pilots.numbers, row[FIRST_TASKS], row[FIRST_SECONDS], row[FIRST_SQUARES]
    )
    if row[RATIO] > 0.0 and row[SECONDS] > 0.0:
        pilot_tasks.learn_ratio(at.pilots.scores, int(row[RATIO]), (now - submitted) / row[SECONDS])


@bare_kernel
def submit_unbelieved(
    at: TaskJobs, job: int, first_order: Integers, tasks: int, now: float
) -> None:
    """A job of which nothing is believed comes, after as many others as its row has before it."""
    believe_nothing(at.queues.jobs[job])
    submit_job(at, job, job, first_order, tasks, now)
    task_queues.make_ready(at.queues, job, first_order.size)


@bare_kernel
def note_end(
    at: TaskJobs,
    job: int,
    place: int,
    queue: int,
    start: float,
    now: float,
    slowdown: float,
    pilot_seconds: Floats,
) -> None:
    """A task has ended; see ``end_task_of_job``."""
    if end_task_of_job(at, job, place, queue, start, now, slowdown, pilot_seconds):
        estimate_job(at, job, pilot_seconds, now)


@bare_kernel
def next_task(at: TaskJobs, now: float) -> tuple[int, int, int]:
    """The job whose task is to start next, the queue it would be charged to, and which it is.

    The first is negative if none may start.
    """
    job, queue = next_offer(at, now)
    place = -1 if job < 0 else int(at.queues.jobs[job, task_queues.LAUNCHED])
    return job, queue, place
