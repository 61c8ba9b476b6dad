"""The tables that a scheduling pass reads and writes, and the order of the waiting jobs.

Few arrays with named columns, so that a part of the replay is an ordinary function of three or four
arguments: each array is nine machine words that every call hands on and every compilation spells
out. In the tables of jobs and of the order, columns are contiguous: a pass looks at one number of
many jobs, and where one leaves a queue, all behind it move up.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import part


@part
def sort_ascending(values: NDArray[np.float64]) -> None:
    """Sort a vector in place by insertion: for few numbers, or such as are nearly in order."""
    for i in range(1, values.size):
        value = values[i]
        place = i
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value


@part
def first_not_below(values: NDArray[np.float64], count: int, wanted: float) -> int:
    """Count those of the first ``count`` ascending numbers that are below the wanted one."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


Floats = NDArray[np.float64]

WIDTH: Final = 0
SUBMITTED: Final = 1
PLANNED: Final = 2
LIKELY: Final = 3
RESERVATION: Final = 4
DUE: Final = 5
LATEST: Final = 6
PASS_COLUMNS: Final = 7
"""A job's row by slot: cpus; seconds of submission; runtime planned with and hoped for (seconds);
planned start, nan without one, -inf once started; when it goes first, and beyond when it should
not be put off (infinite for never). Further columns are the engine's."""

QUEUE_KEY: Final = 0
QUEUE: Final = 1
CANDIDATE_KEY: Final = 2
CANDIDATE: Final = 3
ORDER_COLUMNS: Final = 4
"""A row of the order table is a place: key and slot of the job at this place of the queue, and of
the one at this place among the candidates for backfilling. Keys ascend; a key's column is the one
before its slot's."""

EXPECTED_END: Final = 0
HELD: Final = 1
HOLDER: Final = 2
RELEASE_COLUMNS: Final = 3
"""A row per running job, by expected end: when (seconds), how many cpus, which slot."""


@part
def place_after(order: Floats, column: int, first: int, last: int, key: float, slot: int) -> int:
    """The place between ``first`` and ``last`` for a job; equal keys are in order of arrival.

    ``column`` is that of the slots.
    """
    low, high = first, last
    while low < high:
        middle = (low + high) >> 1
        at = order[middle, column - 1]
        if at < key or (at == key and order[middle, column] < slot):
            low = middle + 1
        else:
            high = middle
    return low


@part
def enter(order: Floats, column: int, last: int, place: int, key: float, slot: int) -> None:
    """Put a job at a place; the table has room for one more behind ``last`` rows."""
    for i in range(last, place, -1):
        order[i, column - 1] = order[i - 1, column - 1]
        order[i, column] = order[i - 1, column]
    order[place, column - 1] = key
    order[place, column] = slot


@part
def leave(order: Floats, column: int, place: int, last: int) -> None:
    """Take the job at a place out of the first ``last`` rows."""
    for i in range(place, last - 1):
        order[i, column - 1] = order[i + 1, column - 1]
        order[i, column] = order[i + 1, column]


@part
def advance(order: Floats, column: int, place: int, key: float, slot: int) -> None:
    """Move a job forward to a place, with a key of those there."""
    at = place
    while order[at, column] != slot:
        at += 1
    for i in range(at, place, -1):
        order[i, column - 1] = order[i - 1, column - 1]
        order[i, column] = order[i - 1, column]
    order[place, column - 1] = key
    order[place, column] = slot


@part
def sort(order: Floats, column: int, first: int, last: int) -> None:
    """Sort rows from ``first`` on by key, equal keys by slot, in place.

    A sort by shrinking gaps: little code to compile, and quick on what is nearly sorted, as an
    order is from one pass to the next.
    """
    gap = last - first
    while gap > 1:
        gap = max(1, gap * 5 // 11)
        for i in range(first + gap, last):
            key, slot = order[i, column - 1], order[i, column]
            at = i
            while at >= first + gap:
                before = order[at - gap, column - 1]
                if before < key or (before == key and order[at - gap, column] < slot):
                    break
                order[at, column - 1] = before
                order[at, column] = order[at - gap, column]
                at -= gap
            order[at, column - 1] = key
            order[at, column] = slot


@part
def drop_started(order: Floats, column: int, waiting: int, started: int, jobs: Floats) -> None:
    """Close the gaps that ``started`` jobs leave among the first ``waiting`` rows."""
    place = gone = 0
    while gone < started:
        if jobs[int(order[place, column]), RESERVATION] == -np.inf:
            gone += 1
        else:
            order[place - gone, column - 1] = order[place, column - 1]
            order[place - gone, column] = order[place, column]
        place += 1
    for moved in (column - 1, column):
        for i in range(place, waiting):
            order[i - gone, moved] = order[i, moved]


@part
def hold(release: Floats, releases: int, end: float, width: float, slot: int) -> None:
    """Enter a job that just started among the expected releases, behind equal times."""
    at = releases
    while at > 0 and release[at - 1, EXPECTED_END] > end:
        for column in range(RELEASE_COLUMNS):
            release[at, column] = release[at - 1, column]
        at -= 1
    release[at, EXPECTED_END] = end
    release[at, HELD] = width
    release[at, HOLDER] = slot


@part
def let_go(release: Floats, releases: int, end: float, slot: int) -> None:
    """Take the row of ``slot``, expected to end at ``end``, out of the releases."""
    low, high = 0, releases
    while low < high:
        middle = (low + high) >> 1
        if release[middle, EXPECTED_END] < end:
            low = middle + 1
        else:
            high = middle
    while release[low, HOLDER] != slot:
        low += 1
    for i in range(low, releases - 1):
        for column in range(RELEASE_COLUMNS):
            release[i, column] = release[i + 1, column]
