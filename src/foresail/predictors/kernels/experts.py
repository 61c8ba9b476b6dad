"""3Sigma's predictor as compiled steps: the history of the feature-value that predicted best.

An expert is a feature-value with one of its estimators. What every expert of a job says at its
submission is kept with the job and scored when it has ended, so nothing is scored on what it had
seen. The expert with the least error names the feature-value whose history is the belief.

Source: spec 3sigma-distsched section 3.1; golden value G5.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.kernels.streaming_histogram import (
    COUNT,
    fill_histogram_belief,
    summarise_histogram,
)
from foresail.distributions.kernels.summary import summarise_point
from foresail.kernels.borrowed import room
from foresail.kernels.columns import REQUESTED
from foresail.kernels.compile import bare_kernel, bare_step, part
from foresail.kernels.signatures import BELIEF_STEP, PREDICTOR_STEP, PredictorInputs
from foresail.predictors.kernels.belief import fill_point_belief
from foresail.predictors.kernels.cut_histogram import REMOVED, cut_histogram, uncut_histogram
from foresail.predictors.kernels.experience import (
    ALARM_LEVEL,
    ESTIMATORS,
    EXPERIENCE_HEAD,
    HISTOGRAM,
    MEAN,
    age,
    begin_panes,
    estimate,
    histogram_size,
    mark,
    score,
    speaking_pane,
    take,
    watch,
)
from foresail.predictors.kernels.feature_values import FEATURE_COLUMNS, KEY_COLUMNS, fill_key
from foresail.predictors.kernels.history_table import (
    FEATURES,
    ROW_COLUMNS,
    feature_place,
    find_row,
    make_row,
    row_place,
    touch,
)

LIMITED: Final = EXPERIENCE_HEAD
POINT_ONLY: Final = EXPERIENCE_HEAD + 1
UNKNOWN: Final = EXPERIENCE_HEAD + 2
CLOCK: Final = EXPERIENCE_HEAD + 3
LEARNED: Final = EXPERIENCE_HEAD + 4
HEAD_COLUMNS: Final = EXPERIENCE_HEAD + 5
"""The head, continued: whether beliefs end at the requested time, whether they are the winning
estimate alone (1 or 0 each), what to believe of a job without a limit before any has ended (nan:
nothing is believed), the latest time of which an event told, and how many jobs were learned."""

EXPERT: Final = 0
ROW: Final = 1
ESTIMATES: Final = 2
"""A job's row: the expert that was followed (the number of the feature times the number of
estimators, plus the estimator; -1 for none), the row of its feature-value in the table, and what
every expert of the job said (nan: nothing). The last feature is the one without attributes."""

NO_EXPERT: Final = -1.0


def job_columns(features: int) -> int:
    """Length of a job's row."""
    return ESTIMATES + features * ESTIMATORS


@part
def _clock(model: NDArray[np.float64], now: float) -> float:
    """Time that never goes backwards."""
    model[CLOCK] = max(model[CLOCK], now)
    return float(model[CLOCK])


@part
def ask(
    model: NDArray[np.float64], spec: NDArray[np.float64], job: NDArray[np.float64], now: float
) -> None:
    """Write what each expert says into the job's row, and which one to follow.

    That with the least error; of equal ones that with more values, then the first. Where none was
    scored yet, the mean of the feature-value of most attributes that has any value; then what is
    known of all jobs.
    """
    job[EXPERT] = NO_EXPERT
    all_jobs = int(model[FEATURES]) - 1
    for i in range(ESTIMATES, job.size):
        job[i] = math.nan
    key = room(KEY_COLUMNS)
    least, most_values = math.inf, 0.0
    most_attributes = 0.0
    scored = False
    for number in range(all_jobs + 1):
        place = feature_place(model, number)
        if not fill_key(number, model[place : place + FEATURE_COLUMNS], spec, key):
            continue
        at = find_row(model, key)
        if at < 0:
            continue
        touch(model, at)
        begin = row_place(model, at)
        row = model[begin : begin + int(model[ROW_COLUMNS])]
        begin_panes(model, row, now)
        pane = speaking_pane(model, now)
        values = row[pane + HISTOGRAM + COUNT]
        if values == 0.0:
            continue
        if not scored and model[place] > most_attributes:
            most_attributes = model[place]
            job[EXPERT], job[ROW] = number * ESTIMATORS + MEAN, at
        if number == all_jobs and job[EXPERT] == NO_EXPERT:
            job[EXPERT], job[ROW] = number * ESTIMATORS + MEAN, at
        for estimator in range(ESTIMATORS):
            job[ESTIMATES + number * ESTIMATORS + estimator] = estimate(row, pane, estimator)
            error = score(row, pane, estimator)
            if number == all_jobs or math.isnan(error):
                continue
            better = error < least or (error == least and values > most_values)
            if not scored or better:
                scored = True
                least, most_values = error, values
                job[EXPERT], job[ROW] = number * ESTIMATORS + estimator, at


