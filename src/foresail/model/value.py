"""Value functions: what finishing a job at a given time is worth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from foresail.model.limits import require, require_at_least


@runtime_checkable
class ValueFunction(Protocol):
    """Worth of a result as a function of its completion time."""

    def at(self, completion_seconds: float) -> float:
        """Value of completing at this time (seconds from the workload's origin)."""
        ...


@dataclass(frozen=True, slots=True)
class DeadlineValue:
    """Full value up to the deadline, nothing after it (an SLO job).

    Raises
    ------
    InputError
        If the deadline is no number, or the value negative or no number.
    """

    deadline_seconds: float
    value: float = 1.0

    def __post_init__(self) -> None:
        sound = not math.isnan(self.deadline_seconds)
        require(sound, self, "deadline_seconds", "seconds from the workload's origin")
        require_at_least(self, 0, "value")

    def at(self, completion_seconds: float) -> float:
        """Value of completing at this time (seconds from the workload's origin)."""
        return self.value if completion_seconds <= self.deadline_seconds else 0.0


@dataclass(frozen=True, slots=True)
class DecayingValue:
    """Value that falls linearly from ``value`` at ``start_seconds`` to zero (a best-effort job).

    Raises
    ------
    InputError
        If it does not fall (zero not after the start), or is negative or no number.
    """

    start_seconds: float
    zero_seconds: float
    value: float = 1.0

    def __post_init__(self) -> None:
        falls = -math.inf < self.start_seconds < self.zero_seconds < math.inf
        require(falls, self, "zero_seconds", "a finite time after start_seconds")
        require_at_least(self, 0, "value")

    def at(self, completion_seconds: float) -> float:
        """Value of completing at this time (seconds from the workload's origin)."""
        span = self.zero_seconds - self.start_seconds
        left = (self.zero_seconds - completion_seconds) / span
        return self.value * min(1.0, max(0.0, left))
