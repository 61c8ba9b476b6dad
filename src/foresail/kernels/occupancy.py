"""Sweeps over a finished schedule: who was passed over, what stood idle, where each job lay."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import kernel

_ROUNDING = 1e-9


@kernel
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
    level = np.zeros(bins + 1)
    integral = np.zeros(bins)
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
        level[low + 1] += weight[i]
        level[high] -= weight[i]
    running = 0.0
    for b in range(bins):
        running += level[b]
        integral[b] = (integral[b] + running) * bin_seconds
    return integral


@kernel
def _place(tree: NDArray[np.float64], position: int, value: float) -> None:
    """Set a leaf of a minimum tree (``tree.size / 2`` leaves) and renew its ancestors."""
    node = tree.size // 2 + position
    tree[node] = value
    node //= 2
    while node >= 1:
        tree[node] = min(tree[2 * node], tree[2 * node + 1])
        node //= 2


@kernel
def _first_at_most(tree: NDArray[np.float64], limit: float) -> int:
    """Position of the first leaf that is at most the limit; the number of leaves if none is."""
    leaves = tree.size // 2
    if tree[1] > limit:
        return leaves
    node = 1
    while node < leaves:
        node *= 2
        if tree[node] > limit:
            node += 1
    return node - leaves


@kernel
def sweep_queue(
    submit: NDArray[np.float64],
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    width: NDArray[np.float64],
    start_order: NDArray[np.int64],
    end_order: NDArray[np.int64],
    processors: float,
) -> tuple[NDArray[np.bool_], float, float]:
    """Follow free processors and the queue through a schedule.

    Rows are in order of submission; ``start_order`` and ``end_order`` sort them by start and by
    end, stably. At one instant ends come first, then submissions, then starts in order of
    submission.

    Returns
    -------
    passed_over
        Row by row: did a later row start while this one waited and would have fitted?
    idle_while_waiting
        Processor seconds free while at least one row waited.
    idle_while_fitting
        Processor seconds free while a waiting row would have fitted into them.
    """
    rows = submit.size
    leaves = 1
    while leaves < rows:
        leaves *= 2
    waiting = np.full(2 * leaves, np.inf)
    unmarked = np.full(2 * leaves, np.inf)
    passed_over = np.zeros(rows, dtype=np.bool_)
    idle_while_waiting = 0.0
    idle_while_fitting = 0.0
    free = processors
    queued = 0
    submitted = 0
    started = 0
    ended = 0
    previous = 0.0
    while ended < rows:
        now = end[end_order[ended]]
        if submitted < rows:
            now = min(now, submit[submitted])
        if started < rows:
            now = min(now, start[start_order[started]])
        if queued > 0 and free > 0.0:
            idle_while_waiting += free * (now - previous)
            if waiting[1] <= free + _ROUNDING:
                idle_while_fitting += free * (now - previous)
        previous = now
        while ended < rows and end[end_order[ended]] <= now:
            row = end_order[ended]
            if end[row] > start[row]:
                free += width[row]
            ended += 1
        while submitted < rows and submit[submitted] <= now:
            _place(waiting, submitted, width[submitted])
            _place(unmarked, submitted, width[submitted])
            submitted += 1
            queued += 1
        first_start = started
        while started < rows and start[start_order[started]] <= now:
            row = start_order[started]
            _place(waiting, row, np.inf)
            _place(unmarked, row, np.inf)
            started += 1
            queued -= 1
        for i in range(first_start, started):
            row = start_order[i]
            passed = _first_at_most(unmarked, free + _ROUNDING)
            while passed < row:
                passed_over[passed] = True
                _place(unmarked, passed, np.inf)
                passed = _first_at_most(unmarked, free + _ROUNDING)
            if end[row] > start[row]:
                free -= width[row]
    return passed_over, idle_while_waiting, idle_while_fitting


@kernel
def _give_back(
    low: NDArray[np.int64], high: NDArray[np.int64], holes: int, first: int, last: int
) -> int:
    """Add rows first..last-1 to the sorted list of holes, joining neighbours; the new count."""
    at = np.searchsorted(low[:holes], first)
    joins_left = at > 0 and high[at - 1] == first
    joins_right = at < holes and low[at] == last
    if joins_left and joins_right:
        high[at - 1] = high[at]
        for i in range(at, holes - 1):
            low[i] = low[i + 1]
            high[i] = high[i + 1]
        return holes - 1
    if joins_left:
        high[at - 1] = last
        return holes
    if joins_right:
        low[at] = first
        return holes
    for i in range(holes, at, -1):
        low[i] = low[i - 1]
        high[i] = high[i - 1]
    low[at] = first
    high[at] = last
    return holes + 1


@kernel
def _take(low: NDArray[np.int64], high: NDArray[np.int64], holes: int, at: int, rows: int) -> int:
    """Take the first ``rows`` rows of a hole (at most all of it); the new count of holes."""
    low[at] += rows
    if low[at] < high[at]:
        return holes
    for i in range(at, holes - 1):
        low[i] = low[i + 1]
        high[i] = high[i + 1]
    return holes - 1


@kernel
def pack_rows(
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    width: NDArray[np.int64],
    start_order: NDArray[np.int64],
    end_order: NDArray[np.int64],
    processors: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Lay every job on processor rows: the lowest hole that holds it, else the lowest holes.

    Returns the pieces, three arrays of equal length: the job, its first row and the row after its
    last. A job that finds too few free rows (a schedule wider than the machine) is cut short.
    """
    jobs = start.size
    low = np.empty(processors + 1, dtype=np.int64)
    high = np.empty(processors + 1, dtype=np.int64)
    low[0] = 0
    high[0] = processors
    holes = 1 if processors > 0 else 0
    capacity = 2 * jobs + 16
    piece_job = np.empty(capacity, dtype=np.int64)
    piece_low = np.empty(capacity, dtype=np.int64)
    piece_high = np.empty(capacity, dtype=np.int64)
    pieces = 0
    first_piece = np.zeros(jobs, dtype=np.int64)
    after_piece = np.zeros(jobs, dtype=np.int64)
    ended = 0
    for job in start_order:
        while ended < jobs and end[end_order[ended]] <= start[job]:
            gone = end_order[ended]
            for piece in range(first_piece[gone], after_piece[gone]):
                holes = _give_back(low, high, holes, piece_low[piece], piece_high[piece])
            ended += 1
        first_piece[job] = pieces
        after_piece[job] = pieces
        if end[job] <= start[job]:
            continue
        wanted = width[job]
        at = 0
        while at < holes and high[at] - low[at] < wanted:
            at += 1
        if at == holes:
            at = 0
        while wanted > 0 and holes > 0:
            taken = min(wanted, high[at] - low[at])
            if pieces == capacity:
                capacity *= 2
                piece_job = np.concatenate((piece_job, np.empty_like(piece_job)))
                piece_low = np.concatenate((piece_low, np.empty_like(piece_low)))
                piece_high = np.concatenate((piece_high, np.empty_like(piece_high)))
            piece_job[pieces] = job
            piece_low[pieces] = low[at]
            piece_high[pieces] = low[at] + taken
            pieces += 1
            holes = _take(low, high, holes, at, taken)
            wanted -= taken
            if at >= holes:
                at = 0
        after_piece[job] = pieces
    return piece_job[:pieces].copy(), piece_low[:pieces].copy(), piece_high[:pieces].copy()


@kernel
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
    cells = np.zeros((row_bins, time_bins))
    for i in range(begin.size):
        left = max((begin[i] - first) / bin_seconds, 0.0)
        right = min((end[i] - first) / bin_seconds, float(time_bins))
        if right <= left:
            continue
        bottom = low[i] / bin_rows
        top = min(high[i] / bin_rows, float(row_bins))
        for row in range(int(bottom), min(math.ceil(top), row_bins)):
            height = min(top, row + 1.0) - max(bottom, float(row))
            for column in range(int(left), min(math.ceil(right), time_bins)):
                cells[row, column] += height * (min(right, column + 1.0) - max(left, float(column)))
    return cells
