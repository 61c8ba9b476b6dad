"""The whole belief as a row of quantiles: of a point, and of a piecewise linear distribution."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.columns import BELIEF_COLUMNS, BELIEF_LEVELS, PREDICTED
from foresail.kernels.compile import bare_step, kernel
from foresail.kernels.signatures import BELIEF_STEP
from foresail.kernels.summary import piecewise_quantile


@bare_step(BELIEF_STEP)
def point_belief(
    slot: int,
    specs: NDArray[np.float64],
    model: NDArray[np.float64],
    users: NDArray[np.float64],
    jobs: NDArray[np.float64],
    summary: NDArray[np.float64],
    belief: NDArray[np.float64],
) -> None:
    """All probability on the predicted mean."""
    belief[:] = summary[PREDICTED]


@kernel
def fill_piecewise_belief(
    levels: NDArray[np.float64], values: NDArray[np.float64], belief: NDArray[np.float64]
) -> None:
    """Fill a belief row for the distribution with the quantile function (levels, values)."""
    for i in range(BELIEF_COLUMNS):
        belief[i] = piecewise_quantile(levels, values, BELIEF_LEVELS[i])
