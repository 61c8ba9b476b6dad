"""Which history a job belongs to: the value that it has of each feature, such as its user.

A feature is one attribute, several together, or none (every job has the same value of that one). A
job that lacks an attribute has no value of the features that need it.

Source: spec 3sigma-distsched section 3.1; ambiguity A-4.
"""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.columns import (
    CPUS,
    EXECUTABLE,
    GPUS,
    GROUP,
    MEMORY,
    PARTITION,
    QUEUE,
    REQUESTED,
    SUBMIT,
    TASKS,
    USER,
)
from foresail.kernels.compile import part

CODE: Final = 0
NUMBER: Final = 1
AMOUNT: Final = 2
HOUR: Final = 3
DAY: Final = 4
"""How a column becomes a value: a code (unknown below 0), a number (unknown if not finite), an
amount (unknown, too, if 0), the hour of the day, the day of the week (of the workload's clock)."""

ATTRIBUTES: Final = MappingProxyType(
    {
        "user": (CODE, USER),
        "group": (CODE, GROUP),
        "queue": (CODE, QUEUE),
        "executable": (CODE, EXECUTABLE),
        "partition": (CODE, PARTITION),
        "cpus": (NUMBER, CPUS),
        "tasks": (NUMBER, TASKS),
        "gpus": (NUMBER, GPUS),
        "requested": (NUMBER, REQUESTED),
        "memory": (AMOUNT, MEMORY),
        "hour": (HOUR, SUBMIT),
        "day": (DAY, SUBMIT),
    }
)
"""What every source has, by name: how its column is read, and which it is."""

MOST_ATTRIBUTES: Final = 4
FEATURE_COLUMNS: Final = 1 + 2 * MOST_ATTRIBUTES
"""A feature's row: how many attributes, then for each how it is read and its column."""
KEY_COLUMNS: Final = 1 + MOST_ATTRIBUTES
"""A feature-value's key: the feature's number, then the values of its attributes, 0 after them."""

_HOUR_SECONDS: Final = 3_600.0
_DAY_SECONDS: Final = 86_400.0


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
        return math.floor(number / _DAY_SECONDS) % 7.0
    if how == AMOUNT and number == 0.0:
        return math.nan
    return number


@part
def fill_key(
    number: int, feature: NDArray[np.float64], spec: NDArray[np.float64], key: NDArray[np.float64]
) -> bool:
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
