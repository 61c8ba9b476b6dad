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

from foresail.kernels.columns import PREDICTED, REQUESTED
from foresail.kernels.compile import kernel, step
from foresail.kernels.cut_histogram import cut_histogram
from foresail.kernels.experience import (
    ESTIMATORS,
    EXPERIENCE_HEAD,
    HISTOGRAM,
    MEAN,
    begin_panes,
    estimate,
    mark,
    score,
    speaking_pane,
    take,
)
from foresail.kernels.feature_values import KEY_COLUMNS, fill_key
from foresail.kernels.history_table import (
    FEATURES,
    feature_row,
    find_row,
    make_row,
    table_row,
    touch,
)
from foresail.kernels.signatures import BELIEF_STEP, PREDICTOR_STEP
from foresail.kernels.streaming_histogram import (
    COUNT,
    fill_histogram_belief,
    summarise_histogram,
)
from foresail.kernels.summary import summarise_point

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

NOBODY: Final = -1.0


def job_columns(features: int) -> int:
    """Length of a job's row."""
    return ESTIMATES + features * ESTIMATORS


@kernel
def _clock(model: NDArray[np.float64], now: float) -> float:
    """Time that never goes backwards."""
    model[CLOCK] = max(model[CLOCK], now)
    return float(model[CLOCK])


@kernel
def _ask(
    model: NDArray[np.float64], spec: NDArray[np.float64], job: NDArray[np.float64], now: float
) -> None:
    """Write what each expert says into the job's row, and which one to follow.

    That with the least error; of equal ones that with more values, then the first. Where nobody was
    scored yet, the mean of the feature-value of most attributes that has any value; then what is
    known of all jobs.
    """
    job[EXPERT] = NOBODY
    job[ESTIMATES:] = math.nan
    everybody = int(model[FEATURES]) - 1
    key = np.empty(KEY_COLUMNS)
    least, most_values = math.inf, 0.0
    most_attributes = 0.0
    scored = False
    for number in range(everybody + 1):
        feature = feature_row(model, number)
        if not fill_key(number, feature, spec, key):
            continue
        at = find_row(model, key)
        if at < 0:
            continue
        touch(model, at)
        row = table_row(model, at)
        begin_panes(model, row, now)
        pane = speaking_pane(model, row, now)
        values = pane[HISTOGRAM + COUNT]
        if values == 0.0:
            continue
        if not scored and feature[0] > most_attributes:
            most_attributes = feature[0]
            job[EXPERT], job[ROW] = number * ESTIMATORS + MEAN, at
        if number == everybody and job[EXPERT] == NOBODY:
            job[EXPERT], job[ROW] = number * ESTIMATORS + MEAN, at
        for estimator in range(ESTIMATORS):
            job[ESTIMATES + number * ESTIMATORS + estimator] = estimate(row, pane, estimator)
            error = score(pane, estimator)
            if number == everybody or math.isnan(error):
                continue
            better = error < least or (error == least and values > most_values)
            if not scored or better:
                scored = True
                least, most_values = error, values
                job[EXPERT], job[ROW] = number * ESTIMATORS + estimator, at


@kernel
def winner_histogram(
    model: NDArray[np.float64], job: NDArray[np.float64], limit: float
) -> NDArray[np.float64]:
    """History of the winning feature-value, cut at the limit; the job has one."""
    row = table_row(model, int(job[ROW]))
    histogram = speaking_pane(model, row, model[CLOCK])[HISTOGRAM:]
    return cut_histogram(histogram, limit)


@kernel
def belief_end(model: NDArray[np.float64], spec: NDArray[np.float64]) -> float:
    """Where beliefs about a job end."""
    return spec[REQUESTED] if model[LIMITED] != 0.0 else math.inf


@step(PREDICTOR_STEP)
def predict(
    slot: int,
    now: float,
    runtime: float,
    specs: NDArray[np.float64],
    model: NDArray[np.float64],
    users: NDArray[np.float64],
    jobs: NDArray[np.float64],
    summaries: NDArray[np.float64],
) -> None:
    """Follow the best expert; without any, the limit or what stands for it."""
    job, spec = jobs[slot], specs[slot]
    _ask(model, spec, job, _clock(model, now))
    limit = belief_end(model, spec)
    if job[EXPERT] == NOBODY:
        summarise_point(limit if math.isfinite(limit) else model[UNKNOWN], summaries[slot])
    elif model[POINT_ONLY] != 0.0:
        summarise_point(min(job[ESTIMATES + int(job[EXPERT])], limit), summaries[slot])
    else:
        summarise_histogram(winner_histogram(model, job, limit), summaries[slot])


@step(PREDICTOR_STEP)
def observe(
    slot: int,
    now: float,
    runtime: float,
    specs: NDArray[np.float64],
    model: NDArray[np.float64],
    users: NDArray[np.float64],
    jobs: NDArray[np.float64],
    summaries: NDArray[np.float64],
) -> None:
    """Score the job's experts, and add the runtime to the history of all its feature-values."""
    if not math.isfinite(runtime) or runtime < 0.0:
        return
    time = _clock(model, now)
    key = np.empty(KEY_COLUMNS)
    for number in range(int(model[FEATURES])):
        if not fill_key(number, feature_row(model, number), specs[slot], key):
            continue
        at = find_row(model, key)
        if at < 0:
            at = make_row(model, key)
        else:
            touch(model, at)
        row = table_row(model, at)
        begin_panes(model, row, time)
        first = ESTIMATES + number * ESTIMATORS
        mark(model, row, jobs[slot, first : first + ESTIMATORS], runtime)
        take(model, row, time, runtime)
    model[LEARNED] += 1.0


@step(BELIEF_STEP)
def belief(
    slot: int,
    specs: NDArray[np.float64],
    model: NDArray[np.float64],
    users: NDArray[np.float64],
    jobs: NDArray[np.float64],
    summary: NDArray[np.float64],
    row: NDArray[np.float64],
) -> None:
    """The quantiles of the winner's history, to be asked before another event changes that."""
    job = jobs[slot]
    if job[EXPERT] == NOBODY or model[POINT_ONLY] != 0.0:
        row[:] = summary[PREDICTED]
        return
    limit = belief_end(model, specs[slot])
    fill_histogram_belief(winner_histogram(model, job, limit), row)
