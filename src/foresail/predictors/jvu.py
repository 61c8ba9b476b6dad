"""JVuPredict: 3Sigma's predictor with the winning expert's estimate as its whole answer."""

from __future__ import annotations

from foresail.model.registry import register
from foresail.predictors.history_base import HistoryParameters, HistoryPredictor


@register("predictor", "jvu", parameters=HistoryParameters)
class Jvu(HistoryPredictor):
    """Predicts the estimate of the expert that has been best so far: a point, from history."""

    def __init__(self, parameters: HistoryParameters) -> None:
        super().__init__(parameters, point_only=1, limited=1)
