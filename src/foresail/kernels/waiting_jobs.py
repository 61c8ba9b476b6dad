"""The tables that a scheduling pass reads and writes, and the order of the waiting jobs.

Few arrays with named columns, so that a part of the replay is an ordinary function of three or four
arguments: each array is nine machine words that every call hands on and every compilation spells
out. In the tables of jobs and of the order, columns are contiguous: a pass looks at one number of
many jobs, and where one leaves a queue, all behind it move up.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from foresail.kernels.borrowed import move_rows
from foresail.kernels.compile import Floats, part


@part
def sort_ascending(values: Floats) -> None:
    """Sort a vector in place by insertion: for few numbers, or such as are nearly in order."""
    for i in range(1, values.size):
        value = values[i]
        place = i
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value


@part
def first_not_below(values: Floats, count: int, wanted: float) -> int:
    """Count those of the first ``count`` ascending numbers that are below the wanted one."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


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
CANDIDATE_KEY: Final = 5
CANDIDATE: Final = 6
ORDER_COLUMNS: Final = 10
"""A row of the order table is a place: key and slot of the job at this place of the queue, and of
the one at this place among the candidates for backfilling. Keys ascend; a key's column is the one
before its slot's. Behind that are the job's cpus, its planned and its hoped-for runtime (of one
that is due, as it was then), so that many places are looked over at once. A place that a job has
left may stay as a gap, with its key and slot, and infinitely many cpus."""

_WIDTH, _PLANNED, _LIKELY = 1, 2, 3
_PLACE_COLUMNS = 5

_MANY: Final = np.uint64(128)
_SOME: Final = np.uint64(16)
_ONE: Final = np.uint64(1)
"""Unsigned places need no look at whether they count from the end: several move at once."""

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
def columns_of(order: Floats, column: int) -> range:
    """The columns that go together with that of the slots."""
    return range(max(column - 1, 0), min(column - 1 + _PLACE_COLUMNS, order.shape[1]))


@part
def show(order: Floats, column: int, place: int, jobs: Floats) -> None:
    """Let a place say of its job what is looked over."""
    slot = int(order[place, column])
    order[place, column + _WIDTH] = jobs[slot, WIDTH]
    order[place, column + _PLANNED] = jobs[slot, PLANNED]
    order[place, column + _LIKELY] = jobs[slot, LIKELY]


@part
def first_to_fit(
    order: Floats,
    column: int,
    first: int,
    last: int,
    free: float,
    now: float,
    shadow: float,
    extra: float,
    bold_shadow: float,
    bold_extra: float,
) -> int:
    """Return the first place before ``last`` of a job that may start on ``free`` cpus, or ``last``.

    It ends by its plan before a shadow or takes no more than the extra cpus, and the same of the
    bold ones, where what is hoped for counts as well.
    """
    place, end, size = np.uint64(first), np.uint64(last), _MANY
    width, planned, likely = column + _WIDTH, column + _PLANNED, column + _LIKELY
    bold = bold_shadow < np.inf
    while True:
        while place < end:
            # Those of a block are counted without a branch; one that bars all of them is skipped.
            until = min(place + size, end)
            barred = 0
            if bold:
                for i in range(place, until):
                    late = now + order[i, planned]
                    barred += (
                        (order[i, width] > free)
                        | ((late > shadow) & (order[i, width] > extra))
                        | (
                            (late > bold_shadow)
                            & (now + order[i, likely] > bold_shadow)
                            & (order[i, width] > bold_extra)
                        )
                    )
            else:
                for i in range(place, until):
                    barred += (order[i, width] > free) | (
                        (now + order[i, planned] > shadow) & (order[i, width] > extra)
                    )
            if barred < np.int64(until - place):
                break
            place = until
        if place == end or size == _ONE:
            return int(np.int64(place))
        size = _SOME if size == _MANY else _ONE


@part
def is_gap(order: Floats, column: int, place: int) -> bool:
    """Return whether nobody is at a place."""
    return bool(order[place, column + _WIDTH] == np.inf)


@part
def next_job(order: Floats, column: int, first: int, last: int) -> int:
    """Return the first place of a job from ``first`` to before ``last``, or ``last``."""
    place = first
    while place < last and order[place, column + _WIDTH] == np.inf:
        place += 1
    return place


@part
def next_gap(order: Floats, column: int, first: int, last: int) -> int:
    """Return the first gap from ``first`` to before ``last``, or ``last``."""
    place = first
    while place < last and order[place, column + _WIDTH] != np.inf:
        place += 1
    return place


@part
def leave_gap(order: Floats, column: int, place: int) -> None:
    """Take the job at a place out, and leave a gap."""
    order[place, column + _WIDTH] = np.inf


@part
def close_gaps(order: Floats, column: int, first: int, last: int) -> int:
    """Let jobs from ``first`` to before ``last`` move up; returns the place behind them."""
    kept = place = next_gap(order, column, first, last)
    while place < last:
        begin = next_job(order, column, place, last)
        place = next_gap(order, column, begin, last)
        for moved in columns_of(order, column):
            move_rows(order, moved, begin, place, kept)
        kept += place - begin
    return kept


@part
def enter(order: Floats, column: int, last: int, place: int, key: float, slot: int) -> None:
    """Put a job at a place; there is a gap, or room behind the rows, at ``last``."""
    for moved in columns_of(order, column):
        move_rows(order, moved, place, last, place + 1)
    order[place, column - 1] = key
    order[place, column] = slot


@part
def leave(order: Floats, column: int, place: int, last: int) -> None:
    """Take the job at a place out of the first ``last`` rows."""
    for moved in columns_of(order, column):
        move_rows(order, moved, place + 1, last, place)


@part
def advance(order: Floats, column: int, at: int, place: int, key: float) -> int:
    """Move the job at a place forward to another, with a key of those there.

    Returns the gap that others are moved into: the nearest one, at last the job's own.
    """
    slot = int(order[at, column])
    width, planned = order[at, column + _WIDTH], order[at, column + _PLANNED]
    likely = order[at, column + _LIKELY]
    leave_gap(order, column, at)
    gap = next_gap(order, column, place, at)
    enter(order, column, gap, place, key, slot)
    order[place, column + _WIDTH] = width
    order[place, column + _PLANNED] = planned
    order[place, column + _LIKELY] = likely
    return gap


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
