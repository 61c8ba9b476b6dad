"""What the first third of a log teaches of waits, as it could have been learned live."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from foresail.cloud.waiting.learning import WaitRows, wait_rows
from foresail.cloud.waiting.policies import WaitingPolicy
from foresail.cloud.waiting.simulating import Simulated
from foresail.model.arrays import Floats

LEARNED_SHARE: Final = 1.0 / 3.0
FEWEST_WAITS: Final = 100
"""To learn from: of fewer, a model says nothing."""
_EXAMPLES: Final = 30_000


def first_told(jobs: int) -> int:
    """Place of the first job after those of the first third, which teach: it can be told."""
    return math.ceil(LEARNED_SHARE * jobs)


def waits_over(submit_seconds: Floats, waiting_seconds: float) -> int:
    """How many jobs, the first ones, have surely waited out a limit by the end of the first third.

    ``submit_seconds`` are those of a log, in order; shape (jobs,).
    """
    last = submit_seconds.size - 1
    end = submit_seconds[min(first_told(submit_seconds.size), last)]
    return int(np.searchsorted(submit_seconds, end - waiting_seconds))


def lived_waits(
    submit_seconds: Floats,
    waiting_seconds: float,
    simulated: Callable[[int, int], tuple[Simulated, WaitingPolicy]],
) -> WaitRows | None:
    """Examples from jobs of the first third whose waits were over by its end, however they ended.

    Parameters
    ----------
    submit_seconds, waiting_seconds
        As for ``waits_over``.
    simulated
        Simulates the first so many jobs, all of which wait up to the limit, and keeps the features
        of every so-manieth.

    Returns
    -------
    WaitRows or None
        None where too few waits were over to learn from.
    """
    many = waits_over(submit_seconds, waiting_seconds)
    if many < FEWEST_WAITS:
        return None
    rows = wait_rows(*simulated(many, math.ceil(many / _EXAMPLES)))
    return rows if rows.wait_seconds.size >= FEWEST_WAITS else None
