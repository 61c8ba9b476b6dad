"""3Sigma's history as one number, as SLearn's study of it has it, and its baseline Point-Est."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from foresail.model.registry import register
from foresail.predictors.history import HistoryParameters, HistoryPredictor
from foresail.predictors.kernels import history_point as steps

_STEPS: Final = {
    "inverse_square": steps.predict_inverse_square,
    "median": steps.predict_median,
    "mean": steps.predict_mean,
}


@dataclass(frozen=True, slots=True)
class HistoryPointParameters(HistoryParameters):
    """Parameters of ``history_point``: those of ``history``, and these."""

    features: tuple[str, ...] = ("executable", "user", "queue", "hour+day", "cpus", "memory")
    """As there; by default those of SLearn's study."""
    utility: Literal["inverse_square", "median", "mean"] = "inverse_square"
    """What makes one number of a history: ``inverse_square``, the runtime with the same expected
    utility where that falls with the square of the runtime (3Sigma, spec slearn 4.1); ``median``
    (Point-Est); ``mean``."""


@register("predictor", "history_point", parameters=HistoryPointParameters)
class HistoryPoint(HistoryPredictor):
    """Predicts one number: what a utility makes of the history of the best feature-value."""

    def __init__(self, parameters: HistoryPointParameters) -> None:
        super().__init__(parameters, point_only=1, limited=1)
        self._steps = self._steps._replace(predict=_STEPS[parameters.utility])
