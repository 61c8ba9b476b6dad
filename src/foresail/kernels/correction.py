"""The next estimate of a job that has outrun its current one, one function per rule.

Source: spec section 3. Every rule answers more than the current estimate: at most the request while
that lies ahead, and twice the current estimate once the request has been outrun (limits that nobody
enforces).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.columns import Q10, QUANTILE_LEVELS
from foresail.kernels.compile import bare_kernel, bare_step
from foresail.kernels.signatures import CORRECTION_STEP

_QUANTILES = len(QUANTILE_LEVELS)
_SHORTEST_SECONDS = 1.0

CUMULATIVE: Final = 0.0
ABSOLUTE: Final = 1.0


@bare_kernel
def _within_request(estimate: float, current: float, requested: float) -> float:
    """The estimate, at most the request, and more than the current one in any case."""
    allowed = min(estimate, requested)
    if allowed > current and math.isfinite(allowed):
        return allowed
    return max(2.0 * current, _SHORTEST_SECONDS)


@bare_step(CORRECTION_STEP)
def to_request(
    initial: float,
    current: float,
    requested: float,
    count: int,
    summary: NDArray[np.float64],
    parameters: NDArray[np.float64],
) -> float:
    """The request; without one twice the current estimate. No parameters."""
    return _within_request(requested, current, requested)


@bare_step(CORRECTION_STEP)
def by_increments(
    initial: float,
    current: float,
    requested: float,
    count: int,
    summary: NDArray[np.float64],
    parameters: NDArray[np.float64],
) -> float:
    """A longer and longer increment. Parameters: the reading, then the increments (seconds)."""
    increments = parameters[1:]
    last = increments.size - 1
    increment = increments[min(count, last)]
    if parameters[0] == ABSOLUTE and count <= last:
        estimate = initial + increment
    else:
        estimate = current + increment
    return _within_request(estimate, current, requested)


@bare_step(CORRECTION_STEP)
def by_factor(
    initial: float,
    current: float,
    requested: float,
    count: int,
    summary: NDArray[np.float64],
    parameters: NDArray[np.float64],
) -> float:
    """A multiple of the current estimate. Parameter: the factor."""
    return _within_request(parameters[0] * current, current, requested)


@bare_step(CORRECTION_STEP)
def to_quantile(
    initial: float,
    current: float,
    requested: float,
    count: int,
    summary: NDArray[np.float64],
    parameters: NDArray[np.float64],
) -> float:
    """The next quantile of the belief at submission; twice the current estimate after the last."""
    for i in range(_QUANTILES):
        if summary[Q10 + i] > current:
            return _within_request(summary[Q10 + i], current, requested)
    return _within_request(2.0 * current, current, requested)


@bare_step(CORRECTION_STEP)
def by_growing_steps(
    initial: float,
    current: float,
    requested: float,
    count: int,
    summary: NDArray[np.float64],
    parameters: NDArray[np.float64],
) -> float:
    """A step that grows by a factor each time. Parameters: the first step (seconds), the factor."""
    step = parameters[0] * parameters[1] ** count
    return _within_request(current + step, current, requested)
