"""Sweeps over a finished schedule: which jobs were delayed, what stood idle, where each job lay."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import bare_kernel, part

_ROUNDING = 1e-9

_HOLES: Final = 0
_PIECES: Final = 1
_ENDED: Final = 2
_LAID: Final = 3
"""Counts of holes and pieces, and of jobs that have ended and are laid."""


def binned_integral(
    begin: NDArray[np.float64],
    end: NDArray[np.float64],
    weight: NDArray[np.float64],
    first: float,
    bin_seconds: float,
    bins: int,
) -> NDArray[np.float64]:
    """Integral, over each bin of time, of the step function that adds up weighted intervals.

    Interval i adds ``weight[i]`` from ``begin[i]`` to ``end[i]`` (seconds). Bin b reaches from
    ``first + b * bin_seconds`` to the next; what lies outside the bins is left out.
    """
    sums = np.zeros((2, bins + 1))
    _integrate(np.stack((begin, end, weight)), first, bin_seconds, sums)
    return sums[1, :bins]


@bare_kernel
def _integrate(
    intervals: NDArray[np.float64], first: float, bin_seconds: float, sums: NDArray[np.float64]
) -> None:
    """Fill the second row of ``sums`` with the integrals; both have a column to spare.

    ``intervals`` has rows of begins, ends and weights.
    """
    begin, end, weight = intervals[0], intervals[1], intervals[2]
    level, integral = sums[0], sums[1]
    bins = level.size - 1
    for i in range(begin.size):
        left = max((begin[i] - first) / bin_seconds, 0.0)
        right = min((end[i] - first) / bin_seconds, float(bins))
        if right <= left:
            continue
        low = min(int(left), bins - 1)
        high = min(int(right), bins - 1)
        if low == high:
            integral[low] += weight[i] * (right - left)
            continue
        integral[low] += weight[i] * (low + 1 - left)
        integral[high] += weight[i] * (right - high)
        # Whole bins between the ends: kept as a change of level, summed up once below.
        level[low + 1] += weight[i]
        level[high] -= weight[i]
    running = 0.0
    for b in range(bins):
        running += level[b]
        integral[b] = (integral[b] + running) * bin_seconds


@part
def _place(tree: NDArray[np.float64], position: int, value: float) -> None:
    """Set a leaf of a minimum tree (``tree.size / 2`` leaves) and renew ancestors that change."""
    node = tree.size // 2 + position
    while node >= 1 and tree[node] != value:
        tree[node] = value
        node //= 2
        value = min(tree[2 * node], tree[2 * node + 1])


@part
def _first_at_most(tree: NDArray[np.float64], limit: float) -> int:
    """Position of the first leaf that is at most the limit, where there is one."""
    leaves = tree.size // 2
    node = 1
    while node < leaves:
        node *= 2
        if tree[node] > limit:
            node += 1
    return node - leaves


def sweep_queue(
    rows: NDArray[np.float64],
    first: NDArray[np.bool_],
    since: NDArray[np.float64],
    processors: NDArray[np.float64],
) -> tuple[NDArray[np.bool_], float, float]:
    """Follow free processors and the queue through a schedule.

    ``rows`` has submissions, starts, ends and widths of attempts in order of submission. Those that
    are not ``first`` were requeued: they neither delay others nor are delayed, as they have had
    their turn. ``since`` (ascending, the first before all else) says from when on there are how
    many ``processors``. At one instant ends come first, then processors, then submissions, then
    starts in order of submission.

    Returns
    -------
    passed_over
        Row by row: did a later first row start while this first row waited and would have fitted?
    idle_while_waiting
        Processor seconds free while at least one row waited.
    idle_while_fitting
        Processor seconds free while a waiting row would have fitted into them.
    """
    submit, start, end, _ = rows
    orders = _orders(start, end)
    come = np.arange(0, start.size, 64)
    longest = int(np.max(64 + come - np.searchsorted(start[orders[0]], submit[come]), initial=0))
    leaves = 2 << longest.bit_length()  # half of them are free whenever rows have moved up
    places = np.zeros(start.size, dtype=np.int32), np.zeros(leaves, dtype=np.int32)
    passed_over = np.zeros(start.size, dtype=np.bool_)
    trees = np.full((2, 2 * leaves), np.inf)
    changes = np.stack((since, np.diff(processors, prepend=0.0)))
    idle_while_waiting, idle_while_fitting = _sweep(
        rows, orders, changes, trees, places, first, passed_over
    )
    return passed_over, idle_while_waiting, idle_while_fitting


def _orders(start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.int32]:
    """Rows by their starts, stably, and by their ends."""
    return np.stack((np.argsort(start, kind="stable"), np.argsort(end)), dtype=np.int32)


@part
def _move_up(
    trees: NDArray[np.float64], leaf_of: NDArray[np.int32], row_at: NDArray[np.int32]
) -> int:
    """Move all rows of the minimum trees to their first leaves, in order; how many these are."""
    leaves = row_at.size
    kept = 0
    for leaf in range(leaves, 2 * leaves):
        width, unmarked = trees[0, leaf], trees[1, leaf]
        trees[:, leaf] = np.inf
        if width < np.inf:
            row = row_at[leaf - leaves]
            leaf_of[row], row_at[kept] = kept, row
            trees[0, leaves + kept], trees[1, leaves + kept] = width, unmarked
            kept += 1
    for node in range(leaves - 1, 0, -1):
        for tree in range(2):
            trees[tree, node] = min(trees[tree, 2 * node], trees[tree, 2 * node + 1])
    return kept


@bare_kernel
def _sweep(
    rows_of: NDArray[np.float64],
    orders: NDArray[np.int32],
    changes: NDArray[np.float64],
    trees: NDArray[np.float64],
    places: tuple[NDArray[np.int32], NDArray[np.int32]],
    first: NDArray[np.bool_],
    passed_over: NDArray[np.bool_],
) -> tuple[float, float]:
    """Fill ``passed_over`` of ``sweep_queue``, and return the other two.

    ``rows_of`` has submissions, starts, ends and widths, ``orders`` those by start and by end;
    ``changes`` has when there were more or fewer processors, and how many; ``trees`` are two empty
    minimum trees of the rows that wait: all, and those that none has delayed yet. ``places`` has
    leaves of rows and rows of leaves; what starts as it is submitted has none.
    """
    submit, start, end, width = rows_of[0], rows_of[1], rows_of[2], rows_of[3]
    start_order, end_order = orders[0], orders[1]
    waiting, unmarked = trees[0], trees[1]
    leaf_of, row_at = places
    rows = submit.size
    idle_while_waiting = 0.0
    idle_while_fitting = 0.0
    free = changes[1, 0]
    come = 1
    leaves = submitted = started = ended = 0
    previous = 0.0
    while ended < rows:
        now = end[end_order[ended]]
        if submitted < rows:
            now = min(now, submit[submitted])
        if started < rows:
            now = min(now, start[start_order[started]])
        if come < changes.shape[1]:
            now = min(now, changes[0, come])
        if waiting[1] < np.inf and free > 0.0:
            idle_while_waiting += free * (now - previous)
            if waiting[1] <= free + _ROUNDING:
                idle_while_fitting += free * (now - previous)
        previous = now
        # At one instant: ends, capacity, submissions, then starts, as in the replay.
        while ended < rows and end[end_order[ended]] <= now:
            row = end_order[ended]
            if end[row] > start[row]:
                free += width[row]
            ended += 1
        while come < changes.shape[1] and changes[0, come] <= now:
            free += changes[1, come]
            come += 1
        for row in range(submitted, rows):
            if submit[row] > now:
                break
            submitted += 1
            if start[row] > submit[row]:
                if leaves == row_at.size:
                    leaves = _move_up(trees, leaf_of, row_at)
                leaf_of[row], row_at[leaves] = leaves, row
                _place(waiting, leaves, width[row])
                if first[row]:
                    _place(unmarked, leaves, width[row])
                leaves += 1
        first_start = started
        while started < rows and start[start_order[started]] <= now:
            row = start_order[started]
            if start[row] > submit[row]:
                _place(waiting, leaf_of[row], np.inf)
                _place(unmarked, leaf_of[row], np.inf)
            started += 1
        for i in range(first_start, started):
            row = start_order[i]
            while first[row] and unmarked[1] <= free + _ROUNDING:
                leaf = _first_at_most(unmarked, free + _ROUNDING)
                if row_at[leaf] > row:
                    break
                passed_over[row_at[leaf]] = True
                _place(unmarked, leaf, np.inf)
            if end[row] > start[row]:
                free -= width[row]
    return idle_while_waiting, idle_while_fitting


@part
def _give_back(holes: NDArray[np.int64], count: int, first: int, last: int) -> int:
    """Add rows first..last-1 to the sorted holes, joining neighbours; the new count of holes."""
    at = _hole_from(holes, count, first)
    joins_left = at > 0 and holes[at - 1, 1] == first
    joins_right = at < count and holes[at, 0] == last
    if joins_left and joins_right:
        holes[at - 1, 1] = holes[at, 1]
        return _without_hole(holes, count, at)
    if joins_left:
        holes[at - 1, 1] = last
        return count
    if joins_right:
        holes[at, 0] = first
        return count
    for i in range(count, at, -1):
        holes[i, 0] = holes[i - 1, 0]
        holes[i, 1] = holes[i - 1, 1]
    holes[at, 0] = first
    holes[at, 1] = last
    return count + 1


@part
def _hole_from(holes: NDArray[np.int64], count: int, row: int) -> int:
    """The first hole that begins at a row or behind it."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if holes[middle, 0] < row:
            low = middle + 1
        else:
            high = middle
    return low


