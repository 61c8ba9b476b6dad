"""3Sigma's predictor as compiled steps: the history of the feature-value that predicted best.

An expert is a feature-value with one of its estimators. What every expert of a job says at its
submission is kept with the job and scored when it has ended, so nothing is scored on what it had
seen. The expert with the least error names the feature-value whose history is the belief.

Source: J. W. Park's dissertation (JVuPredict and 3Sigma), chapter 4.
"""

from __future__ import annotations

import math
from typing import Final

from foresail.distributions.kernels.streaming_histogram import (
    CENTROIDS,
    COUNT,
    LARGEST,
    SMALLEST,
    USED,
    fill_histogram_belief,
    summarise_histogram,
)
from foresail.distributions.kernels.summary import summarise_point
from foresail.kernels.borrowed import room
from foresail.kernels.columns import REQUESTED
from foresail.kernels.compile import Floats, bare_kernel, bare_step, part
from foresail.kernels.steps import BELIEF_STEP, PREDICTOR_STEP, PredictorInputs
from foresail.predictors.kernels import experience, history_table
from foresail.predictors.kernels.members import fill_point_belief
from foresail.predictors.kernels.request import DAY_SECONDS

REMOVED: Final = 6
"""Numbers of a row that a cut overwrites: its smallest and largest value and how many bins are
used, then which bin, and what its centroid and its count were."""


@bare_kernel
def cut_histogram(row: Floats, limit: float, removed: Floats) -> None:
    """Make the bins beyond the limit one bin there; ``removed`` is filled for ``uncut_histogram``.

    Of merged bins, half of the last one's count is spread down to the centroid before, as in any
    merged histogram.
    """
    counts = CENTROIDS + (row.size - CENTROIDS) // 2
    used = int(row[USED])
    kept = used
    beyond = 0.0
    if row[LARGEST] > limit:
        kept = 0
        for i in range(used):
            if row[CENTROIDS + i] < limit:
                kept += 1
            else:
                beyond += row[counts + i]
    # The row is cut in place, and put back after it was read: a copy would cost more than the cut.
    removed[0], removed[1], removed[2] = row[SMALLEST], row[LARGEST], row[USED]
    removed[3], removed[4], removed[5] = kept, row[CENTROIDS + kept], row[counts + kept]
    if row[LARGEST] <= limit:
        return
    row[SMALLEST] = min(row[SMALLEST], limit)
    row[LARGEST] = limit
    row[USED] = kept
    if beyond > 0.0:
        row[CENTROIDS + kept] = limit
        row[counts + kept] = beyond
        row[USED] += 1.0


@part
def uncut_histogram(row: Floats, removed: Floats) -> None:
    """Make the row what it was before it was cut."""
    counts = CENTROIDS + (row.size - CENTROIDS) // 2
    kept = int(removed[3])
    row[SMALLEST], row[LARGEST], row[USED] = removed[0], removed[1], removed[2]
    row[CENTROIDS + kept], row[counts + kept] = removed[4], removed[5]


LIMITED: Final = experience.EXPERIENCE_HEAD
POINT_ONLY: Final = experience.EXPERIENCE_HEAD + 1
CLOCK: Final = experience.EXPERIENCE_HEAD + 2
LEARNED: Final = experience.EXPERIENCE_HEAD + 3
HEAD_COLUMNS: Final = experience.EXPERIENCE_HEAD + 4
"""The head, continued: whether beliefs end at the requested time, whether they are the winning
estimate alone (1 or 0 each), the time of the latest event, and how many jobs were learned. Of a
job without a limit a day is believed before any has ended."""

EXPERT: Final = 0
ROW: Final = 1
ESTIMATES: Final = 2
"""A job's row: the expert that was followed (the number of the feature times the number of
estimators, plus the estimator; -1 for none), the row of its feature-value in the table, and what
every expert of the job said (nan: nothing). The last feature is the one without attributes."""

NO_EXPERT: Final = -1.0


def job_columns(features: int) -> int:
    """Length of a job's row."""
    return ESTIMATES + features * experience.ESTIMATORS


@part
def _clock(model: Floats, now: float) -> float:
    """Time that never goes backwards."""
    model[CLOCK] = max(model[CLOCK], now)
    return float(model[CLOCK])