@bare_kernel
def winner_histogram(model: NDArray[np.float64], job: NDArray[np.float64]) -> int:
    """Where in the model the history of the winning feature-value begins; the job has one."""
    return row_place(model, int(job[ROW])) + speaking_pane(model, model[CLOCK]) + HISTOGRAM


@bare_kernel
def belief_end(model: NDArray[np.float64], spec: NDArray[np.float64]) -> float:
    """Where beliefs about a job end."""
    return spec[REQUESTED] if model[LIMITED] != 0.0 else math.inf


@bare_step(PREDICTOR_STEP)
def predict(inputs: PredictorInputs) -> None:
    """Follow the best expert; without any, the limit or what stands for it."""
    model, job, spec = inputs.model, inputs.jobs[inputs.slot], inputs.specs[inputs.slot]
    summary = inputs.summaries[inputs.slot]
    ask(model, spec, job, _clock(model, inputs.now))
    limit = belief_end(model, spec)
    if job[EXPERT] == NO_EXPERT:
        summarise_point(limit if math.isfinite(limit) else model[UNKNOWN], summary)
    elif model[POINT_ONLY] != 0.0:
        summarise_point(min(job[ESTIMATES + int(job[EXPERT])], limit), summary)
    else:
        begin = winner_histogram(model, job)
        histogram = model[begin : begin + histogram_size(model)]
        removed = room(REMOVED)
        cut_histogram(histogram, limit, removed)
        summarise_histogram(histogram, summary)
        uncut_histogram(histogram, removed)


@part
def _row_to_learn(inputs: PredictorInputs, number: int, key: NDArray[np.float64]) -> int:
    """Where the row of one of the job's feature-values begins, its experts scored; -1: no value.

    ``key`` is room to work in.
    """
    model = inputs.model
    place = feature_place(model, number)
    feature = model[place : place + FEATURE_COLUMNS]
    if not fill_key(number, feature, inputs.specs[inputs.slot], key):
        return -1
    at = find_row(model, key)
    if at < 0:
        at = make_row(model, key)
    else:
        touch(model, at)
    begin = row_place(model, at)
    row = model[begin : begin + int(model[ROW_COLUMNS])]
    begin_panes(model, row, model[CLOCK])
    first = ESTIMATES + number * ESTIMATORS
    estimates = inputs.jobs[inputs.slot, first : first + ESTIMATORS]
    mark(model, row, estimates, inputs.runtime)
    return begin


@bare_step(PREDICTOR_STEP)
def observe(inputs: PredictorInputs) -> None:
    """Score the job's experts, and add the runtime to the history of all its feature-values."""
    model, runtime = inputs.model, inputs.runtime
    if not math.isfinite(runtime) or runtime < 0.0:
        return
    now = _clock(model, inputs.now)
    key = room(KEY_COLUMNS)
    for number in range(int(model[FEATURES])):
        begin = _row_to_learn(inputs, number, key)
        if begin >= 0:
            take(model, model[begin : begin + int(model[ROW_COLUMNS])], now, runtime)
    model[LEARNED] += 1.0


@bare_step(PREDICTOR_STEP)
def observe_and_forget(inputs: PredictorInputs) -> None:
    """As ``observe``, for a model with a half-life or a level of alarms."""
    model, runtime = inputs.model, inputs.runtime
    if not math.isfinite(runtime) or runtime < 0.0:
        return
    now = _clock(model, inputs.now)
    key = room(KEY_COLUMNS)
    for number in range(int(model[FEATURES])):
        begin = _row_to_learn(inputs, number, key)
        if begin >= 0:
            row = model[begin : begin + int(model[ROW_COLUMNS])]
            age(model, row, now)
            if math.isfinite(model[ALARM_LEVEL]):
                watch(model, row, now, runtime)
            take(model, row, now, runtime)
    model[LEARNED] += 1.0


@bare_step(BELIEF_STEP)
def belief(inputs: PredictorInputs, row: NDArray[np.float64]) -> None:
    """The quantiles of the winner's history, to be asked before another event changes that."""
    model, job = inputs.model, inputs.jobs[inputs.slot]
    if job[EXPERT] == NO_EXPERT or model[POINT_ONLY] != 0.0:
        fill_point_belief(inputs, row)
        return
    begin = winner_histogram(model, job)
    histogram = model[begin : begin + histogram_size(model)]
    removed = room(REMOVED)
    cut_histogram(histogram, belief_end(model, inputs.specs[inputs.slot]), removed)
    fill_histogram_belief(histogram, row)
    uncut_histogram(histogram, removed)
