"""The better of several predictors at every level and for every user, learned as jobs end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.signatures import PredictorSteps
from foresail.model.limits import require, require_positive
from foresail.model.registry import register
from foresail.predictors._composite import CompositePredictor, Own, member
from foresail.predictors.kernels import combined as steps
from foresail.predictors.kernels import members
from foresail.predictors.stepped import RefreshingPredictor

_POINTS: Final = (
    "jvu(features=[user,executable,cpus,queue,user+executable,user+cpus,"
    "requested,user+requested,user+requested+cpus,hour,user+hour])"
)
"""JVuPredict with the requested time among its features: users ask alike for alike jobs."""


@dataclass(frozen=True, slots=True)
class CombinedParameters:
    """Parameters of ``combined``."""

    members: tuple[str, ...] = ("similar", _POINTS, "quantile_regression", "recent")
    """The predictors to combine: names, or short forms with parameters."""
    eagerness: float = 3.0
    """How fast weights follow what members were worth; 1 is the rate with the proved bound."""
    patience: float = 1000.0
    """After how many of a user's jobs the user's own weights count half."""

    def __post_init__(self) -> None:
        names = self.members
        different = len(names) > 1 and len(set(names)) == len(names)
        require(different, self, "members", "two or more different predictors")
        require_positive(self, "eagerness", "patience")


@register("predictor", "combined", parameters=CombinedParameters)
class Combined(CompositePredictor, RefreshingPredictor):
    """Predicts a distribution: quantiles of several predictors, weighted by their past."""

    def __init__(self, parameters: CombinedParameters) -> None:
        count = len(parameters.members)
        compiled = PredictorSteps(
            steps.predict, members.started, steps.observe, steps.refresh, members.belief
        )
        own = Own(_numbers(parameters), steps.record_size(count), steps.job_columns(count))
        super().__init__(compiled, [member(text, "members") for text in parameters.members], own)


def _numbers(parameters: CombinedParameters) -> NDArray[np.float64]:
    count = len(parameters.members)
    numbers = np.zeros(steps.own_size(count))
    numbers[steps.EAGERNESS] = parameters.eagerness
    numbers[steps.PATIENCE] = parameters.patience
    numbers[steps.PRIORS : steps.PRIORS + count] = 1.0 / count
    return numbers
