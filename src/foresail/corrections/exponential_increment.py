"""Correct an estimate that proved too short by one cycle, then two, then four, and so on."""

from __future__ import annotations

from dataclasses import dataclass

from foresail.corrections._steps import SteppedCorrection
from foresail.corrections.kernels.correction import by_growing_steps
from foresail.model.limits import require_at_least
from foresail.model.registry import register


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
        super().__init__(by_growing_steps, parameters.cycle_seconds, parameters.growth)
