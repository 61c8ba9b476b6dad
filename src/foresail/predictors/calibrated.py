"""Another predictor's belief, moved so that a stated interval holds what it states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foresail.kernels.signatures import PredictorSteps
from foresail.model.limits import require_positive
from foresail.model.registry import register
from foresail.predictors._composite import CompositePredictor, Own, member
from foresail.predictors.kernels import calibrated as steps
from foresail.predictors.kernels import members
from foresail.predictors.stepped import RefreshingPredictor


@dataclass(frozen=True, slots=True)
class CalibratedParameters:
    """Parameters of ``calibrated``."""

    of: str = "combined"
    """The predictor whose belief is moved, by name or short form; a point becomes a
    distribution."""
    first_step: float = 1.0
    smallest_step: float = 0.005
    """How far levels move when a user's first job ends, and at least, on the scale of logits."""

    def __post_init__(self) -> None:
        require_positive(self, "first_step", "smallest_step")


@register("predictor", "calibrated", parameters=CalibratedParameters)
class Calibrated(CompositePredictor, RefreshingPredictor):
    """Predicts a distribution: another predictor's, moved until stated shares hold."""

    def __init__(self, parameters: CalibratedParameters) -> None:
        compiled = PredictorSteps(
            steps.predict, members.started, steps.observe, steps.refresh, members.belief
        )
        numbers = np.zeros(steps.OWN_SIZE)
        numbers[steps.FIRST_STEP] = parameters.first_step
        numbers[steps.SMALLEST_STEP] = parameters.smallest_step
        own = Own(numbers, steps.USER_COLUMNS, steps.JOB_COLUMNS)
        super().__init__(compiled, [member(parameters.of, "of")], own)
