"""The quadratic regression of runtimes, learned online, as compiled steps.

Source: paper 004 section 2.4; spec sections 4 to 7.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.kernels.summary import summarise_point
from foresail.kernels.columns import CPUS, REQUESTED
from foresail.kernels.compile import bare_step, part
from foresail.kernels.signatures import PREDICTOR_STEP, PredictorInputs
from foresail.predictors.kernels.basis import basis_size, expand
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
    leave,
    record,
    write_features,
)
from foresail.predictors.kernels.loss import error_slope, job_weight

TERMS: Final = basis_size(FEATURES)

OVER: Final = 0
UNDER: Final = 1
OVER_SCALE: Final = 2
UNDER_SCALE: Final = 3
WEIGHT: Final = 4
LOG_UNIT: Final = 5
SMALLEST_WEIGHT: Final = 6
ETA: Final = 7
L2: Final = 8
SAFE: Final = 9
WARMUP: Final = 10
ABSOLUTE: Final = 11
SKIP_KILLED: Final = 12
UNKNOWN_SECONDS: Final = 13
EXAMPLES: Final = 14
NORMALISER: Final = 15
_COEFFICIENTS: Final = 16
_SCALES: Final = _COEFFICIENTS + TERMS
_SQUARES: Final = _SCALES + TERMS
_BASIS: Final = _SQUARES + TERMS
MODEL_SIZE: Final = _BASIS + TERMS
"""The model: parameters (yes is 1, no is 0), examples learned, their normalised squares, then
coefficients, scales and squared gradients of all terms, and room for one expanded example."""

SHORTEST_SECONDS: Final = 1.0


@bare_step(PREDICTOR_STEP)
def predict(inputs: PredictorInputs) -> None:
    """Store the job's features and predict from them, between one second and the limit."""
    slot, model = inputs.slot, inputs.model
    write_features(inputs, model[UNKNOWN_SECONDS])
    features = inputs.jobs[slot, FIRST_FEATURE : FIRST_FEATURE + FEATURES]
    if model[EXAMPLES] < model[WARMUP]:
        summarise_point(features[0], inputs.summaries[slot])
        return
    basis = model[_BASIS:MODEL_SIZE]
    scales = model[_SCALES:_SQUARES]
    coefficients = model[_COEFFICIENTS:_SCALES]
    expand(features, basis)
    if model[SAFE] != 0.0:
        output = safe_inner_product(basis, scales, coefficients)
    else:
        output = inner_product(basis, coefficients)
    if model[ABSOLUTE] != 0.0:
        output = abs(output)
    predicted = min(max(output, SHORTEST_SECONDS), inputs.specs[slot, REQUESTED])
    summarise_point(predicted, inputs.summaries[slot])


@part
def _learn(
    features: NDArray[np.float64], cpus: float, runtime: float, model: NDArray[np.float64]
) -> None:
    """Take one gradient step towards the runtime (spec section 7)."""
    basis = model[_BASIS:MODEL_SIZE]
    scales = model[_SCALES:_SQUARES]
    coefficients = model[_COEFFICIENTS:_SCALES]
    expand(features, basis)
    rescale_weights(basis, scales, coefficients)
    raise_scales(basis, scales)
    model[EXAMPLES] += 1.0
    model[NORMALISER] += normalised_square(basis, scales)
    error = inner_product(basis, coefficients) - runtime
    slope = error_slope(
        error, int(model[OVER]), int(model[UNDER]), model[OVER_SCALE], model[UNDER_SCALE]
    ) * job_weight(int(model[WEIGHT]), cpus, runtime, model[LOG_UNIT], model[SMALLEST_WEIGHT])
    rate = model[ETA] * math.sqrt(model[EXAMPLES] / model[NORMALISER])
    descend(basis, scales, coefficients, model[_SQUARES:_BASIS], slope, model[L2], rate)


@bare_step(PREDICTOR_STEP)
def observe(inputs: PredictorInputs) -> None:
    """Learn from the job's features at submission and its runtime; then add it to the history."""
    slot, runtime, model = inputs.slot, inputs.runtime, inputs.model
    leave(inputs)
    if math.isnan(runtime):
        return
    killed = runtime >= inputs.specs[slot, REQUESTED]
    if not (killed and model[SKIP_KILLED] != 0.0):
        features = inputs.jobs[slot, FIRST_FEATURE : FIRST_FEATURE + FEATURES]
        _learn(features, inputs.specs[slot, CPUS], runtime, model)
    record(inputs)
