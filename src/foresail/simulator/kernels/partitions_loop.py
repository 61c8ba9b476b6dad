"""The compiled replay of partitions that share nothing but what predictors learn.

Each has a queue and a machine of its own; of all that is to be done next, in
whichever partition, the earliest is done, in the order of things of one replay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numba import types
from numpy.typing import NDArray

from foresail.kernels.compile import entry, merged_part
from foresail.kernels.heaps import SEQUENCE
from foresail.kernels.steps import step_address
from foresail.schedulers.kernels.waiting_queue import NOW, SLOTS
from foresail.simulator.kernels import replay_loop as loop

Floats = NDArray[np.float64]

WHEN: Final = 0
ROUND: Final = 1
WHAT: Final = 2
WHICH: Final = 3
NEXT_COLUMNS: Final = 4
"""A row per partition: when something is to be done next (seconds; infinite for never), after how
many passes at that time, what, and of equal things the first: by start, or by arrival."""


@merged_part
def _note_next(places: Floats, row: Floats, started: float) -> float:
    """Do what is next in a partition, and note what is then; returns how many have ever started."""
    at = loop.replay_at(places, 0)
    counters = at.queue.counters
    if row[WHAT] != loop.PAST:
        counters[loop.STARTED] = int(started)
        loop.act(at, int(row[WHAT]))
    action, before = loop.look_ahead(at), row[WHEN]
    row[WHEN] = at.queue.numbers[NOW]
    row[ROUND] = row[ROUND] + (row[WHAT] == loop.PASSING) if row[WHEN] == before else 0.0
    row[WHAT] = action
    row[WHICH] = 0.0
    if action == loop.ENDS:
        row[WHICH] = at.ends[0, SEQUENCE]
    if action == loop.SUBMISSIONS:
        row[WHICH] = at.arrivals[counters[SLOTS]]
    return float(counters[loop.STARTED])


@entry(types.void(types.float64[:, ::1], types.float64[:, ::1]))
def replay_partitions(places: Floats, upcoming: Floats) -> None:
    """Run the jobs of all partitions to their end; the results are in their tables.

    ``places`` says where these are (``foresail.kernels.borrowed.Places``), a row per partition;
    ``upcoming`` is room for what is to be done next (NEXT_COLUMNS).
    """
    count, started = places.shape[0], 0.0
    for i in range(count):
        upcoming[i, WHAT] = loop.PAST
        _note_next(places[i], upcoming[i], 0.0)
    while True:
        soonest = 0
        for i in range(1, count):
            for column in range(NEXT_COLUMNS):
                if upcoming[i, column] != upcoming[soonest, column]:
                    if upcoming[i, column] < upcoming[soonest, column]:
                        soonest = i
                    break
        if upcoming[soonest, WHEN] == math.inf:
            break
        started = _note_next(places[soonest], upcoming[soonest], started)


def prepared(every: Sequence[loop.Replay]) -> Callable[[], None]:
    """Return a function that runs all jobs; compiled beforehand, outside of what is measured."""
    if len(every) == 1:
        step_address(loop.replay_loop)
        return lambda: loop.replay_loop(every[0])
    step_address(replay_partitions)
    places = np.stack([at.places for at in every])
    upcoming = np.zeros((len(every), NEXT_COLUMNS))
    return lambda: replay_partitions(places, upcoming)
