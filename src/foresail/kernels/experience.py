"""What was seen of one feature-value, in a row of constant length: history, estimators, scores.

A row holds the last values with their times; four estimators (mean of all, median of the last,
rolling average, mean of the very last few); and panes. A pane is what forgetting acts on: the sum
of the values, the errors of the estimators' past estimates, and the streaming histogram. Without a
window there is one. With a window there are two, begun in turn every half window, and the older one
speaks: it holds what happened since the beginning of the half window before this one, that is, in
the last half to whole window.

A change of the class is noticed by the ranks that values take among those before them: these are
uniform while nothing changes, whatever the distribution is, and their cumulative sum (one upwards,
one downwards, each less a drift of half a standard deviation per value) crosses a level only as
often as was chosen. The row then begins anew with the values since that sum was last zero.

Source: spec 3sigma-distsched sections 2.3 and 3.1; ambiguities A-5 to A-8.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import kernel
from foresail.kernels.feature_values import KEY_COLUMNS
from foresail.kernels.history_table import TABLE_HEAD
from foresail.kernels.streaming_histogram import CENTROIDS, COUNT, count_up_to, fade, insert

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
PANES: Final = TABLE_HEAD + 4
PANE_SECONDS: Final = TABLE_HEAD + 5
HALF_LIFE_SECONDS: Final = TABLE_HEAD + 6
ALARM_LEVEL: Final = TABLE_HEAD + 7
EXPERIENCE_HEAD: Final = TABLE_HEAD + 8
"""Parameters in the head: bins of a histogram, how many of the last values the median takes and how
many the mean of the few, the rolling average's weight of the newest, panes (1 or 2), the seconds
after which a new one begins, the half-life (infinite for none), the level of the cumulative sums
(infinite for never)."""

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
VALUES: Final = KEY_COLUMNS + 11
"""A row, behind its key: time of the last value, rolling average, how many values were ever taken,
how many of the last are held, their median, the mean of the very last few; the cumulative sums of
ranks and how many values they go back; alarms; then the last values in a ring, their times, the
same values in ascending order, and the panes."""

EPOCH: Final = 0
SUM: Final = 1
ACTUAL: Final = 2
SCORED: Final = 3
ERRORS: Final = 4
HISTOGRAM: Final = ERRORS + ESTIMATORS
"""A pane: which half window it began with, the sum of its values, the sum of the values whose
estimates were scored and how many these were, sums of absolute errors, then the histogram."""

_DRIFT: Final = 0.5
_UNIT: Final = math.sqrt(12.0)
_LEAST_WEIGHT: Final = 1e-6


def row_columns(bins: int, recent: int, panes: int) -> int:
    """Length of a row."""
    return VALUES + 3 * recent + panes * _pane_columns(bins)


@kernel
def _pane_columns(bins: int) -> int:
    """Length of a pane: its histogram has room for one bin more than it keeps."""
    return HISTOGRAM + CENTROIDS + 2 * (bins + 1)


@kernel
def pane_of(
    model: NDArray[np.float64], row: NDArray[np.float64], number: int
) -> NDArray[np.float64]:
    """One of a row's panes."""
    width = _pane_columns(int(model[BINS]))
    at = VALUES + 3 * int(model[RECENT]) + number * width
    return row[at : at + width]


@kernel
def _epoch(model: NDArray[np.float64], now: float) -> float:
    """Which half window this is."""
    return float(math.floor(now / model[PANE_SECONDS]))


@kernel
def begin_panes(model: NDArray[np.float64], row: NDArray[np.float64], now: float) -> None:
    """Clear the panes whose time is over."""
    if model[PANES] < 2.0:
        return
    epoch = _epoch(model, now)
    for back in range(2):
        begun = epoch - back
        pane = pane_of(model, row, int(begun) % 2)
        if pane[EPOCH] != begun:
            pane[:] = 0.0
            pane[EPOCH] = begun


