"""Two tables of histories as one: what shards learned apart, put together."""

from __future__ import annotations

import numpy as np

from foresail.distributions.kernels.streaming_histogram import merge
from foresail.kernels.borrowed import room
from foresail.kernels.compile import Floats, bare_kernel, part
from foresail.predictors.kernels import experience, history_table
from foresail.predictors.kernels.experts import LEARNED


def absorb(model: Floats, other: Floats, codes: Floats) -> None:
    """Add all that another table of the same layout holds, the longest unused first.

    Parameters
    ----------
    model, other
        States of ``foresail.predictors.kernels.experts``; ``other`` is only read.
    codes
        ``codes[column, code]`` is the code here of what has ``code`` in ``other``.
    """
    width = int(model[history_table.ROW_COLUMNS])
    _absorb(model, other, codes, np.empty(width), np.empty(2 * width))


@bare_kernel
def _absorb(model: Floats, other: Floats, codes: Floats, theirs: Floats, both: Floats) -> None:
    """Absorb like above, with room for a row, and for what is in two rows."""
    width = theirs.size
    order = int(other[history_table.AT_ORDER])
    key = room(history_table.KEY_COLUMNS)
    # In order of use, so that what would be forgotten first stays the first to be forgotten.
    at = int(other[history_table.OLDEST])
    while at > 0:
        begin = history_table.row_place(other, at - 1)
        for i in range(width):
            theirs[i] = other[begin + i]
        feature = history_table.feature_place(other, int(theirs[0]))
        _translate(other[feature : feature + history_table.FEATURE_COLUMNS], theirs, codes, key)
        row = history_table.find_row(model, key)
        if row < 0:
            begin = history_table.row_place(model, history_table.make_row(model, key))
            for i in range(history_table.KEY_COLUMNS, width):
                model[begin + i] = theirs[i]
        else:
            history_table.touch(model, row)
            begin = history_table.row_place(model, row)
            _join(model, model[begin : begin + width], theirs, both)
        at = int(other[order + 2 * (at - 1)])
    model[LEARNED] += other[LEARNED]


@part
def _translate(feature: Floats, row: Floats, codes: Floats, key: Floats) -> None:
    """The key of a row of the other table in the codes of this one."""
    for i in range(history_table.KEY_COLUMNS):
        key[i] = row[i]
    for i in range(int(feature[0])):
        if int(feature[1 + 2 * i]) == history_table.CODE:
            key[1 + i] = codes[int(feature[2 + 2 * i]), int(row[1 + i])]


@part
def _join(model: Floats, row: Floats, theirs: Floats, both: Floats) -> None:
    """Add one feature-value's row to another."""
    begin = experience.histogram_place(model)
    end = begin + experience.histogram_size(model)
    for i in range(experience.SUM, experience.VALUES):
        row[i] += theirs[i]
    merge(row[begin:end], theirs[begin:end], both)
    if theirs[experience.LATEST] > row[experience.LATEST]:
        for place in range(experience.UPWARDS, experience.DOWNWARDS_SINCE + 1):
            row[place] = theirs[place]
    row[experience.ALARMS] += theirs[experience.ALARMS]
    _join_last_values(model, row, theirs, both)
    row[experience.LATEST] = max(row[experience.LATEST], theirs[experience.LATEST])


@part
def _join_last_values(model: Floats, row: Floats, theirs: Floats, both: Floats) -> None:
    """Hold the last values of both, and average them anew."""
    size = int(model[experience.RECENT])
    own, held = int(row[experience.HELD]), int(row[experience.HELD]) + int(theirs[experience.HELD])
    i, k = 0, 0
    while i + k < held:  # both rings are in order of time; of equal times, our own is first
        ours, other = (
            experience.VALUES + experience.ring_place(model, row, i),
            experience.VALUES + experience.ring_place(model, theirs, k),
        )
        first = i < own and (k >= held - own or row[ours + size] <= theirs[other + size])
        at = 2 * (i + k)
        both[at] = row[ours] if first else theirs[other]
        both[at + 1] = row[ours + size] if first else theirs[other + size]
        i, k = (i + 1, k) if first else (i, k + 1)
    row[experience.TAKEN] += theirs[experience.TAKEN]
    if held == 0:
        return
    row[experience.HELD] = min(held, size)
    rolling = both[0]
    for i in range(1, held):
        rolling = model[experience.ALPHA] * both[2 * i] + (1.0 - model[experience.ALPHA]) * rolling
    row[experience.ROLLING_VALUE] = rolling
    begin = held - int(row[experience.HELD])
    for i in range(int(row[experience.HELD])):
        place = experience.VALUES + experience.ring_place(model, row, i)
        row[place] = both[2 * (begin + i)]
        row[place + size] = both[2 * (begin + i) + 1]
    experience.estimate_anew(model, row)
