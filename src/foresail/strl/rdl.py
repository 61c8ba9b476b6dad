"""RDL, Rayon's reservation language: a gang of containers for a time, within a window of time.

Source: TetriSched (EuroSys 2016), section 4.4; spec tetrisched sections 3.1 and 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from foresail.model.errors import InputError
from foresail.model.resources import Resources


@dataclass(frozen=True, slots=True)
class Atom:
    """Containers for a time.

    Parameters
    ----------
    request
        The size of one container.
    count
        How many, at least 1.
    gang
        How many of them at once at the least, from 1 to ``count``.
    duration_seconds
        For how long, above 0: the runtime on the nodes where the job is slow.
    """

    request: Resources
    count: int
    gang: int
    duration_seconds: float

    def __post_init__(self) -> None:
        _require(self.count >= 1, "count", self.count, "at least 1")
        _require(1 <= self.gang <= self.count, "gang", self.gang, f"from 1 to {self.count}")
        lasting = 0.0 < self.duration_seconds < math.inf
        _require(lasting, "duration", self.duration_seconds, "above 0")


@dataclass(frozen=True, slots=True)
class Window:
    """An atom that lies between two times, ``start_seconds`` and ``finish_seconds``."""

    start_seconds: float
    finish_seconds: float
    atom: Atom

    def __post_init__(self) -> None:
        _require(math.isfinite(self.start_seconds), "start", self.start_seconds, "a time")
        ordered = self.start_seconds < self.finish_seconds < math.inf
        expected = f"later than the start, {self.start_seconds:g}"
        _require(ordered, "finish", self.finish_seconds, expected)


def _require(holds: bool, field: str, value: object, expected: str) -> None:
    if not holds:
        raise InputError("not a reservation", field=field, value=value, expected=expected)
