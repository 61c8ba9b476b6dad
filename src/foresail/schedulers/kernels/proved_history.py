"""What beliefs from history turned out to be worth: how far off they were.

A predictor says how sure it is; how sure one may be follows from how beliefs that claimed as much
have really erred. Beliefs are put into classes by the spread that they claim. A class that has
proved nothing yet counts for nothing.

The empirical Bayes idea for spec slearn, sections 3.6 and 6.1; the classes are ours.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import bare_kernel

Floats = NDArray[np.float64]

_SPREADS: Final = (0.05, 0.2, 0.5, 1.0)
CLASSES: Final = len(_SPREADS) + 2
ERRORS: Final = 0
SQUARES: Final = 1
RECORD_COLUMNS: Final = 2
"""A row of the record, for beliefs whose logarithm has a standard deviation up to one of those
above, a larger one, or none: how many there were and their squared errors, in logarithms."""

_DOUBT: Final = 5.0
"""Beliefs that a class is taken to have had besides, none of which was worth anything."""


def nothing_proved() -> Floats:
    """A record before any job has ended."""
    return np.zeros((CLASSES, RECORD_COLUMNS))


@bare_kernel
def spread_class(log_variance: float) -> int:
    """The class of a belief by the variance of its logarithm (nan: it has none)."""
    if not math.isfinite(log_variance):
        return CLASSES - 1
    spread = math.sqrt(log_variance)
    number = 0
    while number < len(_SPREADS) and spread > _SPREADS[number]:
        number += 1
    return number


@bare_kernel
def proved_variance(record: Floats, log_variance: float) -> float:
    """Variance of the logarithm of what is believed, by how beliefs of its class have erred.

    Infinite as long as none has.
    """
    row = record[spread_class(log_variance)]
    if row[ERRORS] == 0.0:
        return math.inf
    return float(row[SQUARES] / row[ERRORS] * (1.0 + _DOUBT / row[ERRORS]))


@bare_kernel
def learn_error(record: Floats, log_variance: float, log_error: float) -> None:
    """Add how far off a belief was, in logarithms."""
    row = record[spread_class(log_variance)]
    row[ERRORS] += 1.0
    row[SQUARES] += log_error * log_error
