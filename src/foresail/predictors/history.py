"""3Sigma's predictor: the history of whatever likeness has told runtimes best so far."""

from __future__ import annotations

from foresail.model.registry import register
from foresail.predictors.history_base import HistoryParameters, HistoryPredictor


@register("predictor", "history", parameters=HistoryParameters)
class History(HistoryPredictor):
    """Predicts a distribution: the history of the feature-value with the best past estimates."""

    def __init__(self, parameters: HistoryParameters) -> None:
        super().__init__(parameters, point_only=0, limited=1)
