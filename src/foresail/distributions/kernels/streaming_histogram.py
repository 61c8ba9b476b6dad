"""A distribution in constant memory: the streaming histogram of Ben-Haim and Tom-Tov (2010).

A histogram lives in one row of numbers (a slice of a larger table, or an array of its own): count,
smallest and largest value exactly, how many bins are used, whether bins were ever merged, then
centroids in ascending order, then their counts. Until the first merge the bins are exact atoms;
afterwards the count up to a value runs through half of each bin's count at its centroid, linear in
density in between, from 0 at the smallest value to everything at the largest. Where the first
(last) centroid is the smallest (largest) value itself, half of its count is an atom there.

Source: Ben-Haim and Tom-Tov (2010), as 3Sigma uses it (Park's dissertation, chapter 4).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from foresail.distributions.kernels.survival_grid import PIECE_COLUMNS
from foresail.kernels import columns
from foresail.kernels.compile import Floats, bare_kernel, kernel, part


@bare_kernel
def insert_all(row: Floats, values: Floats) -> None:
    """Add the values to one histogram, in their order."""
    for value in values:
        insert(row, value, 1.0)


@kernel
def counts_up_to(row: Floats, values: Floats) -> Floats:
    """``count_up_to`` at each of the values (one dimension)."""
    counts = np.empty(values.size)
    for i in range(values.size):
        counts[i] = count_up_to(row, values[i])
    return counts


@kernel
def values_at(row: Floats, levels: Floats) -> Floats:
    """``value_at`` at each of the levels (one dimension)."""
    values = np.empty(levels.size)
    for i in range(levels.size):
        values[i] = value_at(row, levels[i])
    return values


@kernel
def histogram_pieces(row: Floats) -> Floats:
    """Pieces (``distributions.kernels.pieces``) of the distribution of a histogram with a point."""
    used = int(row[USED])
    total = row[COUNT]
    counts = CENTROIDS + (row.size - CENTROIDS) // 2
    exact = row[MERGED] == 0.0
    pieces = np.zeros((used if exact else used + 2, PIECE_COLUMNS))
    below = 0.0
    if exact:
        for i in range(used):
            below += row[counts + i]
            pieces[i, 0] = row[CENTROIDS + i]
            pieces[i, 1] = max(total - below, 0.0) / total
        pieces[used - 1, 1] = 0.0
        return pieces
    for i in range(used + 2):
        amount = row[counts + i - 1] if 1 <= i <= used else 0.0
        pieces[i, 0] = row[SMALLEST] if i == 0 else row[CENTROIDS + i - 1]
        if i == used + 1:
            pieces[i, 0] = row[LARGEST]
        below += 0.5 * amount
        pieces[i, 1] = max(total - below, 0.0) / total
        below += 0.5 * amount
        if i > 0:
            width = pieces[i, 0] - pieces[i - 1, 0]
            previous = row[counts + i - 2] if i > 1 else 0.0
            if width > 0.0:
                pieces[i - 1, 2] = previous / (width * total)
                pieces[i - 1, 3] = 0.5 * (amount - previous) / (width * width * total)
    pieces[used + 1, 1] = 0.0
    return pieces


COUNT: Final = 0
SMALLEST: Final = 1
LARGEST: Final = 2
USED: Final = 3
MERGED: Final = 4
CENTROIDS: Final = 5
"""Places in a row; the counts follow the centroids."""

_QUANTILES: Final = len(columns.QUANTILE_LEVELS)
_NARROW: Final = 1e-6
"""Relative width of a piece below which its points are taken to be in its middle."""


def histogram_columns(bins: int) -> int:
    """Length of the row of a histogram with so many bins: room for one more, then two to merge."""
    return CENTROIDS + 2 * (bins + 1)


@part
def _rooms(row: Floats) -> int:
    """For how many centroids the row has room: one more than it keeps."""
    return (row.size - CENTROIDS) // 2


@bare_kernel
def insert(row: Floats, value: float, amount: float) -> None:
    """Add ``amount`` (above 0) points of one value, merging two bins where there are too many."""
    if row[USED] == 0.0:
        row[SMALLEST] = value
        row[LARGEST] = value
    row[SMALLEST] = min(row[SMALLEST], value)
    row[LARGEST] = max(row[LARGEST], value)
    row[COUNT] += amount
    _insert_bin(row, value, amount)


@bare_kernel
def merge(row: Floats, other: Floats, both: Floats) -> None:
    """Add all of another histogram's bins at once; then merge down to the bins of this one.

    ``both`` is room to work in: the row of a histogram with the bins of both, or longer.
    """
    if other[USED] == 0.0:
        return
    for i in range(both.size):
        both[i] = 0.0
    if row[USED] == 0.0:
        both[SMALLEST], both[LARGEST] = other[SMALLEST], other[LARGEST]
    else:
        both[SMALLEST] = min(row[SMALLEST], other[SMALLEST])
        both[LARGEST] = max(row[LARGEST], other[LARGEST])
    both[MERGED] = max(row[MERGED], other[MERGED])
    _insert_bins(both, row)
    _insert_bins(both, other)
    kept = _rooms(row) - 1
    # Merge only when all bins are in: nearest pairs of both at once.
    while both[USED] > kept:
        _merge_nearest(both)
    both[COUNT] = row[COUNT] + other[COUNT]
    for i in range(row.size):
        row[i] = both[i] if i < CENTROIDS else 0.0
    counts, counts_of_both = CENTROIDS + _rooms(row), CENTROIDS + _rooms(both)
    for i in range(int(both[USED])):
        row[CENTROIDS + i] = both[CENTROIDS + i]
        row[counts + i] = both[counts_of_both + i]


@part
def _insert_bins(row: Floats, other: Floats) -> None:
    """Add the bins of another row; there is room for them."""
    for i in range(int(other[USED])):
        _insert_bin(row, other[CENTROIDS + i], other[CENTROIDS + _rooms(other) + i])


@part
def _insert_bin(row: Floats, value: float, amount: float) -> None:
    """Add a bin, or to the bin of exactly this value; merge two if all rooms are taken."""
    rooms = _rooms(row)
    counts = CENTROIDS + rooms
    used = int(row[USED])
    low, high = 0, used
    while low < high:
        middle = (low + high) // 2
        if row[CENTROIDS + middle] < value:
            low = middle + 1
        else:
            high = middle
    if low < used and row[CENTROIDS + low] == value:
        row[counts + low] += amount
        return
    for i in range(used, low, -1):
        row[CENTROIDS + i] = row[CENTROIDS + i - 1]
        row[counts + i] = row[counts + i - 1]
    row[CENTROIDS + low] = value
    row[counts + low] = amount
    row[USED] = used + 1.0
    if used + 1 == rooms:
        _merge_nearest(row)


@part
def _merge_nearest(row: Floats) -> None:
    """Merge the two neighbouring bins with the smallest gap; of equal gaps, the lowest."""
    counts = CENTROIDS + _rooms(row)
    used = int(row[USED])
    nearest = 0
    gap = math.inf
    for i in range(used - 1):
        here = row[CENTROIDS + i + 1] - row[CENTROIDS + i]
        if here < gap:
            gap = here
            nearest = i
    left, right = row[counts + nearest], row[counts + nearest + 1]
    share = right / (left + right)
    row[CENTROIDS + nearest] += share * gap
    row[counts + nearest] = left + right
    for i in range(nearest + 1, used - 1):
        row[CENTROIDS + i] = row[CENTROIDS + i + 1]
        row[counts + i] = row[counts + i + 1]
    row[CENTROIDS + used - 1] = 0.0
    row[counts + used - 1] = 0.0
    row[USED] = used - 1.0
    row[MERGED] = 1.0


@part
def _edge(row: Floats, i: int) -> tuple[float, float]:
    """Place and count of bin ``i``; -1 and the number of bins are the ends, without a count."""
    used = int(row[USED])
    if i < 0:
        return row[SMALLEST], 0.0
    if i >= used:
        return row[LARGEST], 0.0
    return row[CENTROIDS + i], row[CENTROIDS + _rooms(row) + i]


@bare_kernel
def count_up_to(row: Floats, value: float) -> float:
    """Estimated number of points at or below a value (``sum`` of the source)."""
    used = int(row[USED])
    if used == 0 or value < row[SMALLEST]:
        return 0.0
    if value >= row[LARGEST]:
        return float(row[COUNT])
    counts = CENTROIDS + _rooms(row)
    # Unmerged bins are atoms; merged ones are trapezoids between centroids.
    if row[MERGED] == 0.0:
        below = 0.0
        for i in range(used):
            if row[CENTROIDS + i] > value:
                break
            below += row[counts + i]
        return below
    below = 0.0
    i = -1
    while i + 1 < used and row[CENTROIDS + i + 1] <= value:
        i += 1
        if i > 0:
            below += row[counts + i - 1]
    place, amount = _edge(row, i)
    after, next_amount = _edge(row, i + 1)
    z = (value - place) / (after - place) if after > place else 0.0
    here = amount + (next_amount - amount) * z
    return below + 0.5 * amount + 0.5 * (amount + here) * z


@bare_kernel
def value_at(row: Floats, level: float) -> float:
    """Smallest value that a share ``level`` of the points stays at or below; needs a point."""
    if level >= 1.0:
        return float(row[LARGEST])
    used = int(row[USED])
    counts = CENTROIDS + _rooms(row)
    wanted = level * row[COUNT]
    below = 0.0
    if row[MERGED] == 0.0:
        for i in range(used - 1):
            below += row[counts + i]
            if below >= wanted:
                return float(row[CENTROIDS + i])
        return float(row[CENTROIDS + used - 1])
    place, amount = row[SMALLEST], 0.0
    for i in range(used + 1):
        after, next_amount = _edge(row, i)
        piece = 0.5 * (amount + next_amount)
        if after > place and below + piece >= wanted:
            share = _share_of_piece(amount, next_amount, wanted - below)
            return float(place + (after - place) * share)
        below += piece
        place, amount = after, next_amount
    return float(row[LARGEST])


@part
def _share_of_piece(amount: float, next_amount: float, wanted: float) -> float:
    """Return where between two bins so much of the piece's count is reached, from 0 to 1."""
    if wanted <= 0.0:
        return 0.0
    rise = next_amount - amount
    root = math.sqrt(max(amount * amount + 2.0 * rise * wanted, 0.0))
    return min(2.0 * wanted / (amount + root), 1.0)


