"""A table of rows found by key, that forgets the row longest unused when it is full.

The table is one vector: a head, the features, a hash index, the order of use, and the rows, which
are taken into use one after the other, so that memory for the others is never touched. All places
but the head are relative to the vector, and the head says where they begin.
"""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Final

import numpy as np

from foresail.kernels import columns
from foresail.kernels.compile import Floats, part
from foresail.predictors.kernels.request import DAY_SECONDS

CODE: Final = 0
NUMBER: Final = 1
AMOUNT: Final = 2
HOUR: Final = 3
DAY: Final = 4
"""Readings of a column as a value: a code (unknown below 0), a number (unknown if not finite), an
amount (unknown, too, if 0), the hour of the day, the day of the week (of the workload's clock)."""

ATTRIBUTES: Final = MappingProxyType(
    {
        "user": (CODE, columns.USER),
        "group": (CODE, columns.GROUP),
        "queue": (CODE, columns.QUEUE),
        "executable": (CODE, columns.EXECUTABLE),
        "partition": (CODE, columns.PARTITION),
        "cpus": (NUMBER, columns.CPUS),
        "tasks": (NUMBER, columns.TASKS),
        "gpus": (NUMBER, columns.GPUS),
        "requested": (NUMBER, columns.REQUESTED),
        "memory": (AMOUNT, columns.MEMORY),
        "hour": (HOUR, columns.SUBMIT),
        "day": (DAY, columns.SUBMIT),
    }
)
"""Attributes of every source, by name: how its column is read, and which it is."""

MOST_ATTRIBUTES: Final = 4
FEATURE_COLUMNS: Final = 1 + 2 * MOST_ATTRIBUTES
"""A feature's row: how many attributes, then for each how it is read and its column."""
KEY_COLUMNS: Final = 1 + MOST_ATTRIBUTES
"""A feature-value's key: the feature's number, then the values of its attributes, 0 after them."""

_HOUR_SECONDS: Final = 3_600.0


@part
def _value(how: int, number: float) -> float:
    """The value of an attribute; nan where it is unknown."""
    if how == CODE:
        return number if number >= 0.0 else math.nan
    if not math.isfinite(number):
        return math.nan
    if how == HOUR:
        return math.floor(number / _HOUR_SECONDS) % 24.0
    if how == DAY:
        return math.floor(number / DAY_SECONDS) % 7.0
    if how == AMOUNT and number == 0.0:
        return math.nan
    return number


@part
def fill_key(number: int, feature: Floats, spec: Floats, key: Floats) -> bool:
    """Write a job's value of one feature into ``key``; False if the job has none.

    Parameters
    ----------
    number
        The feature's number.
    feature
        The feature's row, shape (FEATURE_COLUMNS,).
    spec
        The job's specification row (``foresail.kernels.columns``).
    key
        Filled, shape (KEY_COLUMNS,).
    """
    key[0] = number
    for i in range(MOST_ATTRIBUTES):
        key[1 + i] = 0.0
    for i in range(int(feature[0])):
        value = _value(int(feature[1 + 2 * i]), spec[int(feature[2 + 2 * i])])
        if math.isnan(value):
            return False
        key[1 + i] = value
    return True


FEATURES: Final = 0
ROWS: Final = 1
INDEX_SLOTS: Final = 2
ROW_COLUMNS: Final = 3
USED: Final = 4
NEWEST: Final = 5
OLDEST: Final = 6
EVICTIONS: Final = 7
AT_FEATURES: Final = 8
AT_INDEX: Final = 9
AT_ORDER: Final = 10
AT_ROWS: Final = 11
TABLE_HEAD: Final = 12
"""The head: numbers of features, of rows at most, of slots of the index (a power of 2) and of
columns of a row; rows in use; the rows used last and longest ago (+1; 0 for none); how many rows
were given to another key; then where features, index, order and rows begin. Parameters of what
uses the table may follow."""

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_HALF_WORD = np.uint64(32)


def table_model(
    head_columns: int, features: Floats, rows: int, row_columns: int
) -> tuple[Floats, int]:
    """The beginning of an empty table, and its whole length (zeros up to there).

    Parameters
    ----------
    head_columns
        Length of the head with its user's parameters, at least TABLE_HEAD.
    features
        Shape (features, FEATURE_COLUMNS), as ``feature_values`` reads them.
    rows, row_columns
        Shape of the table at most; a row begins with its key.
    """
    slots = 2
    while slots < 2 * rows:
        slots *= 2
    at_index = head_columns + features.size
    model = np.zeros(at_index)
    model[FEATURES] = len(features)
    model[ROWS] = rows
    model[INDEX_SLOTS] = slots
    model[ROW_COLUMNS] = row_columns
    model[AT_FEATURES] = head_columns
    model[AT_INDEX] = at_index
    model[AT_ORDER] = at_index + slots
    model[AT_ROWS] = at_index + slots + 2 * rows
    model[head_columns:] = features.ravel()
    return model, at_index + slots + 2 * rows + rows * row_columns


