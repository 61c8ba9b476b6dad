"""The quadratic regression of the published study: one model of all users, learned online.

Source: learned runtimes for backfilling, section 2.4; spec sections 4 to 7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.kernels.summary import summarise_point
from foresail.kernels.columns import CPUS, REQUESTED
from foresail.kernels.compile import bare_step, part
from foresail.kernels.signatures import PREDICTOR_STEP, PredictorInputs, PredictorSteps
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
    SHAPES,
    SHORTEST_SECONDS,
    WEIGHTS,
    basis_size,
    descend,
    error_slope,
    expand,
    inner_product,
    job_weight,
    normalised_square,
    raise_scales,
    rescale_weights,
    safe_inner_product,
)
from foresail.predictors.stepped import Layout, SteppedPredictor

_PUBLISHED_L2: Final = 4e9

Shape = Literal["squared", "linear"]
Weight = Literal["const", "short_wide", "long_narrow", "small_area", "large_area"]

TERMS: Final = basis_size(FEATURES)

_OVER: Final = 0
_UNDER: Final = 1
_WEIGHT: Final = 2
_L2: Final = 3
_EXAMPLES: Final = 4
_NORMALISER: Final = 5
_COEFFICIENTS: Final = 6
_SCALES: Final = _COEFFICIENTS + TERMS
_SQUARES: Final = _SCALES + TERMS
_BASIS: Final = _SQUARES + TERMS
_MODEL_SIZE: Final = _BASIS + TERMS
"""The model: parameters, examples learned, their normalised squares, then coefficients, scales and
squared gradients of all terms, and room for one expanded example."""


@dataclass(frozen=True, slots=True)
class RegressionParameters:
    """Parameters of ``regression``; the defaults are the study's best loss (E-Loss)."""

    over: Shape = "squared"
    under: Shape = "linear"
    """Shape of the loss of predictions above and below the real runtime."""
    weight: Weight = "large_area"
    """What makes a job's error matter: short_wide is 5 + log(cpus / runtime), long_narrow 5 +
    log(runtime / cpus), small_area 11 - log(cpus runtime), large_area log(cpus runtime)."""

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
        model = np.zeros(_MODEL_SIZE)
        model[_OVER] = SHAPES[parameters.over]
        model[_UNDER] = SHAPES[parameters.under]
        model[_WEIGHT] = WEIGHTS[parameters.weight]
        model[_L2] = parameters.pull
        steps = PredictorSteps(predict, started, observe)
        super().__init__(steps, Layout(model, USER_COLUMNS, JOB_COLUMNS))


@bare_step(PREDICTOR_STEP)
def predict(inputs: PredictorInputs) -> None:
    """Store the job's features and predict from them, between one second and the limit.

    Under E-Loss most outputs are negative, and their size still ranks jobs by length (rank
    correlation 0.6 on KTH-SP2 and SDSC-SP2): it counts, as in the study's code.
    """
    slot, model = inputs.slot, inputs.model
    write_features(inputs)
    basis = model[_BASIS:_MODEL_SIZE]
    expand(inputs.jobs[slot, FIRST_FEATURE : FIRST_FEATURE + FEATURES], basis)
    output = abs(safe_inner_product(basis, model[_SCALES:_SQUARES], model[_COEFFICIENTS:_SCALES]))
    predicted = min(max(output, SHORTEST_SECONDS), inputs.specs[slot, REQUESTED])
    summarise_point(predicted, inputs.summaries[slot])


@part
def _learn(
    features: NDArray[np.float64], cpus: float, runtime: float, model: NDArray[np.float64]
) -> None:
    """Take one gradient step towards the runtime (spec section 7)."""
    basis = model[_BASIS:_MODEL_SIZE]
    scales = model[_SCALES:_SQUARES]
    coefficients = model[_COEFFICIENTS:_SCALES]
    expand(features, basis)
    rescale_weights(basis, scales, coefficients)
    raise_scales(basis, scales)
    model[_EXAMPLES] += 1.0
    model[_NORMALISER] += normalised_square(basis, scales)
    error = inner_product(basis, coefficients) - runtime
    slope = error_slope(error, int(model[_OVER]), int(model[_UNDER])) * job_weight(
        int(model[_WEIGHT]), cpus, runtime
    )
    rate = ETA * math.sqrt(model[_EXAMPLES] / model[_NORMALISER])
    descend(basis, scales, coefficients, model[_SQUARES:_BASIS], slope, model[_L2], rate)


@bare_step(PREDICTOR_STEP)
def observe(inputs: PredictorInputs) -> None:
    """Learn from the job's features at submission and its runtime; then add it to the history."""
    slot, runtime = inputs.slot, inputs.runtime
    leave(inputs)
    if math.isnan(runtime):
        return
    features = inputs.jobs[slot, FIRST_FEATURE : FIRST_FEATURE + FEATURES]
    _learn(features, inputs.specs[slot, CPUS], runtime, inputs.model)
    record(inputs)
