"""The quadratic regression of several quantiles: a distribution instead of one number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.quantiles import Quantiles
from foresail.kernels.columns import QUANTILE_LEVELS
from foresail.kernels.signatures import PredictorSteps
from foresail.model.distribution import Distribution
from foresail.model.limits import require, require_at_least, require_positive
from foresail.model.registry import register
from foresail.predictors.kernels import history
from foresail.predictors.kernels import quantile_regression as steps
from foresail.predictors.stepped import DAY_SECONDS, Layout, SteppedPredictor

_FRAME: Final = 2


@dataclass(frozen=True, slots=True)
class QuantileRegressionParameters:
    """Parameters of ``quantile_regression``."""

    levels: tuple[float, ...] = QUANTILE_LEVELS
    """Probabilities whose quantiles are learned, ascending, between 0 and 1."""
    eta: float = 5000.0
    """Length of the steps, in seconds."""
    l2: float = 0.0
    """Strength of the pull of the coefficients towards zero."""
    safe_predict: bool = True
    """Let an input never seen so large count like its largest predecessor."""
    warmup_requested: int = 0
    """Predict the requested time until so many jobs are learned."""
    skip_killed: bool = False
    """Do not learn from jobs that ran to their limit: their runtime was cut."""
    unknown_seconds: float = DAY_SECONDS
    """Stands in for the limit of a job without one of a user none of whose jobs has ended."""

    def __post_init__(self) -> None:
        inside = all(0.0 < level < 1.0 for level in self.levels)
        ascending = all(a < b for a, b in zip(self.levels, self.levels[1:], strict=False))
        sound = bool(self.levels) and inside and ascending
        require(sound, self, "levels", "ascending numbers between 0 and 1")
        require_positive(self, "eta", "unknown_seconds")
        require_at_least(self, 0, "l2", "warmup_requested")


@register("predictor", "quantile_regression", parameters=QuantileRegressionParameters)
class QuantileRegression(SteppedPredictor):
    """Predicts a distribution: quantiles by quadratic models of the job and its user's history."""

    def __init__(self, parameters: QuantileRegressionParameters) -> None:
        framed = len(parameters.levels) + _FRAME
        layout = Layout(_model(parameters), history.USER_COLUMNS, steps.FIRST_VALUE + framed)
        of_steps = PredictorSteps(
            steps.predict, history.started, steps.observe, belief=steps.belief
        )
        super().__init__(of_steps, layout)

    def _belief(self, slot: int) -> Distribution:
        values = self._state.jobs[slot, steps.FIRST_VALUE :]
        return Quantiles(steps.framed_levels(self._state.model), values)


def _model(parameters: QuantileRegressionParameters) -> NDArray[np.float64]:
    model = np.zeros(steps.model_size(len(parameters.levels)))
    model[steps.ETA] = parameters.eta
    model[steps.L2] = parameters.l2
    model[steps.SAFE] = parameters.safe_predict
    model[steps.WARMUP] = parameters.warmup_requested
    model[steps.SKIP_KILLED] = parameters.skip_killed
    model[steps.UNKNOWN_SECONDS] = parameters.unknown_seconds
    model[steps.LEVELS] = len(parameters.levels)
    steps.framed_levels(model)[:] = (0.0, *parameters.levels, 1.0)
    return model
