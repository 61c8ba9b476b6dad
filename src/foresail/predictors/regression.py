"""Quadratic regressions of all users, learned online: the published one, and one of quantiles.

The latter is a distribution instead of one number: each level has its own coefficients under its
own pinball loss, and all share the inputs' scales. Source: V. Reis' thesis (2015),
section 2.4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from foresail.distributions.kernels.summary import summarise_piecewise, summarise_point
from foresail.distributions.quantiles import Quantiles
from foresail.kernels.columns import CPUS, QUANTILE_LEVELS, REQUESTED
from foresail.kernels.compile import bare_step, part
from foresail.kernels.steps import BELIEF_STEP, PREDICTOR_STEP, PredictorInputs, PredictorSteps
from foresail.kernels.waiting_jobs import sort_ascending
from foresail.model.distribution import Distribution, Floats
from foresail.model.errors import require
from foresail.model.registry import register
from foresail.predictors.kernels import history, linear_model
from foresail.predictors.kernels.members import fill_piecewise_belief
from foresail.predictors.stepped import Layout, SteppedPredictor

_PUBLISHED_L2: Final = 4e9

Shape = Literal["squared", "linear"]
Weight = Literal["const", "short_wide", "long_narrow", "small_area", "large_area"]

TERMS: Final = linear_model.basis_size(history.FEATURES)

_FRAMED: Final = 0
_OVER: Final = 1
_UNDER: Final = 2
_WEIGHT: Final = 3
_L2: Final = 4
_EXAMPLES: Final = 5
_NORMALISER: Final = 6
_SCALES: Final = 7
_BASIS: Final = _SCALES + TERMS
_FIRST_LEVEL: Final = _BASIS + TERMS
"""The model: how many levels there are, framed by 0 and 1 (0 if one number is learned), and the
parameters of its loss; examples learned, their normalised squares; scales of all terms and room for
one expanded example; then the levels; then for each number that is learned, coefficients and
squared gradients of all terms."""

_FRAME: Final = 2
_FIRST_VALUE: Final = history.JOB_COLUMNS
"""A job's row: that of ``predictors.kernels.history``, then the values at the framed levels."""

_UNLIMITED_STRETCH: Final = 2.0


@dataclass(frozen=True, slots=True)
class RegressionParameters:
    """Parameters of ``regression``; the defaults are the study's best loss (E-Loss)."""

    over: Shape = "squared"
    under: Shape = "linear"
    """Shape of the loss of predictions above and below the real runtime."""
    weight: Weight = "large_area"
    """Weight of a job's error: short_wide is 5 + log(cpus / runtime), long_narrow 5 + log(runtime /
    cpus), small_area 11 - log(cpus runtime), large_area log(cpus runtime)."""

    @property
    def pull(self) -> float:
        """Strength of the pull of the coefficients towards zero.

        The published 4e9, or 0 if both sides are linear: it would outweigh every such gradient.
        """
        return 0.0 if self.over == self.under == "linear" else _PUBLISHED_L2


@register("predictor", "regression", parameters=RegressionParameters)
class Regression(SteppedPredictor):
    """Predicts by a quadratic model of the job and its user's history, under a chosen loss."""

    def __init__(self, parameters: RegressionParameters) -> None:
        model = np.zeros(_FIRST_LEVEL + 2 * TERMS)
        model[_OVER] = linear_model.SHAPES[parameters.over]
        model[_UNDER] = linear_model.SHAPES[parameters.under]
        model[_WEIGHT] = linear_model.WEIGHTS[parameters.weight]
        model[_L2] = parameters.pull
        steps = PredictorSteps(predict, history.started, observe)
        super().__init__(steps, Layout(model, history.USER_COLUMNS, history.JOB_COLUMNS))


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
        levels = (0.0, *parameters.levels, 1.0)
        model = np.zeros(_FIRST_LEVEL + len(levels) + 2 * len(parameters.levels) * TERMS)
        model[_FRAMED] = len(levels)
        _framed_levels(model)[:] = levels
        layout = Layout(model, history.USER_COLUMNS, _FIRST_VALUE + len(levels))
        super().__init__(
            PredictorSteps(predict_quantiles, history.started, observe, belief=belief), layout
        )

    def _belief(self, slot: int) -> Distribution:
        return Quantiles(_framed_levels(self._state.model), self._state.jobs[slot, _FIRST_VALUE:])


def _framed_levels(model: Floats) -> Floats:
    return model[_FIRST_LEVEL : _FIRST_LEVEL + int(model[_FRAMED])]


@part
def _coefficients(model: Floats, number: int) -> int:
    """Return where in the model the coefficients of a learned number begin."""
    return _FIRST_LEVEL + int(model[_FRAMED]) + 2 * number * TERMS


@part
def _output(inputs: PredictorInputs, number: int) -> float:
    """Return what the model says of the job whose features are expanded."""
    model, first = inputs.model, _coefficients(inputs.model, number)
    basis, scales = model[_BASIS:_FIRST_LEVEL], model[_SCALES:_BASIS]
    return float(linear_model.safe_inner_product(basis, scales, model[first : first + TERMS]))


