"""Losses of a predicted runtime: what an error of this size costs, and its slope.

Source: paper 004 section 2.4, spec sections 6 and 13 (names fixed there: ``over`` is the side of
predictions above the runtime, ``under`` the side below it).
"""

from __future__ import annotations

import math
from typing import Final

from foresail.kernels.compile import part

LINEAR: Final = 0
SQUARED: Final = 1
SHAPES: Final = {"linear": LINEAR, "squared": SQUARED}

CONST: Final = 0
SHORT_WIDE: Final = 1
LONG_NARROW: Final = 2
SMALL_AREA: Final = 3
LARGE_AREA: Final = 4
WEIGHTS: Final = {
    "const": CONST,
    "short_wide": SHORT_WIDE,
    "long_narrow": LONG_NARROW,
    "small_area": SMALL_AREA,
    "large_area": LARGE_AREA,
}

_SHORTEST_SECONDS = 1.0


@part
def job_weight(kind: int, cpus: float, runtime: float, log_unit: float, smallest: float) -> float:
    """Weight of a job's error.

    Parameters
    ----------
    kind
        One of ``WEIGHTS``.
    cpus, runtime
        Cpus asked for and seconds really run (below one second counts as one).
    log_unit
        Natural logarithm of the base: 1 for natural, ln 10 for decimal logarithms.
    smallest
        Weights below this are raised to it, lest the loss lose its convexity.
    """
    seconds = max(runtime, _SHORTEST_SECONDS)
    weight = 1.0
    if kind == SHORT_WIDE:
        weight = 5.0 + math.log(cpus / seconds) / log_unit
    elif kind == LONG_NARROW:
        weight = 5.0 + math.log(seconds / cpus) / log_unit
    elif kind == SMALL_AREA:
        weight = 11.0 - math.log(cpus * seconds) / log_unit
    elif kind == LARGE_AREA:
        weight = math.log(cpus * seconds) / log_unit
    return max(weight, smallest)


@part
def error_slope(
    error: float, over: int, under: int, over_scale: float, under_scale: float
) -> float:
    """Derivative of the unweighted loss of ``error`` = predicted - real runtime (seconds).

    With respect to the prediction; 0 where there is no error.
    """
    if error > 0.0:
        return over_scale * (2.0 * error if over == SQUARED else 1.0)
    if error < 0.0:
        return under_scale * (2.0 * error if under == SQUARED else -1.0)
    return 0.0


@part
def pinball_slope(error: float, level: float) -> float:
    """Derivative of the pinball loss, whose minimum is the quantile at ``level``."""
    if error > 0.0:
        return 1.0 - level
    if error < 0.0:
        return -level
    return 0.0
