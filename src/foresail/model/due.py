"""Due: until when a job that waits may be passed over, by what EASY would have done with it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Due:
    """What a schedule of the same jobs under EASY says of one of them (seconds)."""

    turn_seconds: float
    """When EASY would have come to it: it was next in line there, or started."""
    due_seconds: float
    """From then on it goes first."""
    latest_seconds: float
    """No start may, by requests, put it off beyond this."""