@part
def ask(model: Floats, spec: Floats, job: Floats) -> None:
    """Write what each expert says into the job's row, and which one to follow.

    That with the least error; of equal ones that with more values, then the first. Where none was
    scored yet, the mean of the feature-value of most attributes that has any value; then what is
    known of all jobs.
    """
    job[EXPERT] = NO_EXPERT
    all_jobs = int(model[history_table.FEATURES]) - 1
    for i in range(ESTIMATES, job.size):
        job[i] = math.nan
    key = room(history_table.KEY_COLUMNS)
    least, most_values = math.inf, 0.0
    most_attributes = 0.0
    scored = False
    for number in range(all_jobs + 1):
        place = history_table.feature_place(model, number)
        if not history_table.fill_key(
            number, model[place : place + history_table.FEATURE_COLUMNS], spec, key
        ):
            continue
        at = history_table.find_row(model, key)
        if at < 0:
            continue
        history_table.touch(model, at)
        begin = history_table.row_place(model, at)
        row = model[begin : begin + int(model[history_table.ROW_COLUMNS])]
        histogram = experience.histogram_place(model)
        values = row[histogram + COUNT]
        if values == 0.0:
            continue
        if not scored and model[place] > most_attributes:
            most_attributes = model[place]
            job[EXPERT], job[ROW] = number * experience.ESTIMATORS + experience.MEAN, at
        if number == all_jobs and job[EXPERT] == NO_EXPERT:
            job[EXPERT], job[ROW] = number * experience.ESTIMATORS + experience.MEAN, at
        for estimator in range(experience.ESTIMATORS):
            job[ESTIMATES + number * experience.ESTIMATORS + estimator] = experience.estimate(
                row, histogram, estimator
            )
            error = experience.score(row, estimator)
            # What is known of all jobs stands in, and never competes.
            if number == all_jobs or math.isnan(error):
                continue
            better = error < least or (error == least and values > most_values)
            if not scored or better:
                scored = True
                least, most_values = error, values
                job[EXPERT], job[ROW] = number * experience.ESTIMATORS + estimator, at


@bare_kernel
def winner_histogram(model: Floats, job: Floats) -> int:
    """Return where in the model the winning feature-value's history begins; the job has one."""
    return history_table.row_place(model, int(job[ROW])) + experience.histogram_place(model)


@bare_kernel
def belief_end(model: Floats, spec: Floats) -> float:
    """Return where beliefs about a job end."""
    return spec[REQUESTED] if model[LIMITED] != 0.0 else math.inf


@bare_step(PREDICTOR_STEP)
def predict(inputs: PredictorInputs) -> None:
    """Follow the best expert; without any, the limit or what stands for it."""
    model, job, spec = inputs.model, inputs.jobs[inputs.slot], inputs.specs[inputs.slot]
    summary = inputs.summaries[inputs.slot]
    _clock(model, inputs.now)
    ask(model, spec, job)
    limit = belief_end(model, spec)
    if job[EXPERT] == NO_EXPERT:
        summarise_point(limit if math.isfinite(limit) else DAY_SECONDS, summary)
    elif model[POINT_ONLY] != 0.0:
        summarise_point(min(job[ESTIMATES + int(job[EXPERT])], limit), summary)
    else:
        begin = winner_histogram(model, job)
        histogram = model[begin : begin + experience.histogram_size(model)]
        removed = room(REMOVED)
        cut_histogram(histogram, limit, removed)
        summarise_histogram(histogram, summary)
        uncut_histogram(histogram, removed)


@part
def _row_to_learn(inputs: PredictorInputs, number: int, key: Floats) -> int:
    """Return where the row of a job's feature-value begins, its experts scored; -1: no value.

    ``key`` is room to work in.
    """
    model = inputs.model
    place = history_table.feature_place(model, number)
    feature = model[place : place + history_table.FEATURE_COLUMNS]
    if not history_table.fill_key(number, feature, inputs.specs[inputs.slot], key):
        return -1
    at = history_table.find_row(model, key)
    if at < 0:
        at = history_table.make_row(model, key)
    else:
        history_table.touch(model, at)
    begin = history_table.row_place(model, at)
    row = model[begin : begin + int(model[history_table.ROW_COLUMNS])]
    first = ESTIMATES + number * experience.ESTIMATORS
    estimates = inputs.jobs[inputs.slot, first : first + experience.ESTIMATORS]
    experience.mark(row, estimates, inputs.runtime)
    return begin


@bare_step(PREDICTOR_STEP)
def observe(inputs: PredictorInputs) -> None:
    """Score the job's experts, and add the runtime to the history of all its feature-values."""
    model, runtime = inputs.model, inputs.runtime
    if not math.isfinite(runtime) or runtime < 0.0:
        return
    now = _clock(model, inputs.now)
    key = room(history_table.KEY_COLUMNS)
    for number in range(int(model[history_table.FEATURES])):
        begin = _row_to_learn(inputs, number, key)
        if begin >= 0:
            row = model[begin : begin + int(model[history_table.ROW_COLUMNS])]
            if model[experience.ALARM_LEVEL] < math.inf:
                experience.watch(model, row, runtime)
            experience.take(model, row, now, runtime)
    model[LEARNED] += 1.0


@bare_step(BELIEF_STEP)
def belief(inputs: PredictorInputs, row: Floats) -> None:
    """The quantiles of the winner's history, to be asked before another event changes that."""
    model, job = inputs.model, inputs.jobs[inputs.slot]
    if job[EXPERT] == NO_EXPERT or model[POINT_ONLY] != 0.0:
        fill_point_belief(inputs, row)
        return
    begin = winner_histogram(model, job)
    histogram = model[begin : begin + experience.histogram_size(model)]
    removed = room(REMOVED)
    cut_histogram(histogram, belief_end(model, inputs.specs[inputs.slot]), removed)
    fill_histogram_belief(histogram, row)
    uncut_histogram(histogram, removed)
