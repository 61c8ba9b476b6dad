"""What is counted of a run's decisions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """What a controller counts.

    ``passes`` in which a job could start (ticks without news pass by a scheduler that
    ``IgnoresTime``); ``corrections``; ``refusals``: parts of decisions that
    were let through to no job; ``delayed_heads``: passes after which the job planned first is the
    same as before and its planned start is later.
    """

    passes: int = 0
    corrections: int = 0
    refusals: int = 0
    delayed_heads: int = 0