@kernel
def speaking_pane(
    model: NDArray[np.float64], row: NDArray[np.float64], now: float
) -> NDArray[np.float64]:
    """The pane that beliefs come from; panes whose time is over were cleared before."""
    if model[PANES] < 2.0:
        return pane_of(model, row, 0)
    return pane_of(model, row, int(_epoch(model, now) - 1.0) % 2)


@kernel
def estimate(row: NDArray[np.float64], pane: NDArray[np.float64], estimator: int) -> float:
    """An estimator's value; needs a value in the pane."""
    if estimator == MEAN:
        return float(pane[SUM] / pane[HISTOGRAM + COUNT])
    if estimator == MEDIAN:
        return float(row[MEDIAN_VALUE])
    if estimator == ROLLING:
        return float(row[ROLLING_VALUE])
    return float(row[FEW_MEAN])


@kernel
def score(pane: NDArray[np.float64], estimator: int) -> float:
    """Normalised mean absolute error: summed errors over summed values; nan before any."""
    if pane[SCORED] == 0.0:
        return math.nan
    error = pane[ERRORS + estimator]
    if pane[ACTUAL] <= 0.0:
        return 0.0 if error == 0.0 else math.inf
    return float(error / pane[ACTUAL])


@kernel
def mark(
    model: NDArray[np.float64],
    row: NDArray[np.float64],
    estimates: NDArray[np.float64],
    value: float,
) -> None:
    """Score the estimates made at a job's submission (nan for none) by what came true."""
    if math.isnan(estimates[0]):
        return
    for number in range(int(model[PANES])):
        pane = pane_of(model, row, number)
        pane[ACTUAL] += value
        pane[SCORED] += 1.0
        for estimator in range(ESTIMATORS):
            pane[ERRORS + estimator] += abs(estimates[estimator] - value)


@kernel
def take(model: NDArray[np.float64], row: NDArray[np.float64], now: float, value: float) -> None:
    """Add a value; panes whose time is over were cleared before."""
    _fade(model, row, now)
    if math.isfinite(model[ALARM_LEVEL]):
        _watch(model, row, now, value)
    for number in range(int(model[PANES])):
        pane = pane_of(model, row, number)
        pane[SUM] += value
        insert(pane[HISTOGRAM:], value, 1.0)
    _hold(model, row, now, value)
    row[LATEST] = now


@kernel
def _fade(model: NDArray[np.float64], row: NDArray[np.float64], now: float) -> None:
    """Let what was seen count for less, by the time since the last value."""
    if not math.isfinite(model[HALF_LIFE_SECONDS]) or row[TAKEN] == 0.0:
        return
    factor = 0.5 ** (max(now - row[LATEST], 0.0) / model[HALF_LIFE_SECONDS])
    fade_pane(pane_of(model, row, 0), factor)


@kernel
def fade_pane(pane: NDArray[np.float64], factor: float) -> None:
    """Multiply all that a pane has counted; what is next to nothing then is cleared."""
    if factor >= 1.0:
        return
    if pane[HISTOGRAM + COUNT] * factor < _LEAST_WEIGHT:
        pane[SUM:] = 0.0
        return
    for i in range(SUM, HISTOGRAM):
        pane[i] *= factor
    fade(pane[HISTOGRAM:], factor)


@kernel
def _hold(model: NDArray[np.float64], row: NDArray[np.float64], now: float, value: float) -> None:
    """Put a value into the ring, drop those that the window has passed, and estimate anew."""
    size = int(model[RECENT])
    if model[PANES] == 2.0:
        oldest = now - 2.0 * model[PANE_SECONDS]
        while row[HELD] > 0.0 and row[VALUES + size + ring_place(model, row, 0)] < oldest:
            _drop_oldest(model, row)
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
    _add_in_order(_in_order(model, row), int(row[HELD]), value)
    row[HELD] += 1.0
    _estimate(model, row)


