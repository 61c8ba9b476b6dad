"""The quadratic regression of several quantiles: a distribution instead of one number.

The features, basis and learning step are those of ``regression``; each level has its own
coefficients under its own pinball loss, and all share the inputs' scales.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.kernels.summary import summarise_piecewise
from foresail.distributions.quantiles import Quantiles
from foresail.kernels.columns import QUANTILE_LEVELS, REQUESTED
from foresail.kernels.compile import bare_step, part
from foresail.kernels.signatures import (
    BELIEF_STEP,
    PREDICTOR_STEP,
    PredictorInputs,
    PredictorSteps,
)
from foresail.kernels.waiting_jobs import sort_ascending
from foresail.model.distribution import Distribution
from foresail.model.errors import require
from foresail.model.registry import register
from foresail.predictors.kernels.history import (
    FEATURES,
    FIRST_FEATURE,
    JOB_COLUMNS,
    USER_COLUMNS,
    leave,
    record,
    started,
    write_features,
)
from foresail.predictors.kernels.linear_model import (
    ETA,
    SHORTEST_SECONDS,
    basis_size,
    descend,
    expand,
    inner_product,
    normalised_square,
    pinball_slope,
    raise_scales,
    rescale_weights,
    safe_inner_product,
)
from foresail.predictors.kernels.members import fill_piecewise_belief
from foresail.predictors.stepped import Layout, SteppedPredictor

_FRAME: Final = 2
TERMS: Final = basis_size(FEATURES)

_EXAMPLES: Final = 0
_NORMALISER: Final = 1
_LEVELS: Final = 2
_SCALES: Final = 3
_BASIS: Final = _SCALES + TERMS
_FIRST_LEVEL: Final = _BASIS + TERMS
"""The model: examples learned, their normalised squares, how many levels; scales of all terms and
room for one expanded example; then the levels, framed by 0 and 1; then per level coefficients and
squared gradients."""

_FIRST_VALUE: Final = JOB_COLUMNS
"""A job's row: that of ``predictors.kernels.history``, then the values at the framed levels."""

_UNLIMITED_STRETCH: Final = 2.0


@dataclass(frozen=True, slots=True)
class QuantileRegressionParameters:
    """Parameters of ``quantile_regression``."""

    levels: tuple[float, ...] = QUANTILE_LEVELS
    """Probabilities whose quantiles are learned, ascending, between 0 and 1."""

    def __post_init__(self) -> None:
        inside = all(0.0 < level < 1.0 for level in self.levels)
        ascending = all(a < b for a, b in zip(self.levels, self.levels[1:], strict=False))
        sound = bool(self.levels) and inside and ascending
        require(sound, self, "levels", "ascending numbers between 0 and 1")


@register("predictor", "quantile_regression", parameters=QuantileRegressionParameters)
class QuantileRegression(SteppedPredictor):
    """Predicts a distribution: quantiles by quadratic models of the job and its user's history."""

    def __init__(self, parameters: QuantileRegressionParameters) -> None:
        count = len(parameters.levels)
        model = np.zeros(_FIRST_LEVEL + count + _FRAME + 2 * count * TERMS)
        model[_LEVELS] = count
        _framed_levels(model)[:] = (0.0, *parameters.levels, 1.0)
        layout = Layout(model, USER_COLUMNS, _FIRST_VALUE + count + _FRAME)
        super().__init__(PredictorSteps(predict, started, observe, belief=belief), layout)

    def _belief(self, slot: int) -> Distribution:
        return Quantiles(_framed_levels(self._state.model), self._state.jobs[slot, _FIRST_VALUE:])


def _framed_levels(model: NDArray[np.float64]) -> NDArray[np.float64]:
    return model[_FIRST_LEVEL : _FIRST_LEVEL + int(model[_LEVELS]) + _FRAME]


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
    write_features(inputs)
    count = int(model[_LEVELS])
    values = inputs.jobs[slot, _FIRST_VALUE : _FIRST_VALUE + count + _FRAME]
    levels = model[_FIRST_LEVEL : _FIRST_LEVEL + count + _FRAME]
    basis = model[_BASIS:_FIRST_LEVEL]
    scales = model[_SCALES:_BASIS]
    expand(inputs.jobs[slot, FIRST_FEATURE : FIRST_FEATURE + FEATURES], basis)
    for i in range(count):
        first = _FIRST_LEVEL + count + _FRAME + 2 * i * TERMS
        values[1 + i] = safe_inner_product(basis, scales, model[first : first + TERMS])
    _frame_and_sort(values, inputs.specs[slot, REQUESTED])
    summarise_piecewise(levels, values, inputs.summaries[slot])


@part
def _learn(features: NDArray[np.float64], runtime: float, model: NDArray[np.float64]) -> None:
    """Take one gradient step per level (spec section 7, pinball loss)."""
    count = int(model[_LEVELS])
    basis = model[_BASIS:_FIRST_LEVEL]
    scales = model[_SCALES:_BASIS]
    expand(features, basis)
    for i in range(count):
        first = _FIRST_LEVEL + count + _FRAME + 2 * i * TERMS
        rescale_weights(basis, scales, model[first : first + TERMS])
    raise_scales(basis, scales)
    model[_EXAMPLES] += 1.0
    model[_NORMALISER] += normalised_square(basis, scales)
    rate = ETA * math.sqrt(model[_EXAMPLES] / model[_NORMALISER])
    for i in range(count):
        first = _FIRST_LEVEL + count + _FRAME + 2 * i * TERMS
        coefficients = model[first : first + TERMS]
        squares = model[first + TERMS : first + 2 * TERMS]
        error = inner_product(basis, coefficients) - runtime
        slope = pinball_slope(error, model[_FIRST_LEVEL + 1 + i])
        descend(basis, scales, coefficients, squares, slope, 0.0, rate)


@bare_step(PREDICTOR_STEP)
def observe(inputs: PredictorInputs) -> None:
    """Learn from the job's features at submission and its runtime; then add it to the history."""
    slot, runtime = inputs.slot, inputs.runtime
    leave(inputs)
    if math.isnan(runtime):
        return
    _learn(inputs.jobs[slot, FIRST_FEATURE : FIRST_FEATURE + FEATURES], runtime, inputs.model)
    record(inputs)


@bare_step(BELIEF_STEP)
def belief(inputs: PredictorInputs, row: NDArray[np.float64]) -> None:
    """Fill a row with the learned quantiles, by linear interpolation."""
    count = int(inputs.model[_LEVELS]) + _FRAME
    levels = inputs.model[_FIRST_LEVEL : _FIRST_LEVEL + count]
    values = inputs.jobs[inputs.slot, _FIRST_VALUE : _FIRST_VALUE + count]
    fill_piecewise_belief(levels, values, row)
