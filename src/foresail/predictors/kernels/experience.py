"""Experience of one feature-value, in a row of constant length: history, estimators, scores.

A row holds the last values with their times; four estimators (mean of all, median of the last,
rolling average, mean of the very last few); the errors of their past estimates; and the streaming
histogram.

A change of the class is noticed by the ranks that values take among those before them: these are
uniform while nothing changes, whatever the distribution is, and their cumulative sum (one upwards,
one downwards, each less a drift of half a standard deviation per value) crosses a level only as
often as was chosen. The row then begins anew with the values since that sum was last zero.

Source: J. W. Park's dissertation (3Sigma), chapter 4; what it leaves open is ours.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from foresail.distributions.kernels import streaming_histogram
from foresail.kernels.compile import Floats, bare_kernel, part
from foresail.kernels.waiting_jobs import first_not_below
from foresail.predictors.kernels.history_table import KEY_COLUMNS, TABLE_HEAD

MEAN: Final = 0
MEDIAN: Final = 1
ROLLING: Final = 2
LAST_FEW: Final = 3
ESTIMATORS: Final = 4
ESTIMATOR_NAMES: Final = ("mean", "median", "rolling", "recent")

BINS: Final = TABLE_HEAD
RECENT: Final = TABLE_HEAD + 1
FEW: Final = TABLE_HEAD + 2
ALPHA: Final = TABLE_HEAD + 3
ALARM_LEVEL: Final = TABLE_HEAD + 4
EXPERIENCE_HEAD: Final = TABLE_HEAD + 5
"""Parameters in the head: bins of a histogram, how many of the last values the median takes and how
many the mean of the few, the rolling average's weight of the newest, the level of the cumulative
sums (infinite for never)."""

LATEST: Final = KEY_COLUMNS
ROLLING_VALUE: Final = KEY_COLUMNS + 1
TAKEN: Final = KEY_COLUMNS + 2
HELD: Final = KEY_COLUMNS + 3
MEDIAN_VALUE: Final = KEY_COLUMNS + 4
FEW_MEAN: Final = KEY_COLUMNS + 5
UPWARDS: Final = KEY_COLUMNS + 6
DOWNWARDS: Final = KEY_COLUMNS + 7
UPWARDS_SINCE: Final = KEY_COLUMNS + 8
DOWNWARDS_SINCE: Final = KEY_COLUMNS + 9
ALARMS: Final = KEY_COLUMNS + 10
SUM: Final = KEY_COLUMNS + 11
ACTUAL: Final = KEY_COLUMNS + 12
SCORED: Final = KEY_COLUMNS + 13
ERRORS: Final = KEY_COLUMNS + 14
VALUES: Final = ERRORS + ESTIMATORS
"""A row, behind its key: time of the last value, rolling average, how many values were ever taken,
how many of the last are held, their median, the mean of the very last few; the cumulative sums of
ranks and how many values they go back; alarms; the sum of the values, that of those whose
estimates were scored and how many these were, sums of absolute errors; then the last values in a
ring, their times, the same values in ascending order, and the histogram."""

_DRIFT: Final = 0.5
_UNIT: Final = math.sqrt(12.0)


def row_columns(bins: int, recent: int) -> int:
    """Length of a row."""
    return VALUES + 3 * recent + streaming_histogram.histogram_columns(bins)


@part
def histogram_size(model: Floats) -> int:
    """Length of a histogram, with room for one bin more than it keeps."""
    return streaming_histogram.CENTROIDS + 2 * (int(model[BINS]) + 1)


@bare_kernel
def histogram_place(model: Floats) -> int:
    """Return where in a row its histogram begins."""
    return VALUES + 3 * int(model[RECENT])


@part
def estimate(row: Floats, histogram: int, estimator: int) -> float:
    """An estimator's value; needs a value in the histogram, which begins at this place."""
    if estimator == MEAN:
        return float(row[SUM] / row[histogram + streaming_histogram.COUNT])
    if estimator == MEDIAN:
        return float(row[MEDIAN_VALUE])
    if estimator == ROLLING:
        return float(row[ROLLING_VALUE])
    return float(row[FEW_MEAN])


@part
def score(row: Floats, estimator: int) -> float:
    """Normalised mean absolute error: summed errors over summed values; nan before any."""
    if row[SCORED] == 0.0:
        return math.nan
    error = row[ERRORS + estimator]
    if row[ACTUAL] <= 0.0:
        return 0.0 if error == 0.0 else math.inf
    return float(error / row[ACTUAL])


@part
def mark(row: Floats, estimates: Floats, value: float) -> None:
    """Score the estimates made at a job's submission (nan for none) by what came true."""
    if math.isnan(estimates[0]):
        return
    row[ACTUAL] += value
    row[SCORED] += 1.0
    for estimator in range(ESTIMATORS):
        row[ERRORS + estimator] += abs(estimates[estimator] - value)


@part
def take(model: Floats, row: Floats, now: float, value: float) -> None:
    """Add a value to a row."""
    _add(model, row, value)
    _hold(model, row, now, value)
    row[LATEST] = now


@part
def _add(model: Floats, row: Floats, value: float) -> None:
    """Add a value to the sum and the histogram."""
    row[SUM] += value
    begin = histogram_place(model)
    streaming_histogram.insert(row[begin : begin + histogram_size(model)], value, 1.0)


