"""The mean of the user's last runtimes: AVE2 of the literature, or AVE of any k."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.distributions.kernels.summary import summarise_point
from foresail.kernels.columns import REQUESTED
from foresail.kernels.compile import bare_step
from foresail.kernels.steps import PREDICTOR_STEP, PredictorInputs, PredictorSteps
from foresail.model.errors import require_at_least
from foresail.model.registry import register
from foresail.predictors.kernels.request import ignore, limit_or_stand_in, user_row
from foresail.predictors.stepped import Layout, SteppedPredictor

_WINDOW: Final = 0
_WHOLE_SECONDS: Final = 1
_MODEL_SIZE: Final = 2
"""The model: how many runtimes to average, whether to cut off fractions (1 or 0)."""

COMPLETED: Final = 0
LONGEST: Final = 1
RING: Final = 2
"""A user's row: jobs seen, longest runtime, then the last runtimes, overwritten in turn."""


@bare_step(PREDICTOR_STEP)
def predict(inputs: PredictorInputs) -> None:
    """Predict the mean of the last runtimes, at most the limit; until there are enough, that."""
    model, requested = inputs.model, inputs.specs[inputs.slot, REQUESTED]
    user = inputs.users[user_row(inputs.specs, inputs.slot)]
    predicted = limit_or_stand_in(requested, user[LONGEST])
    if user[COMPLETED] >= model[_WINDOW]:
        seen = int(model[_WINDOW])
        total = 0.0
        for i in range(seen):
            total += user[RING + i]
        mean = total / seen
        if model[_WHOLE_SECONDS] != 0.0:
            mean = math.floor(mean)
        predicted = min(mean, requested)
    summarise_point(predicted, inputs.summaries[inputs.slot])


@bare_step(PREDICTOR_STEP)
def observe(inputs: PredictorInputs) -> None:
    """Remember the runtime."""
    if math.isnan(inputs.runtime):
        return
    user = inputs.users[user_row(inputs.specs, inputs.slot)]
    user[RING + int(user[COMPLETED]) % int(inputs.model[_WINDOW])] = inputs.runtime
    user[COMPLETED] += 1.0
    user[LONGEST] = max(user[LONGEST], inputs.runtime)


@dataclass(frozen=True, slots=True)
class RecentParameters:
    """Parameters of ``recent``."""

    k: int = 2
    """Number of the user's last ended jobs to average; before so many, the request is predicted."""
    whole_seconds: bool = False
    """Cut off fractions of a second, as the published study does."""

    def __post_init__(self) -> None:
        require_at_least(self, 1, "k")


@register("predictor", "recent", parameters=RecentParameters)
class Recent(SteppedPredictor):
    """Predicts the mean of the user's last k runtimes, at most the requested time."""

    def __init__(self, parameters: RecentParameters) -> None:
        model = np.empty(_MODEL_SIZE)
        model[_WINDOW] = parameters.k
        model[_WHOLE_SECONDS] = parameters.whole_seconds
        steps = PredictorSteps(predict, ignore, observe)
        super().__init__(steps, Layout(model, RING + parameters.k))