@part
def feature_place(model: Floats, number: int) -> int:
    """Return where in the model the row of a feature begins."""
    return int(model[AT_FEATURES]) + number * FEATURE_COLUMNS


@part
def row_place(model: Floats, row: int) -> int:
    """Return where in the model a row of the table begins."""
    return int(model[AT_ROWS]) + row * int(model[ROW_COLUMNS])


@part
def _home(key: Floats, slots: int) -> int:
    """Slot of the index at which the search for a key begins."""
    mixed = _MULTIPLIER
    for i in range(KEY_COLUMNS):
        mixed = (mixed ^ np.float64(key[i] + 0.0).view(np.uint64)) * _MULTIPLIER
        mixed ^= mixed >> _HALF_WORD
    mixed *= _MULTIPLIER
    return int(np.int64(((mixed >> _HALF_WORD) * np.uint64(slots)) >> _HALF_WORD))


@part
def find_row(model: Floats, key: Floats) -> int:
    """Number of the row with this key, or -1."""
    slots = int(model[INDEX_SLOTS])
    index, rows, width = int(model[AT_INDEX]), int(model[AT_ROWS]), int(model[ROW_COLUMNS])
    slot = _home(key, slots)
    while model[index + slot] != 0.0:
        row = int(model[index + slot]) - 1
        at = rows + row * width
        same = True
        for i in range(KEY_COLUMNS):
            if model[at + i] != key[i]:
                same = False
                break
        if same:
            return row
        slot = (slot + 1) & (slots - 1)
    return -1


@part
def touch(model: Floats, row: int) -> None:
    """Make a row the one used last."""
    if int(model[NEWEST]) == row + 1:
        return
    _unlink(model, row)
    _link(model, row)


@part
def _link(model: Floats, row: int) -> None:
    """Put a row in front of the order of use."""
    order = int(model[AT_ORDER])
    before = int(model[NEWEST])
    model[order + 2 * row] = 0.0
    model[order + 2 * row + 1] = before
    if before > 0:
        model[order + 2 * (before - 1)] = row + 1.0
    else:
        model[OLDEST] = row + 1.0
    model[NEWEST] = row + 1.0


@part
def _unlink(model: Floats, row: int) -> None:
    """Take a row out of the order of use."""
    order = int(model[AT_ORDER])
    newer, older = int(model[order + 2 * row]), int(model[order + 2 * row + 1])
    if newer > 0:
        model[order + 2 * (newer - 1) + 1] = older
    else:
        model[NEWEST] = older
    if older > 0:
        model[order + 2 * (older - 1)] = newer
    else:
        model[OLDEST] = newer


@part
def _forget(model: Floats, row: int) -> None:
    """Take a row's key out of the index, closing the gap that it leaves."""
    slots = int(model[INDEX_SLOTS])
    index, rows, width = int(model[AT_INDEX]), int(model[AT_ROWS]), int(model[ROW_COLUMNS])
    at = rows + row * width
    gap = _home(model[at : at + KEY_COLUMNS], slots)
    while int(model[index + gap]) != row + 1:
        gap = (gap + 1) & (slots - 1)
    slot = (gap + 1) & (slots - 1)
    while model[index + slot] != 0.0:
        at = rows + (int(model[index + slot]) - 1) * width
        home = _home(model[at : at + KEY_COLUMNS], slots)
        if ((slot - home) & (slots - 1)) >= ((slot - gap) & (slots - 1)):
            model[index + gap] = model[index + slot]
            gap = slot
        slot = (slot + 1) & (slots - 1)
    model[index + gap] = 0.0


@part
def make_row(model: Floats, key: Floats) -> int:
    """A row of zeros behind a key that has none yet; the longest unused one if all are taken."""
    if int(model[USED]) < int(model[ROWS]):
        row = int(model[USED])
        model[USED] += 1.0
    else:
        row = int(model[OLDEST]) - 1
        _forget(model, row)
        _unlink(model, row)
        model[EVICTIONS] += 1.0
        begin = row_place(model, row)
        for place in range(begin, begin + int(model[ROW_COLUMNS])):
            model[place] = 0.0
    for i in range(KEY_COLUMNS):
        model[row_place(model, row) + i] = key[i]
    slots = int(model[INDEX_SLOTS])
    index = int(model[AT_INDEX])
    slot = _home(key, slots)
    while model[index + slot] != 0.0:
        slot = (slot + 1) & (slots - 1)
    model[index + slot] = row + 1.0
    _link(model, row)
    return row
