"""3Sigma's history as one number, as SLearn's study of it has it, and its baseline Point-Est."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.kernels.streaming_histogram import (
    CENTROIDS,
    COUNT,
    USED,
    histogram_mean,
    value_at,
)
from foresail.distributions.kernels.summary import summarise_point
from foresail.kernels.compile import bare_kernel, bare_step, part
from foresail.kernels.steps import PREDICTOR_STEP, PredictorInputs
from foresail.model.registry import register
from foresail.predictors.history import HistoryParameters, HistoryPredictor
from foresail.predictors.kernels.experience import histogram_size
from foresail.predictors.kernels.experts import (
    CLOCK,
    EXPERT,
    NO_EXPERT,
    ask,
    belief_end,
    winner_histogram,
)
from foresail.predictors.kernels.request import DAY_SECONDS

_HALF = 0.5


@bare_kernel
def equal_inverse_square(row: NDArray[np.float64]) -> float:
    """The value whose inverse square is the mean inverse square of what a histogram has seen."""
    counts = CENTROIDS + (row.size - CENTROIDS) // 2
    total = 0.0
    for i in range(int(row[USED])):
        value = row[CENTROIDS + i]
        if value <= 0.0:
            return 0.0
        total += row[counts + i] / (value * value)
    return math.sqrt(row[COUNT] / total)


@part
def _follow(inputs: PredictorInputs) -> tuple[int, int]:
    """Return where in the model the histogram of the followed feature-value begins and ends.

    Twice -1 without any; then the limit, or what stands for it, is believed.
    """
    model, job, spec = inputs.model, inputs.jobs[inputs.slot], inputs.specs[inputs.slot]
    model[CLOCK] = max(model[CLOCK], inputs.now)
    ask(model, spec, job)
    if job[EXPERT] == NO_EXPERT:
        limit = belief_end(model, spec)
        unknown = limit if math.isfinite(limit) else DAY_SECONDS
        summarise_point(unknown, inputs.summaries[inputs.slot])
        return -1, -1
    begin = winner_histogram(model, job)
    return begin, begin + histogram_size(model)


@part
def _tell(inputs: PredictorInputs, value: float) -> None:
    limit = belief_end(inputs.model, inputs.specs[inputs.slot])
    summarise_point(min(value, limit), inputs.summaries[inputs.slot])


@bare_step(PREDICTOR_STEP)
def predict_inverse_square(inputs: PredictorInputs) -> None:
    """Predict the value of equal expected utility, if that falls with the square of the runtime."""
    begin, end = _follow(inputs)
    if begin >= 0:
        _tell(inputs, equal_inverse_square(inputs.model[begin:end]))


@bare_step(PREDICTOR_STEP)
def predict_median(inputs: PredictorInputs) -> None:
    """The median of the history."""
    begin, end = _follow(inputs)
    if begin >= 0:
        _tell(inputs, value_at(inputs.model[begin:end], _HALF))


@bare_step(PREDICTOR_STEP)
def predict_mean(inputs: PredictorInputs) -> None:
    """The mean of the history."""
    begin, end = _follow(inputs)
    if begin >= 0:
        _tell(inputs, histogram_mean(inputs.model[begin:end]))


_STEPS: Final = {
    "inverse_square": predict_inverse_square,
    "median": predict_median,
    "mean": predict_mean,
}


@dataclass(frozen=True, slots=True)
class HistoryPointParameters(HistoryParameters):
    """Parameters of ``history_point``: those of ``history``, and these."""

    features: tuple[str, ...] = ("executable", "user", "queue", "hour+day", "cpus", "memory")
    """As there; by default those of SLearn's study."""
    utility: Literal["inverse_square", "median", "mean"] = "inverse_square"
    """What makes one number of a history: ``inverse_square``, the runtime with the same expected
    utility where that falls with the square of the runtime (3Sigma); ``median``
    (Point-Est); ``mean``."""


@register("predictor", "history_point", parameters=HistoryPointParameters)
class HistoryPoint(HistoryPredictor):
    """Predicts one number: what a utility makes of the history of the best feature-value."""

    def __init__(self, parameters: HistoryPointParameters) -> None:
        super().__init__(parameters, point_only=1, limited=1)
        self._steps = self._steps._replace(predict=_STEPS[parameters.utility])
