"""The quadratic regression of several runtime quantiles at once, as compiled steps.

The features, basis and learning step are those of ``predictors.kernels.regression``; each level has
its own coefficients under its own pinball loss, and all share the inputs' scales.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.kernels.summary import summarise_piecewise
from foresail.kernels.columns import REQUESTED
from foresail.kernels.compile import bare_step, part
from foresail.kernels.signatures import BELIEF_STEP, PREDICTOR_STEP, PredictorInputs
from foresail.kernels.sorting import sort_ascending
from foresail.predictors.kernels.basis import basis_size, expand
from foresail.predictors.kernels.belief import fill_piecewise_belief
from foresail.predictors.kernels.gradient import (
    descend,
    inner_product,
    normalised_square,
    raise_scales,
    rescale_weights,
    safe_inner_product,
)
from foresail.predictors.kernels.history import (
    FEATURES,
    FIRST_FEATURE,
    JOB_COLUMNS,
    leave,
    record,
    write_features,
)
from foresail.predictors.kernels.loss import pinball_slope

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
"""A job's row: that of ``predictors.kernels.history``, then the values at the framed levels."""

SHORTEST_SECONDS: Final = 1.0
_UNLIMITED_STRETCH = 2.0


def model_size(levels: int) -> int:
    """Length of the model for so many levels (not counting the frame)."""
    return _FIRST_LEVEL + levels + 2 + 2 * levels * TERMS


def framed_levels(model: NDArray[np.float64]) -> NDArray[np.float64]:
    """The levels with 0 and 1 at the ends, as part of the model."""
    return model[_FIRST_LEVEL : _FIRST_LEVEL + int(model[LEVELS]) + 2]


@part
def _frame_and_sort(values: NDArray[np.float64], requested: float) -> None:
    """Complete ``values`` (the inner ones are given) to a quantile function, in place.

    The inner values are brought between a second and the limit, and into order. The ends are a
    second and the limit; without one, the highest value stretched.
    """
    last = values.size - 1
    inner = values[1:last]
    for i in range(inner.size):
        inner[i] = min(max(inner[i], SHORTEST_SECONDS), requested)
    sort_ascending(inner)
    values[0] = min(SHORTEST_SECONDS, requested)
    values[last] = requested
    if not math.isfinite(requested):
        values[last] = values[last - 1] * _UNLIMITED_STRETCH


@bare_step(PREDICTOR_STEP)
def predict(inputs: PredictorInputs) -> None:
    """Store the job's features and predict its quantiles from them."""
    slot, model = inputs.slot, inputs.model
    write_features(inputs, model[UNKNOWN_SECONDS])
    features = inputs.jobs[slot, FIRST_FEATURE : FIRST_FEATURE + FEATURES]
    count = int(model[LEVELS])
    values = inputs.jobs[slot, FIRST_VALUE : FIRST_VALUE + count + 2]
    levels = model[_FIRST_LEVEL : _FIRST_LEVEL + count + 2]
    if model[EXAMPLES] < model[WARMUP]:
        for i in range(values.size):
            values[i] = features[0]
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
        _frame_and_sort(values, inputs.specs[slot, REQUESTED])
    summarise_piecewise(levels, values, inputs.summaries[slot])


@part
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


@bare_step(PREDICTOR_STEP)
def observe(inputs: PredictorInputs) -> None:
    """Learn from the job's features at submission and its runtime; then add it to the history."""
    slot, runtime, model = inputs.slot, inputs.runtime, inputs.model
    leave(inputs)
    if math.isnan(runtime):
        return
    killed = runtime >= inputs.specs[slot, REQUESTED]
    if not (killed and model[SKIP_KILLED] != 0.0):
        _learn(inputs.jobs[slot, FIRST_FEATURE : FIRST_FEATURE + FEATURES], runtime, model)
    record(inputs)


@bare_step(BELIEF_STEP)
def belief(inputs: PredictorInputs, row: NDArray[np.float64]) -> None:
    """The quantiles between those that were predicted, by linear interpolation."""
    count = int(inputs.model[LEVELS]) + 2
    levels = inputs.model[_FIRST_LEVEL : _FIRST_LEVEL + count]
    values = inputs.jobs[inputs.slot, FIRST_VALUE : FIRST_VALUE + count]
    fill_piecewise_belief(levels, values, row)
