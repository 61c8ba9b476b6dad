"""Jobs to come in drawn futures, as they came in the past."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from foresail.explain.outlook import Outlook
from foresail.model.arrays import Floats

HOUR: Final = 3600.0
_DAY_HOURS: Final = 24
_FURTHEST: Final = 10.0
"""They are drawn for so many times as long as there have been any."""

_MOST_ARRIVALS: Final = 2_000

COLUMNS: Final = (
    *("home", "width", "planned", "likely", "ready", "place", "runtime"),
    *("memory", "gpus"),
)
HOME, WIDTH, PLANNED, LIKELY, READY, PLACE, RUNTIME, *OTHERS = range(len(COLUMNS))
AMOUNTS: Final = ("cpus", "memory_bytes", "gpus")
"""Names of what is in the columns of width and of others."""


class JobsToCome:
    """Jobs to come, drawn in blocks of an hour, or of all there has been while that is shorter.

    Parameters
    ----------
    now
        From when on.
    blocks
        The jobs of past blocks as ``COLUMNS``, the latest block first; ``READY`` is the time
        since the block began.
    block_seconds
        How long one is.
    horizon_seconds
        How far ahead they are drawn.
    """

    def __init__(
        self, now: float, blocks: Sequence[Floats], block_seconds: float, horizon_seconds: float
    ) -> None:
        self._now = now
        self._blocks = blocks
        self._block_seconds = block_seconds
        self._ahead = math.ceil(horizon_seconds / block_seconds) if blocks else 0

    def one(self, random: np.random.Generator) -> Floats:
        """The arrivals of one future, shape (jobs, columns)."""
        parts = [np.zeros((0, len(COLUMNS)))]
        for ahead in range(self._ahead):
            alike = range(_DAY_HOURS - 1 - ahead % _DAY_HOURS, len(self._blocks), _DAY_HOURS)
            past = alike if alike and self._block_seconds == HOUR else range(len(self._blocks))
            drawn = self._blocks[past[int(random.integers(len(past)))]].copy()
            drawn[:, READY] += self._now + ahead * self._block_seconds
            parts.append(drawn)
        return np.concatenate(parts)[:_MOST_ARRIVALS]


def arrivals_of(
    outlook: Outlook, number_of: Mapping[str | None, int], horizon_seconds: float
) -> JobsToCome:
    """Return the jobs to come up to a horizon, of the outlook's recent ones."""
    past_seconds = outlook.now - outlook.begin_seconds
    if not outlook.recent or past_seconds <= 0.0:
        return JobsToCome(outlook.now, (), HOUR, 0.0)
    block = min(HOUR, past_seconds)
    horizon_seconds = min(horizon_seconds, _FURTHEST * past_seconds)
    blocks: list[list[tuple[float, ...]]] = [[] for _ in range(math.floor(past_seconds / block))]
    for each in outlook.recent:
        ago = outlook.now - each.submit_seconds
        number = math.ceil(ago / block) - 1
        if 0 <= number < len(blocks):
            since = (number + 1) * block - ago
            blocks[number].append(
                (
                    number_of[each.partition],
                    each.needs.cpus,
                    each.planned_seconds,
                    each.likely_seconds,
                    since,
                    each.place,
                    each.runtime_seconds,
                    each.needs.memory_bytes,
                    each.needs.gpus,
                )
            )
    return JobsToCome(
        outlook.now,
        [np.array(rows).reshape(-1, len(COLUMNS)) for rows in blocks],
        block,
        horizon_seconds,
    )
