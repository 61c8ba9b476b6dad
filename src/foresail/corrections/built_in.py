"""The next estimate of a job that outlives its prediction: the corrections that are built in.

A further one is a file beside this one, or a plug-in: a ``CORRECTION_STEP`` (in
``foresail.kernels``) and a class that derives from ``SteppedCorrection``, hands it the step and its
parameters, and registers itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from foresail.corrections.kernels import correction as kernel
from foresail.distributions.summary import summarise
from foresail.kernels.calling import corrected_estimate, step_address
from foresail.kernels.compile import Step
from foresail.model.distribution import Distribution
from foresail.model.job import Job
from foresail.model.limits import require_at_least
from foresail.model.registry import NoParameters, register


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


@register("correction", "requested")
class ToRequested(SteppedCorrection):
    """The requested time; without one, twice the expired estimate."""

    def __init__(self, _: NoParameters) -> None:
        super().__init__(kernel.to_request)


@register("correction", "quantile")
class NextQuantile(SteppedCorrection):
    """The next of the 10, 25, 50, 75 and 90 % quantiles predicted; doubles after the last."""

    def __init__(self, _: NoParameters) -> None:
        super().__init__(kernel.to_quantile)


@dataclass(frozen=True, slots=True)
class DoublingParameters:
    """Parameters of ``doubling``."""

    reading: Literal["double", "triple"] = "double"
    """Paper 004 increases the estimate "by the double of the elapsed time": to twice the elapsed
    time (``double``), or, word by word, to three times (``triple``)."""


@register("correction", "doubling", parameters=DoublingParameters)
class Doubling(SteppedCorrection):
    """Doubles the elapsed time, at most up to the requested time."""

    def __init__(self, parameters: DoublingParameters) -> None:
        super().__init__(kernel.by_factor, 3.0 if parameters.reading == "triple" else 2.0)


INCREMENTS_SECONDS: Final = (
    *(60.0, 300.0, 900.0, 1_800.0, 3_600.0, 7_200.0),
    *(18_000.0, 36_000.0, 72_000.0, 180_000.0, 360_000.0),
)
"""One minute to a hundred hours (Tsafrir, Etsion, Feitelson 2007); the last one repeats."""


@dataclass(frozen=True, slots=True)
class IncrementalParameters:
    """Parameters of ``incremental``."""

    reading: Literal["cumulative", "absolute"] = "cumulative"
    """Whether the k-th increment is added to the expired estimate (``cumulative``, paper 004) or to
    the one at submission (``absolute``, as the published study's simulator does)."""


@register("correction", "incremental", parameters=IncrementalParameters)
class Incremental(SteppedCorrection):
    """Adds 1 min, 5 min, 15 min, 30 min, 1 h ... 100 h, at most up to the requested time."""

    def __init__(self, parameters: IncrementalParameters) -> None:
        reading = kernel.ABSOLUTE if parameters.reading == "absolute" else kernel.CUMULATIVE
        super().__init__(kernel.by_increments, reading, *INCREMENTS_SECONDS)


@dataclass(frozen=True, slots=True)
class ExponentialIncrementParameters:
    """Parameters of ``exponential_increment``."""

    cycle_seconds: float = 2.0
    """The first increment."""
    growth: float = 2.0
    """How many times longer every increment is than the one before: 2 in 3Sigma, 1 in
    TetriSched."""

    def __post_init__(self) -> None:
        require_at_least(self, 1e-3, "cycle_seconds")
        require_at_least(self, 1, "growth")


@register("correction", "exponential_increment", parameters=ExponentialIncrementParameters)
class ExponentialIncrement(SteppedCorrection):
    """3Sigma's exp-inc: adds 2^n cycles the n-th time, at most up to the requested time."""

    def __init__(self, parameters: ExponentialIncrementParameters) -> None:
        super().__init__(kernel.by_growing_steps, parameters.cycle_seconds, parameters.growth)
