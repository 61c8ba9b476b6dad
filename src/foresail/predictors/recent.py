"""The mean of the user's last runtimes: AVE2 of the literature, or AVE of any k."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foresail.kernels.signatures import PredictorSteps
from foresail.model.limits import require_at_least, require_positive
from foresail.model.registry import register
from foresail.predictors.kernels import recent
from foresail.predictors.kernels.request import ignore
from foresail.predictors.stepped import DAY_SECONDS, Layout, SteppedPredictor


@dataclass(frozen=True, slots=True)
class RecentParameters:
    """Parameters of ``recent``."""

    k: int = 2
    """How many of the user's last ended jobs to average."""
    partial: bool = False
    """Average fewer while there are fewer; otherwise predict the requested time until then."""
    whole_seconds: bool = False
    """Cut off fractions of a second, as the published study does."""
    unknown_seconds: float = DAY_SECONDS
    """Prediction for a job without a limit of a user none of whose jobs has ended."""

    def __post_init__(self) -> None:
        require_at_least(self, 1, "k")
        require_positive(self, "unknown_seconds")


@register("predictor", "recent", parameters=RecentParameters)
class Recent(SteppedPredictor):
    """Predicts the mean of the user's last k runtimes, at most the requested time."""

    def __init__(self, parameters: RecentParameters) -> None:
        model = np.empty(recent.MODEL_SIZE)
        model[recent.UNKNOWN_SECONDS] = parameters.unknown_seconds
        model[recent.WINDOW] = parameters.k
        model[recent.ENOUGH] = 1 if parameters.partial else parameters.k
        model[recent.WHOLE_SECONDS] = parameters.whole_seconds
        steps = PredictorSteps(recent.predict, ignore, recent.observe)
        super().__init__(steps, Layout(model, recent.user_columns(parameters.k)))