@part
def _expand(inputs: PredictorInputs) -> None:
    """Expand the job's features."""
    features = inputs.jobs[
        inputs.slot, history.FIRST_FEATURE : history.FIRST_FEATURE + history.FEATURES
    ]
    linear_model.expand(features, inputs.model[_BASIS:_FIRST_LEVEL])


@bare_step(PREDICTOR_STEP)
def predict(inputs: PredictorInputs) -> None:
    """Store the job's features and predict from them, between one second and the limit.

    Under E-Loss most outputs are negative, and their size still ranks jobs by length (rank
    correlation 0.6 on KTH-SP2 and SDSC-SP2): it counts, as in the study's code.
    """
    history.write_features(inputs)
    _expand(inputs)
    output = abs(_output(inputs, 0))
    predicted = min(
        max(output, linear_model.SHORTEST_SECONDS), inputs.specs[inputs.slot, REQUESTED]
    )
    summarise_point(predicted, inputs.summaries[inputs.slot])


@part
def _frame_and_sort(values: Floats, requested: float) -> None:
    """Complete ``values`` (the inner ones are given) to a quantile function, in place.

    The inner values are brought between a second and the limit, and into order. The ends are a
    second and the limit; without one, the highest value stretched.
    """
    last = values.size - 1
    inner = values[1:last]
    for i in range(inner.size):
        inner[i] = min(max(inner[i], linear_model.SHORTEST_SECONDS), requested)
    sort_ascending(inner)
    values[0] = min(linear_model.SHORTEST_SECONDS, requested)
    values[last] = requested
    if not math.isfinite(requested):
        values[last] = values[last - 1] * _UNLIMITED_STRETCH


@bare_step(PREDICTOR_STEP)
def predict_quantiles(inputs: PredictorInputs) -> None:
    """Store the job's features and predict its quantiles from them."""
    slot, model = inputs.slot, inputs.model
    history.write_features(inputs)
    _expand(inputs)
    framed = int(model[_FRAMED])
    values = inputs.jobs[slot, _FIRST_VALUE : _FIRST_VALUE + framed]
    for i in range(framed - _FRAME):
        values[1 + i] = _output(inputs, i)
    _frame_and_sort(values, inputs.specs[slot, REQUESTED])
    levels = model[_FIRST_LEVEL : _FIRST_LEVEL + framed]
    summarise_piecewise(levels, values, inputs.summaries[slot])


@part
def _slope(model: Floats, number: int, error: float, weight: float) -> float:
    """Derivative of the loss of a learned number."""
    if model[_FRAMED] == 0.0:
        return linear_model.error_slope(error, int(model[_OVER]), int(model[_UNDER])) * weight
    return linear_model.pinball_slope(error, model[_FIRST_LEVEL + 1 + number])


@part
def _learn(inputs: PredictorInputs) -> None:
    """Take one gradient step for each learned number."""
    model, runtime = inputs.model, inputs.runtime
    numbers = max(int(model[_FRAMED]) - _FRAME, 1)
    basis, scales = model[_BASIS:_FIRST_LEVEL], model[_SCALES:_BASIS]
    _expand(inputs)
    for i in range(numbers):
        first = _coefficients(model, i)
        linear_model.rescale_weights(basis, scales, model[first : first + TERMS])
    linear_model.raise_scales(basis, scales)
    model[_EXAMPLES] += 1.0
    model[_NORMALISER] += linear_model.normalised_square(basis, scales)
    rate = linear_model.ETA * math.sqrt(model[_EXAMPLES] / model[_NORMALISER])
    weight = linear_model.job_weight(int(model[_WEIGHT]), inputs.specs[inputs.slot, CPUS], runtime)
    for i in range(numbers):
        first = _coefficients(model, i)
        coefficients = model[first : first + TERMS]
        squares = model[first + TERMS : first + 2 * TERMS]
        slope = _slope(model, i, linear_model.inner_product(basis, coefficients) - runtime, weight)
        linear_model.descend(basis, scales, coefficients, squares, slope, model[_L2], rate)


@bare_step(PREDICTOR_STEP)
def observe(inputs: PredictorInputs) -> None:
    """Learn from the job's features at submission and its runtime; then add it to the history."""
    history.leave(inputs)
    if not math.isnan(inputs.runtime):
        _learn(inputs)
        history.record(inputs)


@bare_step(BELIEF_STEP)
def belief(inputs: PredictorInputs, row: Floats) -> None:
    """Fill a row with the learned quantiles, by linear interpolation."""
    framed = int(inputs.model[_FRAMED])
    levels = inputs.model[_FIRST_LEVEL : _FIRST_LEVEL + framed]
    values = inputs.jobs[inputs.slot, _FIRST_VALUE : _FIRST_VALUE + framed]
    fill_piecewise_belief(levels, values, row)
