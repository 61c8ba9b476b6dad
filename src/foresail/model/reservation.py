"""Reservations: what a scheduler that takes requests for them answers at a job's submission."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reservation:
    """Containers promised to a job from one time up to another (seconds)."""

    job_id: str
    start_seconds: float
    end_seconds: float
    containers: int

    def covers(self, time: float) -> bool:
        """Whether a moment is within it, give or take a microsecond."""
        return self.start_seconds - 1e-6 <= time < self.end_seconds - 1e-6


@dataclass(frozen=True, slots=True)
class Rejection:
    """Nothing is promised to a job; why, in words for a person."""

    because: str
