"""Value functions: what finishing a job at a given time is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@runtime_checkable
class ValueFunction(Protocol):
    """Worth of a result as a function of its completion time."""

    def at(self, completion_seconds: float) -> float:
        """Value of completing at this time (seconds from the workload's origin)."""
        ...


@dataclass(frozen=True, slots=True)
class DeadlineValue:
    """Full value up to the deadline, nothing after it (an SLO job)."""

    deadline_seconds: float
    value: float = 1.0

    def at(self, completion_seconds: float) -> float:
        """Value of completing at this time (seconds from the workload's origin)."""
        return self.value if completion_seconds <= self.deadline_seconds else 0.0


@dataclass(frozen=True, slots=True)
class DecayingValue:
    """Value that falls linearly from ``value`` at ``start_seconds`` to zero (a best-effort job)."""

    start_seconds: float
    zero_seconds: float
    value: float = 1.0

    def at(self, completion_seconds: float) -> float:
        """Value of completing at this time (seconds from the workload's origin)."""
        span = self.zero_seconds - self.start_seconds
        left = (self.zero_seconds - completion_seconds) / span
        return self.value * min(1.0, max(0.0, left))