@part
def _hold(model: Floats, row: Floats, now: float, value: float) -> None:
    """Put a value into the ring, and estimate anew."""
    size = int(model[RECENT])
    if row[HELD] == 0.0:
        row[ROLLING_VALUE] = value
    else:
        alpha = model[ALPHA]
        row[ROLLING_VALUE] = alpha * value + (1.0 - alpha) * row[ROLLING_VALUE]
    if row[HELD] == size:
        _drop_oldest(model, row)
    at = int(row[TAKEN]) % size
    row[VALUES + at] = value
    row[VALUES + size + at] = now
    row[TAKEN] += 1.0
    _add_in_order(model, row, int(row[HELD]), value)
    row[HELD] += 1.0
    _estimate(model, row)


@part
def _oldest_place(model: Floats, row: Floats) -> int:
    """Return where in the ring the oldest of the held values is."""
    return (int(row[TAKEN]) - int(row[HELD])) % int(model[RECENT])


@part
def ring_place(model: Floats, row: Floats, i: int) -> int:
    """Return where in the ring the ``i``-th of the held values is, the oldest first."""
    return (_oldest_place(model, row) + i) % int(model[RECENT])


@part
def _drop_oldest(model: Floats, row: Floats) -> None:
    """Hold the oldest value no longer."""
    value = row[VALUES + _oldest_place(model, row)]
    ordered, held = _ordered_place(model), int(row[HELD])
    first = first_not_below(row[ordered : ordered + held], held, value)
    for i in range(ordered + first, ordered + held - 1):
        row[i] = row[i + 1]
    row[HELD] -= 1.0


@part
def _ordered_place(model: Floats) -> int:
    """Return where in a row the held values are in ascending order."""
    return VALUES + 2 * int(model[RECENT])


@part
def _add_in_order(model: Floats, row: Floats, held: int, value: float) -> None:
    """Add a value to the first ``held`` of those in ascending order."""
    first = _ordered_place(model)
    i = first + held
    while i > first and row[i - 1] > value:
        row[i] = row[i - 1]
        i -= 1
    row[i] = value


@part
def estimate_anew(model: Floats, row: Floats) -> None:
    """Estimate from another ring than before; it holds a value."""
    for i in range(int(row[HELD])):
        _add_in_order(model, row, i, row[VALUES + ring_place(model, row, i)])
    _estimate(model, row)


@part
def _estimate(model: Floats, row: Floats) -> None:
    """Median of the held values, and mean of the last few of them."""
    size, held, place = int(model[RECENT]), int(row[HELD]), int(row[TAKEN]) % int(model[RECENT])
    few = min(int(model[FEW]), held)
    total = 0.0
    for _ in range(few):
        place = place - 1 if place > 0 else size - 1
        total += row[VALUES + place]
    row[FEW_MEAN] = total / few
    first = _ordered_place(model)
    row[MEDIAN_VALUE] = 0.5 * (row[first + (held - 1) // 2] + row[first + held // 2])


@part
def watch(model: Floats, row: Floats, value: float) -> None:
    """Add a value's rank to the cumulative sums; if one has risen too high, begin the row anew."""
    begin = histogram_place(model)
    histogram = row[begin : begin + histogram_size(model)]
    count = histogram[streaming_histogram.COUNT]
    if count == 0.0:
        return
    at_most = streaming_histogram.count_up_to(histogram, value)
    below = streaming_histogram.count_up_to(histogram, np.nextafter(value, -np.inf))
    rank = (0.5 * (below + at_most) + 0.5) / (count + 1.0)
    surprise = _UNIT * (rank - 0.5)
    row[UPWARDS] = max(row[UPWARDS] + surprise - _DRIFT, 0.0)
    row[UPWARDS_SINCE] = row[UPWARDS_SINCE] + 1.0 if row[UPWARDS] > 0.0 else 0.0
    row[DOWNWARDS] = max(row[DOWNWARDS] - surprise - _DRIFT, 0.0)
    row[DOWNWARDS_SINCE] = row[DOWNWARDS_SINCE] + 1.0 if row[DOWNWARDS] > 0.0 else 0.0
    if row[UPWARDS] > model[ALARM_LEVEL]:
        _begin_anew(model, row, int(row[UPWARDS_SINCE]) - 1)
    elif row[DOWNWARDS] > model[ALARM_LEVEL]:
        _begin_anew(model, row, int(row[DOWNWARDS_SINCE]) - 1)


@part
def _begin_anew(model: Floats, row: Floats, kept: int) -> None:
    """Forget all but the last ``kept`` values; scores stay, but count for as many jobs only."""
    kept = min(kept, int(row[HELD]))
    row[HELD] = kept
    if kept > 0:
        estimate_anew(model, row)
    share = min(1.0, kept / row[SCORED]) if row[SCORED] > 0.0 else 1.0
    row[SUM] = 0.0
    for i in range(ACTUAL, VALUES):
        row[i] *= share
    begin = histogram_place(model)
    for i in range(begin, begin + histogram_size(model)):
        row[i] = 0.0
    for i in range(kept):
        _add(model, row, row[VALUES + ring_place(model, row, i)])
    row[UPWARDS] = row[DOWNWARDS] = 0.0
    row[UPWARDS_SINCE] = row[DOWNWARDS_SINCE] = 0.0
    row[ALARMS] += 1.0
