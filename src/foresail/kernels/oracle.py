"""The truth as a prediction: the step of an oracle that was handed the runtimes openly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import bare_step
from foresail.kernels.signatures import PREDICTOR_STEP
from foresail.kernels.summary import summarise_point


@bare_step(PREDICTOR_STEP)
def predict(
    slot: int,
    now: float,
    runtime: float,
    specs: NDArray[np.float64],
    model: NDArray[np.float64],
    users: NDArray[np.float64],
    jobs: NDArray[np.float64],
    summaries: NDArray[np.float64],
) -> None:
    """Predict what the job's row holds: its real runtime."""
    summarise_point(jobs[slot, 0], summaries[slot])
