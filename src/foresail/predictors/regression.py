"""The quadratic regression of the published study: one model of all users, learned online."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.signatures import PredictorSteps
from foresail.model.limits import require, require_at_least, require_positive
from foresail.model.registry import register
from foresail.predictors.kernels import history, regression
from foresail.predictors.kernels.loss import SHAPES, WEIGHTS
from foresail.predictors.stepped import DAY_SECONDS, Layout, SteppedPredictor

_PUBLISHED_L2: Final = 4e9

Shape = Literal["squared", "linear"]
Weight = Literal["const", "short_wide", "long_narrow", "small_area", "large_area"]


@dataclass(frozen=True, slots=True)
class RegressionParameters:
    """Parameters of ``regression``; the defaults are the study's best loss (E-Loss)."""

    over: Shape = "squared"
    under: Shape = "linear"
    """Shape of the loss of predictions above and below the real runtime."""
    weight: Weight = "large_area"
    """What makes a job's error matter: short_wide is 5 + log(cpus / runtime), long_narrow 5 +
    log(runtime / cpus), small_area 11 - log(cpus runtime), large_area log(cpus runtime)."""
    over_scale: float = 1.0
    under_scale: float = 1.0
    """Factors of the two sides."""
    logarithm: Literal["decimal", "natural"] = "decimal"
    """Base of the weights' logarithm; with ``natural`` many weights fall below the smallest."""
    smallest_weight: float = 0.1
    """Weights below this are raised to it. The study's code does not (``-inf``): its natural
    logarithms give long jobs negative weights, and predictions run away to the request."""
    eta: float = 5000.0
    """Length of the steps, in seconds."""
    l2: float | None = None
    """Strength of the pull of the coefficients towards zero; when not given 4e9, the published
    configuration, or 0 if both sides are linear (4e9 would outweigh every such gradient)."""
    safe_predict: bool = True
    """Let an input never seen so large count like its largest predecessor."""
    warmup_requested: int = 0
    """Predict the requested time until so many jobs are learned."""
    negative: Literal["abs", "clip"] = "abs"
    """What becomes of a negative output: its absolute value (``abs``, as in the study's code) or
    one second (``clip``). Under E-Loss most outputs are negative, and their size still ranks jobs
    by length (rank correlation 0.6 on KTH-SP2 and SDSC-SP2); clipped, nearly every prediction is
    one second."""
    skip_killed: bool = False
    """Do not learn from jobs that ran to their limit: their runtime was cut."""
    unknown_seconds: float = DAY_SECONDS
    """Stands in for the limit of a job without one of a user none of whose jobs has ended."""

    def __post_init__(self) -> None:
        require_positive(self, "over_scale", "under_scale", "eta", "unknown_seconds")
        require(self.smallest_weight < math.inf, self, "smallest_weight", "a number")
        require_at_least(self, 0, "l2", "warmup_requested")

    @property
    def pull(self) -> float:
        """``l2``, or what stands for it when it is not given."""
        if self.l2 is not None:
            return self.l2
        return 0.0 if self.over == self.under == "linear" else _PUBLISHED_L2


@register("predictor", "regression", parameters=RegressionParameters)
class Regression(SteppedPredictor):
    """Predicts by a quadratic model of the job and its user's history, under a chosen loss."""

    def __init__(self, parameters: RegressionParameters) -> None:
        steps = PredictorSteps(regression.predict, history.started, regression.observe)
        layout = Layout(_model(parameters), history.USER_COLUMNS, history.JOB_COLUMNS)
        super().__init__(steps, layout)


def _model(parameters: RegressionParameters) -> NDArray[np.float64]:
    model = np.zeros(regression.MODEL_SIZE)
    model[regression.OVER] = SHAPES[parameters.over]
    model[regression.UNDER] = SHAPES[parameters.under]
    model[regression.OVER_SCALE] = parameters.over_scale
    model[regression.UNDER_SCALE] = parameters.under_scale
    model[regression.WEIGHT] = WEIGHTS[parameters.weight]
    model[regression.LOG_UNIT] = 1.0 if parameters.logarithm == "natural" else math.log(10.0)
    model[regression.SMALLEST_WEIGHT] = parameters.smallest_weight
    model[regression.ETA] = parameters.eta
    model[regression.L2] = parameters.pull
    model[regression.SAFE] = parameters.safe_predict
    model[regression.WARMUP] = parameters.warmup_requested
    model[regression.ABSOLUTE] = parameters.negative == "abs"
    model[regression.SKIP_KILLED] = parameters.skip_killed
    model[regression.UNKNOWN_SECONDS] = parameters.unknown_seconds
    return model