@part
def _mean_inverse(place: float, after: float, amount: float, next_amount: float) -> float:
    """Integral of 1/x over the points between two bins above the bound, by their density."""
    width = after - place
    rise = next_amount - amount
    ratio = width / place
    if ratio < _NARROW:
        return 0.5 * (amount + next_amount) / (0.5 * (place + after))
    log = math.log1p(ratio) / ratio
    return (amount * log + rise * (1.0 - log) / ratio) / place


@part
def _urgency(row: Floats) -> float:
    """E[1 / max(T, bound)]."""
    bound = columns.SLOWDOWN_BOUND_SECONDS
    used = int(row[USED])
    counts = CENTROIDS + _rooms(row)
    total = 0.0
    if row[MERGED] == 0.0:
        for i in range(used):
            total += row[counts + i] / max(row[CENTROIDS + i], bound)
        return float(total / row[COUNT])
    place, amount = row[SMALLEST], 0.0
    for i in range(used + 1):
        after, next_amount = _edge(row, i)
        piece = 0.5 * (amount + next_amount)
        if after <= bound:
            total += piece / bound
        elif after == place:
            total += piece / place
        # A piece lies below the bound, at one point, above the bound, or across it.
        elif place >= bound:
            total += _mean_inverse(place, after, amount, next_amount)
        else:
            z = (bound - place) / (after - place)
            here = amount + (next_amount - amount) * z
            total += 0.5 * (amount + here) * z / bound
            total += (1.0 - z) * _mean_inverse(bound, after, here, next_amount)
        place, amount = after, next_amount
    return float(total / row[COUNT])


