"""The distribution of a stream of values, in constant memory: the streaming histogram."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from foresail.distributions.basic import SHARE_WEIGHTS, SHARES, Point, checked_factor
from foresail.distributions.kernels.streaming_histogram import (
    CENTROIDS,
    COUNT,
    LARGEST,
    MERGED,
    SMALLEST,
    USED,
    count_up_to,
    counts_up_to,
    histogram_columns,
    histogram_mean,
    histogram_pieces,
    insert,
    insert_all,
    value_at,
    values_at,
)
from foresail.distributions.kernels.survival_grid import BEND, PLACE, SLOPE, SURVIVAL, pieces_beyond
from foresail.model.distribution import Distribution, Floats

DEFAULT_BINS: Final = 80
"""Number of bins in 3Sigma."""
_ROUNDING: Final = 1e-9


class Histogram:
    """The belief of someone who kept a streaming histogram of what was seen.

    Until the first merge its bins are exact atoms; afterwards the density is linear between them.

    Raises ``ValueError`` if the row is not as above, or nothing is left beyond ``elapsed``.
    """

    __slots__ = ("elapsed", "row")

    row: Floats
    """Row as in ``distributions.kernels.streaming_histogram``, with at least one point and no
    negative values; copied."""
    elapsed: float
    """Amount that the quantity is known to exceed; 0 if none is. Above 0 only once merged."""

    def __init__(self, row: Floats, elapsed: float = 0.0) -> None:
        self.row = np.array(row, dtype=np.float64)
        self.elapsed = elapsed
        self._check()
        self.row.flags.writeable = False

    def _check(self) -> None:
        room = self.row.size - CENTROIDS
        if self.row.ndim != 1 or room < 4 or room % 2 or not np.all(np.isfinite(self.row)):
            raise ValueError("row must have the length for a number of bins and be finite")
        if not 1.0 <= self.row[USED] <= self.bins or self.row[USED] % 1.0:
            raise ValueError("row must use one bin or more, and no more than it has")
        edges = np.concatenate(([self.smallest], self.centroids, [self.largest]))
        if self.smallest < 0.0 or np.any(np.diff(edges) < 0.0):
            raise ValueError("values must not be negative, and centroids must ascend among them")
        total = float(self.counts.sum())
        if np.any(self.counts <= 0.0) or not math.isclose(total, self.count, rel_tol=_ROUNDING):
            raise ValueError("counts must be above 0 and add up to the count of all")
        if not (self.elapsed == 0.0 or (self.elapsed > 0.0 and self.merged)):
            raise ValueError("elapsed must be 0, or above 0 once bins were merged")
        if self._left() <= 0.0:
            raise ValueError("elapsed must leave something")

    @classmethod
    def from_values(cls, values: ArrayLike, bins: int = DEFAULT_BINS) -> Histogram:
        """The histogram of these values, inserted in their order.

        ``values`` are finite and not negative; at most so many bins are kept.

        Raises ``ValueError`` if the values or bins are not as above.
        """
        if bins < 1:
            raise ValueError("bins must be 1 or more")
        row = np.zeros(histogram_columns(bins))
        insert_all(row, _checked(np.atleast_1d(np.asarray(values, dtype=np.float64))))
        return cls(row)

    def __repr__(self) -> str:
        bins = list(zip(self.centroids.tolist(), self.counts.tolist(), strict=True))
        return f"Histogram({bins}, elapsed={self.elapsed})"

    @property
    def bins(self) -> int:
        """Return how many bins it keeps at most."""
        return (self.row.size - CENTROIDS) // 2 - 1

    @property
    def count(self) -> float:
        """Points in it; those that a condition rules out are still counted."""
        return float(self.row[COUNT])

    @property
    def smallest(self) -> float:
        """The smallest value seen."""
        return float(self.row[SMALLEST])

    @property
    def largest(self) -> float:
        """The largest value seen."""
        return float(self.row[LARGEST])

    @property
    def merged(self) -> bool:
        """Return whether bins were ever merged; if not, they are exact atoms."""
        return bool(self.row[MERGED])

    @property
    def centroids(self) -> Floats:
        """Places of the bins, ascending."""
        return self.row[CENTROIDS : CENTROIDS + int(self.row[USED])]

    @property
    def counts(self) -> Floats:
        """Points in each bin."""
        first = CENTROIDS + self.bins + 1
        return self.row[first : first + int(self.row[USED])]

    def pieces(self) -> Floats:
        """The survival function as pieces (``foresail.distributions.kernels.survival_grid``)."""
        pieces = histogram_pieces(self.row)
        return pieces_beyond(pieces, self.elapsed) if self.elapsed > 0.0 else pieces

    def _passed(self) -> float:
        return float(count_up_to(self.row, self.elapsed)) if self.elapsed > 0.0 else 0.0

    def _left(self) -> float:
        return self.count - self._passed()

    def mean(self) -> float:
        """Expected value."""
        if self.elapsed > 0.0:
            return self.expectation(lambda values: values)
        return float(histogram_mean(self.row))

    def quantile(self, level: float) -> float:
        """Smallest value that the quantity stays at or below with at least this probability."""
        if self.elapsed > 0.0:
            return float(self._values_at(np.array([level]))[0])
        return float(value_at(self.row, level))

    def _values_at(self, levels: Floats) -> Floats:
        passed = self._passed() / self.count
        found = values_at(self.row, passed + (1.0 - passed) * levels)
        return np.where(levels < 1.0, np.maximum(found, self.elapsed), self.largest)

    def survival(self, values: ArrayLike) -> Floats:
        """Probability to exceed each of the values."""
        at = np.asarray(values, dtype=np.float64)
        above = (self.count - counts_up_to(self.row, at.ravel())) / self._left()
        return np.where(at < self.elapsed, 1.0, np.clip(above, 0.0, 1.0).reshape(at.shape))

    def cumulative(self, values: ArrayLike) -> Floats:
        """Probability to stay at or below each of the values."""
        at = np.asarray(values, dtype=np.float64)
        below = (counts_up_to(self.row, at.ravel()) - self._passed()) / self._left()
        return np.where(at < self.elapsed, 0.0, np.clip(below, 0.0, 1.0).reshape(at.shape))

    def expectation(self, function: Callable[[Floats], Floats]) -> float:
        """Expected value of a function of the quantity.

        Over the atoms, or by Gauss-Legendre quadrature between the bins: near where the function
        is smooth there.
        """
        if not self.merged:
            return float(self.counts @ function(self.centroids)) / self.count
        pieces = self.pieces()
        into = np.diff(pieces[:, PLACE])[:, np.newaxis] * SHARES
        density = pieces[:-1, SLOPE, np.newaxis] + 2.0 * pieces[:-1, BEND, np.newaxis] * into
        inner = function(pieces[:-1, PLACE, np.newaxis] + into) * density
        spread = float(np.diff(pieces[:, PLACE]) @ (inner @ SHARE_WEIGHTS))
        end = pieces[:-1, SURVIVAL] - np.diff(pieces[:, PLACE]) * (
            pieces[:-1, SLOPE] + pieces[:-1, BEND] * np.diff(pieces[:, PLACE])
        )
        jumps = np.maximum(np.concatenate(([1.0], end)) - pieces[:, SURVIVAL], 0.0)
        return spread + float(jumps @ function(pieces[:, PLACE]))

    def given(self, elapsed: float) -> Distribution:
        """The belief once the quantity exceeds ``elapsed``; a point there if nothing is left."""
        if elapsed <= self.elapsed or elapsed < self.smallest:
            return self
        if float(self.survival(elapsed)) <= 0.0:
            return Point(elapsed)
        if self.merged:
            return Histogram(self.row, elapsed)
        later = self.centroids > elapsed
        return _exact(self.centroids[later], self.counts[later], self.bins)

    def scaled(self, factor: float) -> Histogram:
        """The belief about ``factor`` times the quantity."""
        checked_factor(factor)
        row = self.row.copy()
        row[[SMALLEST, LARGEST]] *= factor
        row[CENTROIDS : CENTROIDS + int(row[USED])] *= factor
        return Histogram(row, self.elapsed * factor)

    def sample(self, random: np.random.Generator, size: int) -> Floats:
        """So many independent draws."""
        return self._values_at(random.random(size))


def _checked(values: Floats) -> Floats:
    if values.ndim != 1 or values.size == 0:
        raise ValueError("values must be one or more")
    if not np.all(np.isfinite(values)) or np.any(values < 0.0):
        raise ValueError("values must be finite and not negative")
    return values


def _exact(values: Floats, counts: Floats, bins: int) -> Histogram:
    row = np.zeros(histogram_columns(bins))
    for value, count in zip(values, counts, strict=True):
        insert(row, value, count)
    return Histogram(row)
