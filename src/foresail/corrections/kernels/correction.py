"""The next estimate of a job that has outrun its current one, one function per rule.

Source: spec section 3. Every rule answers more than the current estimate: at most the request while
that lies ahead, and twice the current estimate once the request has been outrun (limits are not
enforced).
"""

from __future__ import annotations

import math
from typing import Final

from foresail.kernels.columns import Q10, QUANTILE_LEVELS
from foresail.kernels.compile import bare_step, part
from foresail.kernels.signatures import CORRECTION_STEP, CorrectionInputs

_QUANTILES = len(QUANTILE_LEVELS)
_SHORTEST_SECONDS = 1.0

CUMULATIVE: Final = 0.0
ABSOLUTE: Final = 1.0


@part
def _within_request(estimate: float, current: float, requested: float) -> float:
    """The estimate, at most the request, and more than the current one in any case."""
    allowed = min(estimate, requested)
    if allowed > current and math.isfinite(allowed):
        return allowed
    return max(2.0 * current, _SHORTEST_SECONDS)


@bare_step(CORRECTION_STEP)
def to_request(inputs: CorrectionInputs) -> float:
    """The request; without one twice the current estimate. No parameters."""
    return _within_request(inputs.requested, inputs.current, inputs.requested)


@bare_step(CORRECTION_STEP)
def by_increments(inputs: CorrectionInputs) -> float:
    """A longer and longer increment. Parameters: the reading, then the increments (seconds)."""
    last = inputs.parameters.size - 2
    increment = inputs.parameters[1 + min(inputs.corrections, last)]
    if inputs.parameters[0] == ABSOLUTE and inputs.corrections <= last:
        estimate = inputs.initial + increment
    else:
        estimate = inputs.current + increment
    return _within_request(estimate, inputs.current, inputs.requested)


@bare_step(CORRECTION_STEP)
def by_factor(inputs: CorrectionInputs) -> float:
    """A multiple of the current estimate. Parameter: the factor."""
    estimate = inputs.parameters[0] * inputs.current
    return _within_request(estimate, inputs.current, inputs.requested)


@bare_step(CORRECTION_STEP)
def to_quantile(inputs: CorrectionInputs) -> float:
    """The next quantile of the belief at submission; twice the current estimate after the last."""
    estimate = 2.0 * inputs.current
    for i in range(_QUANTILES):
        if inputs.summary[Q10 + i] > inputs.current:
            estimate = inputs.summary[Q10 + i]
            break
    return _within_request(estimate, inputs.current, inputs.requested)


@bare_step(CORRECTION_STEP)
def by_growing_steps(inputs: CorrectionInputs) -> float:
    """A step that grows by a factor each time. Parameters: the first step (seconds), the factor."""
    step = inputs.parameters[0] * inputs.parameters[1] ** inputs.corrections
    return _within_request(inputs.current + step, inputs.current, inputs.requested)