@kernel
def ring_place(model: NDArray[np.float64], row: NDArray[np.float64], i: int) -> int:
    """Where in the ring the ``i``-th of the held values is, the oldest first."""
    return (int(row[TAKEN]) - int(row[HELD]) + i) % int(model[RECENT])


@kernel
def _in_order(model: NDArray[np.float64], row: NDArray[np.float64]) -> NDArray[np.float64]:
    """The held values in ascending order, and room for more."""
    size = int(model[RECENT])
    return row[VALUES + 2 * size : VALUES + 3 * size]


@kernel
def _drop_oldest(model: NDArray[np.float64], row: NDArray[np.float64]) -> None:
    """Hold the oldest value no longer."""
    value = row[VALUES + ring_place(model, row, 0)]
    ordered, held = _in_order(model, row), int(row[HELD])
    for i in range(np.searchsorted(ordered[:held], value), held - 1):
        ordered[i] = ordered[i + 1]
    row[HELD] -= 1.0


@kernel
def _add_in_order(ordered: NDArray[np.float64], held: int, value: float) -> None:
    """Add a value to the first ``held``, which ascend."""
    i = held
    while i > 0 and ordered[i - 1] > value:
        ordered[i] = ordered[i - 1]
        i -= 1
    ordered[i] = value


@kernel
def estimate_anew(model: NDArray[np.float64], row: NDArray[np.float64]) -> None:
    """Estimate from another ring than before; it holds a value."""
    ordered = _in_order(model, row)
    for i in range(int(row[HELD])):
        _add_in_order(ordered, i, row[VALUES + ring_place(model, row, i)])
    _estimate(model, row)


@kernel
def _estimate(model: NDArray[np.float64], row: NDArray[np.float64]) -> None:
    """Median of the held values, and mean of the last few of them."""
    size, held, place = int(model[RECENT]), int(row[HELD]), int(row[TAKEN]) % int(model[RECENT])
    few = min(int(model[FEW]), held)
    total = 0.0
    for _ in range(few):
        place = place - 1 if place > 0 else size - 1
        total += row[VALUES + place]
    row[FEW_MEAN] = total / few
    ordered = _in_order(model, row)
    row[MEDIAN_VALUE] = 0.5 * (ordered[(held - 1) // 2] + ordered[held // 2])


@kernel
def _watch(model: NDArray[np.float64], row: NDArray[np.float64], now: float, value: float) -> None:
    """Add a value's rank to the cumulative sums; if one has risen too high, begin the row anew."""
    histogram = speaking_pane(model, row, now)[HISTOGRAM:]
    count = histogram[COUNT]
    if count == 0.0:
        return
    at_most = count_up_to(histogram, value)
    below = count_up_to(histogram, np.nextafter(value, -np.inf))
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


@kernel
def _begin_anew(model: NDArray[np.float64], row: NDArray[np.float64], kept: int) -> None:
    """Forget all but the last ``kept`` values; scores stay, but count for as many jobs only."""
    kept = min(kept, int(row[HELD]))
    row[HELD] = kept
    if kept > 0:
        estimate_anew(model, row)
    for number in range(int(model[PANES])):
        pane = pane_of(model, row, number)
        share = min(1.0, kept / pane[SCORED]) if pane[SCORED] > 0.0 else 1.0
        pane[SUM] = 0.0
        for i in range(ACTUAL, HISTOGRAM):
            pane[i] *= share
        histogram = pane[HISTOGRAM:]
        histogram[:] = 0.0
        for i in range(kept):
            value = row[VALUES + ring_place(model, row, i)]
            pane[SUM] += value
            insert(histogram, value, 1.0)
    row[UPWARDS] = row[DOWNWARDS] = 0.0
    row[UPWARDS_SINCE] = row[DOWNWARDS_SINCE] = 0.0
    row[ALARMS] += 1.0
