"""The whole belief as a row of quantiles: of a point, and of a piecewise linear distribution."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.kernels.summary import piecewise_quantile, summarise_piecewise
from foresail.kernels.borrowed import room
from foresail.kernels.columns import BELIEF_COLUMNS, BELIEF_LEVELS, PREDICTED
from foresail.kernels.compile import bare_step, part
from foresail.kernels.signatures import BELIEF_STEP, PredictorInputs


@part
def fill_point_belief(inputs: PredictorInputs, belief: NDArray[np.float64]) -> None:
    """Fill a belief row with the predicted mean."""
    predicted = inputs.summaries[inputs.slot, PREDICTED]
    for i in range(BELIEF_COLUMNS):
        belief[i] = predicted


@bare_step(BELIEF_STEP)
def point_belief(inputs: PredictorInputs, belief: NDArray[np.float64]) -> None:
    """All probability on the predicted mean."""
    fill_point_belief(inputs, belief)


@part
def fill_piecewise_belief(
    levels: NDArray[np.float64], values: NDArray[np.float64], belief: NDArray[np.float64]
) -> None:
    """Fill a belief row for the distribution with the quantile function (levels, values)."""
    for i in range(BELIEF_COLUMNS):
        belief[i] = piecewise_quantile(levels, values, BELIEF_LEVELS[i])


@part
def summarise_belief(belief: NDArray[np.float64], summary: NDArray[np.float64]) -> None:
    """Fill a summary row for the distribution that a belief row tells."""
    levels = room(BELIEF_COLUMNS)
    for i in range(BELIEF_COLUMNS):
        levels[i] = BELIEF_LEVELS[i]
    summarise_piecewise(levels, belief, summary)