@part
def _without_hole(holes: NDArray[np.int64], count: int, at: int) -> int:
    """Remove a hole; the new count of holes."""
    for i in range(at, count - 1):
        holes[i, 0] = holes[i + 1, 0]
        holes[i, 1] = holes[i + 1, 1]
    return count - 1


def pack_rows(
    start: NDArray[np.float64], end: NDArray[np.float64], width: NDArray[np.int64], processors: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Lay every job on processor rows: the lowest hole that holds it, else the lowest holes.

    Returns the pieces, three arrays of equal length: the job, its first row and the row after its
    last. A job that finds too few free rows (a schedule wider than the machine) is cut short.
    """
    times = np.stack((start, end))
    jobs = np.stack((width, *_orders(start, end)))
    spans = np.zeros((start.size, 2), dtype=np.int64)
    holes = np.zeros((processors + 1, 2), dtype=np.int64)
    holes[0, 1] = processors
    progress = np.array([int(processors > 0), 0, 0, 0], dtype=np.int64)
    pieces = np.empty((2 * start.size + 16, 3), dtype=np.int64)
    while not _pack(times, jobs, spans, holes, progress, pieces):
        pieces = np.concatenate((pieces, np.empty_like(pieces)))
    job, low, high = pieces[: progress[_PIECES]].T.copy()
    return job, low, high


@bare_kernel
def _pack(
    times: NDArray[np.float64],
    jobs: NDArray[np.int64],
    spans: NDArray[np.int64],
    holes: NDArray[np.int64],
    progress: NDArray[np.int64],
    pieces: NDArray[np.int64],
) -> bool:
    """Lay jobs until all are laid, or (False) until there may be no room for more pieces.

    ``times`` has starts and ends, ``jobs`` widths and the orders by start and by end. ``spans``
    is filled with the first and last of each job's pieces, and ``pieces`` with job, low and high.
    ``progress`` says how far this is, and with it ``holes``, lows and highs.
    """
    start, end = times[0], times[1]
    width, start_order, end_order = jobs[0], jobs[1], jobs[2]
    count, made, ended = progress[_HOLES], progress[_PIECES], progress[_ENDED]
    for at in range(progress[_LAID], start.size):
        job = start_order[at]
        while ended < start.size and end[end_order[ended]] <= start[job]:
            gone = end_order[ended]
            for piece in range(spans[gone, 0], spans[gone, 1]):
                count = _give_back(holes, count, pieces[piece, 1], pieces[piece, 2])
            ended += 1
        progress[_LAID] = at
        if made + count > pieces.shape[0]:
            break
        spans[job, 0] = made
        wanted = width[job] if end[job] > start[job] else 0
        hole = 0
        while hole < count and holes[hole, 1] - holes[hole, 0] < wanted:
            hole += 1
        # No hole is wide enough: spread over the lowest ones.
        if hole == count:
            hole = 0
        while wanted > 0 and count > 0:
            low = holes[hole, 0]
            taken = min(wanted, holes[hole, 1] - low)
            pieces[made, 0] = job
            pieces[made, 1] = low
            pieces[made, 2] = low + taken
            made += 1
            holes[hole, 0] = low + taken
            if low + taken == holes[hole, 1]:
                count = _without_hole(holes, count, hole)
            wanted -= taken
            if hole >= count:
                hole = 0
        spans[job, 1] = made
        progress[_LAID] = at + 1
    progress[_HOLES], progress[_PIECES], progress[_ENDED] = count, made, ended
    return bool(progress[_LAID] == start.size)


def binned_area(
    begin: NDArray[np.float64],
    end: NDArray[np.float64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    first: float,
    bin_seconds: float,
    time_bins: int,
    bin_rows: float,
    row_bins: int,
) -> NDArray[np.float64]:
    """Share of each cell (rows x time) that rectangles cover; shape (row_bins, time_bins).

    Rectangle i covers rows ``low[i]`` to ``high[i]`` from ``begin[i]`` to ``end[i]`` seconds.
    """
    left = np.maximum((begin - first) / bin_seconds, 0.0)
    right = np.minimum((end - first) / bin_seconds, float(time_bins))
    top = np.minimum(high / bin_rows, float(row_bins))
    cells = np.zeros((row_bins, time_bins))
    _cover(np.stack((left, right, low / bin_rows, top)), cells)
    return cells


@bare_kernel
def _cover(rectangles: NDArray[np.float64], cells: NDArray[np.float64]) -> None:
    """Add what rectangles cover; their left, right, bottom and top are in cells."""
    row_bins, time_bins = cells.shape
    for i in range(rectangles.shape[1]):
        left, right = rectangles[0, i], rectangles[1, i]
        if right <= left:
            continue
        bottom, top = rectangles[2, i], rectangles[3, i]
        for row in range(int(bottom), min(math.ceil(top), row_bins)):
            height = min(top, row + 1.0) - max(bottom, float(row))
            for column in range(int(left), min(math.ceil(right), time_bins)):
                cells[row, column] += height * (min(right, column + 1.0) - max(left, float(column)))