@bare_kernel
def histogram_mean(row: Floats) -> float:
    """Mean of the distribution; needs a point."""
    used = int(row[USED])
    counts = CENTROIDS + _rooms(row)
    total = 0.0
    if row[MERGED] == 0.0:
        for i in range(used):
            total += row[counts + i] * row[CENTROIDS + i]
    else:
        place, amount = row[SMALLEST], 0.0
        for i in range(used + 1):
            after, next_amount = _edge(row, i)
            total += 0.5 * (amount + next_amount) * place
            total += (after - place) * (amount + 2.0 * next_amount) / 6.0
            place, amount = after, next_amount
    return float(min(max(total / row[COUNT], row[SMALLEST]), row[LARGEST]))


@bare_kernel
def summarise_histogram(row: Floats, summary: Floats) -> None:
    """Fill a summary row (``foresail.kernels.columns``); needs a point."""
    summary[columns.PREDICTED] = histogram_mean(row)
    for i in range(_QUANTILES):
        summary[columns.Q10 + i] = value_at(row, columns.QUANTILE_LEVELS[i])
    summary[columns.URGENCY] = _urgency(row)


@part
def fill_histogram_belief(row: Floats, belief: Floats) -> None:
    """Fill a belief row (``foresail.kernels.columns``); needs a point."""
    for i in range(columns.BELIEF_COLUMNS):
        belief[i] = value_at(row, columns.BELIEF_LEVELS[i])
    belief[0] = row[SMALLEST]
