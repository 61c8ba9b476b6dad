"""Two tables of histories as one: what shards learned apart, put together."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import kernel
from foresail.kernels.experience import (
    ALARMS,
    ALPHA,
    DOWNWARDS,
    DOWNWARDS_SINCE,
    HALF_LIFE_SECONDS,
    HELD,
    HISTOGRAM,
    LATEST,
    PANES,
    RECENT,
    ROLLING_VALUE,
    SUM,
    TAKEN,
    UPWARDS,
    UPWARDS_SINCE,
    VALUES,
    begin_panes,
    estimate_anew,
    fade_pane,
    pane_of,
    ring_place,
)
from foresail.kernels.experts import CLOCK, LEARNED
from foresail.kernels.feature_values import CODE, KEY_COLUMNS
from foresail.kernels.history_table import (
    AT_ORDER,
    OLDEST,
    feature_row,
    find_row,
    make_row,
    table_row,
    touch,
)
from foresail.kernels.streaming_histogram import merge


@kernel
def absorb(
    model: NDArray[np.float64], other: NDArray[np.float64], codes: NDArray[np.float64]
) -> None:
    """Add all that another table of the same layout holds, the longest unused first.

    Parameters
    ----------
    model, other
        States of ``foresail.kernels.experts``; ``other`` is only read.
    codes
        ``codes[column, code]`` is the code here of what has ``code`` in ``other``.
    """
    order = int(other[AT_ORDER])
    key = np.empty(KEY_COLUMNS)
    at = int(other[OLDEST])
    while at > 0:
        theirs = table_row(other, at - 1).copy()
        _translate(feature_row(other, int(theirs[0])), theirs, codes, key)
        row = find_row(model, key)
        if row < 0:
            row = make_row(model, key)
            table_row(model, row)[KEY_COLUMNS:] = theirs[KEY_COLUMNS:]
        else:
            touch(model, row)
            _join(model, table_row(model, row), theirs)
        at = int(other[order + 2 * (at - 1)])
    model[LEARNED] += other[LEARNED]


@kernel
def _translate(
    feature: NDArray[np.float64],
    row: NDArray[np.float64],
    codes: NDArray[np.float64],
    key: NDArray[np.float64],
) -> None:
    """The key of a row of the other table in the codes of this one."""
    key[:] = row[:KEY_COLUMNS]
    for i in range(int(feature[0])):
        if int(feature[1 + 2 * i]) == CODE:
            key[1 + i] = codes[int(feature[2 + 2 * i]), int(row[1 + i])]


@kernel
def _join(
    model: NDArray[np.float64], row: NDArray[np.float64], theirs: NDArray[np.float64]
) -> None:
    """Add one feature-value's row to another."""
    now = max(row[LATEST], theirs[LATEST])
    for each in (row, theirs):
        begin_panes(model, each, model[CLOCK])
        if math.isfinite(model[HALF_LIFE_SECONDS]):
            age = (now - each[LATEST]) / model[HALF_LIFE_SECONDS]
            fade_pane(pane_of(model, each, 0), 0.5**age)
    for number in range(int(model[PANES])):
        pane, added = pane_of(model, row, number), pane_of(model, theirs, number)
        for i in range(SUM, HISTOGRAM):
            pane[i] += added[i]
        merge(pane[HISTOGRAM:], added[HISTOGRAM:])
    if theirs[LATEST] > row[LATEST]:
        for place in (UPWARDS, DOWNWARDS, UPWARDS_SINCE, DOWNWARDS_SINCE):
            row[place] = theirs[place]
    row[ALARMS] += theirs[ALARMS]
    _join_last_values(model, row, theirs)
    row[LATEST] = now


@kernel
def _join_last_values(
    model: NDArray[np.float64], row: NDArray[np.float64], theirs: NDArray[np.float64]
) -> None:
    """Hold the last values of both, and average them anew."""
    size = int(model[RECENT])
    own, added = int(row[HELD]), int(theirs[HELD])
    both = own + added
    if both == 0:
        row[TAKEN] += theirs[TAKEN]
        return
    values, times = np.empty(both), np.empty(both)
    for i in range(own):
        place = VALUES + ring_place(model, row, i)
        values[i], times[i] = row[place], row[place + size]
    for i in range(added):
        place = VALUES + ring_place(model, theirs, i)
        values[own + i], times[own + i] = theirs[place], theirs[place + size]
    order = np.argsort(times, kind="mergesort")
    row[TAKEN] += theirs[TAKEN]
    row[HELD] = min(both, size)
    rolling = values[order[0]]
    for i in range(1, both):
        rolling = model[ALPHA] * values[order[i]] + (1.0 - model[ALPHA]) * rolling
    row[ROLLING_VALUE] = rolling
    first = both - int(row[HELD])
    for i in range(int(row[HELD])):
        place = VALUES + ring_place(model, row, i)
        row[place] = values[order[first + i]]
        row[place + size] = times[order[first + i]]
    estimate_anew(model, row)
