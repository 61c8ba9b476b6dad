"""One correction, two callers: a compiled step as the object that the event loop asks.

A new correction is one file here: a ``CORRECTION_STEP`` (in ``foresail.kernels``) and a class that
derives from ``SteppedCorrection``, hands it the step and its parameters, and registers itself.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.summary import summarise
from foresail.kernels.calling import corrected_estimate, step_address
from foresail.kernels.compile import Step
from foresail.model.distribution import Distribution
from foresail.model.job import Job


class SteppedCorrection:
    """A correction that is one compiled step and an array of parameters."""

    def __init__(self, step: Step, *parameters: float) -> None:
        self._step = step
        self._parameters = np.array(parameters, dtype=np.float64)

    def compiled(self) -> tuple[Step, NDArray[np.float64]]:
        """The step and its parameters."""
        return self._step, self._parameters

    def correct(
        self, job: Job, prediction: Distribution, initial: float, current: float, count: int
    ) -> float:
        """Next estimate of the total runtime in seconds, greater than ``current``.

        At most the requested time while that lies ahead; beyond it (the limit was not enforced)
        twice ``current``.
        """
        requested = math.inf if job.requested_seconds is None else job.requested_seconds
        row = summarise(prediction)
        return corrected_estimate(
            step_address(self._step), initial, current, requested, count, row, self._parameters
        )
