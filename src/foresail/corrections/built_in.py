"""The next estimate of a job that outlives its prediction: the corrections that are built in.

Every rule answers more than the current estimate: at most the request while that lies ahead, and
twice the current estimate once the request has been outrun (limits are not enforced).
Source: V. Reis' thesis (2015), chapter 2.

A further one is a file beside this one, or a plug-in: a ``CORRECTION_STEP`` (in
``foresail.kernels``) and a class that derives from ``SteppedCorrection``, hands it the step and its
parameters, and registers itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from foresail.distributions.summary import summarise
from foresail.kernels.columns import Q10, QUANTILE_LEVELS
from foresail.kernels.compile import Step, bare_step, part
from foresail.kernels.steps import (
    CORRECTION_STEP,
    CorrectionInputs,
    corrected_estimate,
    step_address,
)
from foresail.model.distribution import Distribution, Floats
from foresail.model.errors import require_at_least
from foresail.model.job import Job
from foresail.model.registry import NoParameters, register

_QUANTILES = len(QUANTILE_LEVELS)
_SHORTEST_SECONDS = 1.0

CUMULATIVE: Final = 0.0
ABSOLUTE: Final = 1.0


@part
def _within_request(estimate: float, current: float, requested: float) -> float:
    """The estimate, at most the request, and more than the current one in any case."""
    allowed = min(estimate, requested)
    if allowed > current and math.isfinite(allowed):
        return allowed
    return max(2.0 * current, _SHORTEST_SECONDS)


@bare_step(CORRECTION_STEP)
def to_request(inputs: CorrectionInputs) -> float:
    """The request; without one twice the current estimate. No parameters."""
    return _within_request(inputs.requested, inputs.current, inputs.requested)


@bare_step(CORRECTION_STEP)
def by_increments(inputs: CorrectionInputs) -> float:
    """A longer and longer increment. Parameters: the reading, then the increments (seconds)."""
    last = inputs.parameters.size - 2
    increment = inputs.parameters[1 + min(inputs.corrections, last)]
    if inputs.parameters[0] == ABSOLUTE and inputs.corrections <= last:
        estimate = inputs.initial + increment
    else:
        estimate = inputs.current + increment
    return _within_request(estimate, inputs.current, inputs.requested)


@bare_step(CORRECTION_STEP)
def by_doubling(inputs: CorrectionInputs) -> float:
    """Twice the current estimate. No parameters."""
    return _within_request(2.0 * inputs.current, inputs.current, inputs.requested)


@bare_step(CORRECTION_STEP)
def to_quantile(inputs: CorrectionInputs) -> float:
    """The next quantile of the belief at submission; twice the current estimate after the last."""
    estimate = 2.0 * inputs.current
    for i in range(_QUANTILES):
        if inputs.summary[Q10 + i] > inputs.current:
            estimate = inputs.summary[Q10 + i]
            break
    return _within_request(estimate, inputs.current, inputs.requested)


@bare_step(CORRECTION_STEP)
def by_growing_steps(inputs: CorrectionInputs) -> float:
    """A step that grows by a factor each time. Parameters: the first step (seconds), the factor."""
    step = inputs.parameters[0] * inputs.parameters[1] ** inputs.corrections
    return _within_request(inputs.current + step, inputs.current, inputs.requested)


class SteppedCorrection:
    """A correction that is one compiled step and an array of parameters."""

    def __init__(self, step: Step, *parameters: float) -> None:
        self._step = step
        self._parameters = np.array(parameters, dtype=np.float64)

    def compiled(self) -> tuple[Step, Floats]:
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
        super().__init__(to_request)


@register("correction", "quantile")
class NextQuantile(SteppedCorrection):
    """The next of the 10, 25, 50, 75 and 90 % quantiles predicted; doubles after the last."""

    def __init__(self, _: NoParameters) -> None:
        super().__init__(to_quantile)


@register("correction", "doubling")
class Doubling(SteppedCorrection):
    """Doubles the elapsed time, at most up to the requested time."""

    def __init__(self, _: NoParameters) -> None:
        super().__init__(by_doubling)


INCREMENTS_SECONDS: Final = (
    *(60.0, 300.0, 900.0, 1_800.0, 3_600.0, 7_200.0),
    *(18_000.0, 36_000.0, 72_000.0, 180_000.0, 360_000.0),
)
"""One minute to a hundred hours (Tsafrir, Etsion, Feitelson 2007); the last one repeats."""


@dataclass(frozen=True, slots=True)
class IncrementalParameters:
    """Parameters of ``incremental``."""

    reading: Literal["cumulative", "absolute"] = "cumulative"
    """The estimate that the k-th increment is added to: the expired one (``cumulative``, Reis'
    thesis) or the one at submission (``absolute``, as the published study's simulator does)."""


@register("correction", "incremental", parameters=IncrementalParameters)
class Incremental(SteppedCorrection):
    """Adds 1 min, 5 min, 15 min, 30 min, 1 h ... 100 h, at most up to the requested time."""

    def __init__(self, parameters: IncrementalParameters) -> None:
        reading = ABSOLUTE if parameters.reading == "absolute" else CUMULATIVE
        super().__init__(by_increments, reading, *INCREMENTS_SECONDS)


@dataclass(frozen=True, slots=True)
class ExponentialIncrementParameters:
    """Parameters of ``exponential_increment``."""

    cycle_seconds: float = 2.0
    """The first increment."""
    growth: float = 2.0
    """Factor by which every increment exceeds the one before: 2 in 3Sigma, 1 in TetriSched."""

    def __post_init__(self) -> None:
        require_at_least(self, 1e-3, "cycle_seconds")
        require_at_least(self, 1, "growth")


@register("correction", "exponential_increment", parameters=ExponentialIncrementParameters)
class ExponentialIncrement(SteppedCorrection):
    """3Sigma's exp-inc: adds 2^n cycles the n-th time, at most up to the requested time."""

    def __init__(self, parameters: ExponentialIncrementParameters) -> None:
        super().__init__(by_growing_steps, parameters.cycle_seconds, parameters.growth)
