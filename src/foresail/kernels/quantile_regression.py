"""The quadratic regression of several runtime quantiles at once, as compiled steps.

The features, basis and learning step are those of ``foresail.kernels.regression``; each level has
its own coefficients under its own pinball loss, and all share the inputs' scales.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.basis import basis_size, expand
from foresail.kernels.belief import fill_piecewise_belief
from foresail.kernels.columns import CPUS, REQUESTED
from foresail.kernels.compile import kernel, step
from foresail.kernels.gradient import (
    descend,
    inner_product,
    normalised_square,
    raise_scales,
    rescale_weights,
    safe_inner_product,
)
from foresail.kernels.history import (
    FEATURES,
    FIRST_FEATURE,
    JOB_COLUMNS,
    leave,
    record,
    write_features,
)
from foresail.kernels.loss import pinball_slope
from foresail.kernels.request import user_row
from foresail.kernels.signatures import BELIEF_STEP, PREDICTOR_STEP
from foresail.kernels.summary import summarise_piecewise

TERMS: Final = basis_size(FEATURES)

ETA: Final = 0
L2: Final = 1
SAFE: Final = 2
WARMUP: Final = 3
SKIP_KILLED: Final = 4
UNKNOWN_SECONDS: Final = 5
EXAMPLES: Final = 6
NORMALISER: Final = 7
LEVELS: Final = 8
_SCALES: Final = 9
_BASIS: Final = _SCALES + TERMS
_FIRST_LEVEL: Final = _BASIS + TERMS
"""The model: parameters (yes is 1, no is 0), examples learned, their normalised squares, how many
levels; scales of all terms and room for one expanded example; then the levels, framed by 0 and 1;
then per level coefficients and squared gradients."""

FIRST_VALUE: Final = JOB_COLUMNS
"""A job's row: that of ``foresail.kernels.history``, then the values at the framed levels."""

SHORTEST_SECONDS: Final = 1.0
_UNLIMITED_STRETCH = 2.0


def model_size(levels: int) -> int:
    """Length of the model for so many levels (not counting the frame)."""
    return _FIRST_LEVEL + levels + 2 + 2 * levels * TERMS


def framed_levels(model: NDArray[np.float64]) -> NDArray[np.float64]:
    """The levels with 0 and 1 at the ends, as part of the model."""
    return model[_FIRST_LEVEL : _FIRST_LEVEL + int(model[LEVELS]) + 2]


@kernel
def _frame_and_sort(values: NDArray[np.float64], requested: float) -> None:
    """Complete ``values`` (the inner ones are given) to a quantile function, in place.

    The inner values are brought between a second and the limit, and into order. The ends are a
    second and the limit; without one, the highest value stretched.
    """
    inner = values[1:-1]
    for i in range(inner.size):
        inner[i] = min(max(inner[i], SHORTEST_SECONDS), requested)
    inner.sort()
    values[0] = min(SHORTEST_SECONDS, requested)
    if math.isfinite(requested):
        values[-1] = requested
    else:
        values[-1] = inner[-1] * _UNLIMITED_STRETCH


@step(PREDICTOR_STEP)
def predict(
    slot: int,
    now: float,
    runtime: float,
    specs: NDArray[np.float64],
    model: NDArray[np.float64],
    users: NDArray[np.float64],
    jobs: NDArray[np.float64],
    summaries: NDArray[np.float64],
) -> None:
    """Store the job's features and predict its quantiles from them."""
    user = users[user_row(specs, slot)]
    write_features(slot, now, specs, user, jobs, model[UNKNOWN_SECONDS])
    features = jobs[slot, FIRST_FEATURE : FIRST_FEATURE + FEATURES]
    count = int(model[LEVELS])
    values = jobs[slot, FIRST_VALUE : FIRST_VALUE + count + 2]
    levels = model[_FIRST_LEVEL : _FIRST_LEVEL + count + 2]
    if model[EXAMPLES] < model[WARMUP]:
        values[:] = features[0]
    else:
        basis = model[_BASIS:_FIRST_LEVEL]
        scales = model[_SCALES:_BASIS]
        expand(features, basis)
        for i in range(count):
            first = _FIRST_LEVEL + count + 2 + 2 * i * TERMS
            coefficients = model[first : first + TERMS]
            if model[SAFE] != 0.0:
                values[1 + i] = safe_inner_product(basis, scales, coefficients)
            else:
                values[1 + i] = inner_product(basis, coefficients)
        _frame_and_sort(values, specs[slot, REQUESTED])
    summarise_piecewise(levels, values, summaries[slot])


@kernel
def _learn(features: NDArray[np.float64], runtime: float, model: NDArray[np.float64]) -> None:
    """Take one gradient step per level (spec section 7, pinball loss)."""
    count = int(model[LEVELS])
    basis = model[_BASIS:_FIRST_LEVEL]
    scales = model[_SCALES:_BASIS]
    expand(features, basis)
    for i in range(count):
        first = _FIRST_LEVEL + count + 2 + 2 * i * TERMS
        rescale_weights(basis, scales, model[first : first + TERMS])
    raise_scales(basis, scales)
    model[EXAMPLES] += 1.0
    model[NORMALISER] += normalised_square(basis, scales)
    rate = model[ETA] * math.sqrt(model[EXAMPLES] / model[NORMALISER])
    for i in range(count):
        first = _FIRST_LEVEL + count + 2 + 2 * i * TERMS
        coefficients = model[first : first + TERMS]
        squares = model[first + TERMS : first + 2 * TERMS]
        error = inner_product(basis, coefficients) - runtime
        slope = pinball_slope(error, model[_FIRST_LEVEL + 1 + i])
        descend(basis, scales, coefficients, squares, slope, model[L2], rate)


@step(PREDICTOR_STEP)
def observe(
    slot: int,
    now: float,
    runtime: float,
    specs: NDArray[np.float64],
    model: NDArray[np.float64],
    users: NDArray[np.float64],
    jobs: NDArray[np.float64],
    summaries: NDArray[np.float64],
) -> None:
    """Learn from the job's features at submission and its runtime; then add it to the history."""
    user = users[user_row(specs, slot)]
    leave(slot, specs, user, jobs)
    if math.isnan(runtime):
        return
    killed = runtime >= specs[slot, REQUESTED]
    if not (killed and model[SKIP_KILLED] != 0.0):
        _learn(jobs[slot, FIRST_FEATURE : FIRST_FEATURE + FEATURES], runtime, model)
    record(now, runtime, specs[slot, CPUS], user)


@step(BELIEF_STEP)
def belief(
    slot: int,
    specs: NDArray[np.float64],
    model: NDArray[np.float64],
    users: NDArray[np.float64],
    jobs: NDArray[np.float64],
    summary: NDArray[np.float64],
    row: NDArray[np.float64],
) -> None:
    """The quantiles between those that were predicted, by linear interpolation."""
    count = int(model[LEVELS]) + 2
    levels = model[_FIRST_LEVEL : _FIRST_LEVEL + count]
    fill_piecewise_belief(levels, jobs[slot, FIRST_VALUE : FIRST_VALUE + count], row)
