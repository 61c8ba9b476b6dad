"""Two tables of histories as one: what shards learned apart, put together."""

from __future__ import annotations

import numpy as np

from foresail.distributions.kernels.streaming_histogram import merge
from foresail.kernels.borrowed import room
from foresail.kernels.compile import Floats, bare_kernel, part
from foresail.predictors.kernels.experience import (
    ALARMS,
    ALPHA,
    DOWNWARDS_SINCE,
    HELD,
    LATEST,
    RECENT,
    ROLLING_VALUE,
    SUM,
    TAKEN,
    UPWARDS,
    VALUES,
    estimate_anew,
    histogram_place,
    histogram_size,
    ring_place,
)
from foresail.predictors.kernels.experts import LEARNED
from foresail.predictors.kernels.history_table import (
    AT_ORDER,
    CODE,
    FEATURE_COLUMNS,
    KEY_COLUMNS,
    OLDEST,
    ROW_COLUMNS,
    feature_place,
    find_row,
    make_row,
    row_place,
    touch,
)


def absorb(model: Floats, other: Floats, codes: Floats) -> None:
    """Add all that another table of the same layout holds, the longest unused first.

    Parameters
    ----------
    model, other
        States of ``foresail.predictors.kernels.experts``; ``other`` is only read.
    codes
        ``codes[column, code]`` is the code here of what has ``code`` in ``other``.
    """
    width = int(model[ROW_COLUMNS])
    _absorb(model, other, codes, np.empty(width), np.empty(2 * width))


@bare_kernel
def _absorb(model: Floats, other: Floats, codes: Floats, theirs: Floats, both: Floats) -> None:
    """Absorb like above, with room for a row, and for what is in two rows."""
    width = theirs.size
    order = int(other[AT_ORDER])
    key = room(KEY_COLUMNS)
    # In order of use, so that what would be forgotten first stays the first to be forgotten.
    at = int(other[OLDEST])
    while at > 0:
        begin = row_place(other, at - 1)
        for i in range(width):
            theirs[i] = other[begin + i]
        feature = feature_place(other, int(theirs[0]))
        _translate(other[feature : feature + FEATURE_COLUMNS], theirs, codes, key)
        row = find_row(model, key)
        if row < 0:
            begin = row_place(model, make_row(model, key))
            for i in range(KEY_COLUMNS, width):
                model[begin + i] = theirs[i]
        else:
            touch(model, row)
            begin = row_place(model, row)
            _join(model, model[begin : begin + width], theirs, both)
        at = int(other[order + 2 * (at - 1)])
    model[LEARNED] += other[LEARNED]


@part
def _translate(feature: Floats, row: Floats, codes: Floats, key: Floats) -> None:
    """The key of a row of the other table in the codes of this one."""
    for i in range(KEY_COLUMNS):
        key[i] = row[i]
    for i in range(int(feature[0])):
        if int(feature[1 + 2 * i]) == CODE:
            key[1 + i] = codes[int(feature[2 + 2 * i]), int(row[1 + i])]


@part
def _join(model: Floats, row: Floats, theirs: Floats, both: Floats) -> None:
    """Add one feature-value's row to another."""
    begin = histogram_place(model)
    end = begin + histogram_size(model)
    for i in range(SUM, VALUES):
        row[i] += theirs[i]
    merge(row[begin:end], theirs[begin:end], both)
    if theirs[LATEST] > row[LATEST]:
        for place in range(UPWARDS, DOWNWARDS_SINCE + 1):
            row[place] = theirs[place]
    row[ALARMS] += theirs[ALARMS]
    _join_last_values(model, row, theirs, both)
    row[LATEST] = max(row[LATEST], theirs[LATEST])


@part
def _join_last_values(model: Floats, row: Floats, theirs: Floats, both: Floats) -> None:
    """Hold the last values of both, and average them anew."""
    size = int(model[RECENT])
    own, held = int(row[HELD]), int(row[HELD]) + int(theirs[HELD])
    i, k = 0, 0
    while i + k < held:  # both rings are in order of time; of equal times, our own is first
        ours, other = VALUES + ring_place(model, row, i), VALUES + ring_place(model, theirs, k)
        first = i < own and (k >= held - own or row[ours + size] <= theirs[other + size])
        at = 2 * (i + k)
        both[at] = row[ours] if first else theirs[other]
        both[at + 1] = row[ours + size] if first else theirs[other + size]
        i, k = (i + 1, k) if first else (i, k + 1)
    row[TAKEN] += theirs[TAKEN]
    if held == 0:
        return
    row[HELD] = min(held, size)
    rolling = both[0]
    for i in range(1, held):
        rolling = model[ALPHA] * both[2 * i] + (1.0 - model[ALPHA]) * rolling
    row[ROLLING_VALUE] = rolling
    begin = held - int(row[HELD])
    for i in range(int(row[HELD])):
        place = VALUES + ring_place(model, row, i)
        row[place] = both[2 * (begin + i)]
        row[place + size] = both[2 * (begin + i) + 1]
    estimate_anew(model, row)
