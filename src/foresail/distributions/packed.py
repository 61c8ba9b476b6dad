"""Many distributions in a few arrays, for kernels that evaluate all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from foresail.distributions.basic import Point, Uniform
from foresail.distributions.empirical import Empirical
from foresail.distributions.histogram import Histogram
from foresail.distributions.kernels import survival_grid as grids
from foresail.distributions.log_normal import LogNormal
from foresail.distributions.quantiles import Quantiles
from foresail.distributions.summary import belief_row
from foresail.distributions.truncated_normal import TruncatedNormal
from foresail.kernels.columns import BELIEF_LEVELS
from foresail.model.distribution import Distribution, Floats, Integers


@dataclass(frozen=True, slots=True, eq=False)
class PackedDistributions:
    """Distributions laid out for ``distributions.kernels.survival_grid``; made by ``of``."""

    kinds: Integers
    first_row: Integers
    rows: Floats

    @classmethod
    def pack(cls, distributions: Sequence[Distribution]) -> PackedDistributions:
        """Pack distributions, each as it is (conditioned ones stay conditioned).

        A kind that Foresail does not know is packed by its belief row: the quantiles at
        ``BELIEF_LEVELS``, linear in between.

        Raises ``ValueError`` if an unknown kind has no finite largest value.
        """
        parts = [_packed(distribution) for distribution in distributions]
        ends = np.cumsum([len(rows) for _, rows in parts], dtype=np.int64)
        packed = cls(
            np.array([kind for kind, _ in parts], dtype=np.int64),
            np.concatenate(([0], ends)).astype(np.int64),
            np.concatenate([np.empty((0, grids.PIECE_COLUMNS)), *(rows for _, rows in parts)]),
        )
        for array in packed._arrays():
            array.flags.writeable = False
        return packed

    def __len__(self) -> int:
        return self.kinds.size

    def survival_grid(self, elapsed: ArrayLike, offsets: ArrayLike) -> Floats:
        """P(T > elapsed + offset | T > elapsed) of each distribution at each offset.

        The consumption of running jobs on a slot grid (3Sigma equation 4.3), and with no elapsed
        time that of jobs that start at the first slot.

        Raises ``ValueError`` if the elapsed times or offsets are not as above.

        Parameters
        ----------
        elapsed
            Seconds, one per distribution; 0 conditions on nothing.
        offsets
            Seconds, ascending and not negative.

        Returns
        -------
        numpy.ndarray
            Shape (distributions, offsets). A row of zeros where nothing is left beyond the elapsed
            time (``left`` is 0 there).
        """
        since = self._checked(elapsed)
        grid = np.ascontiguousarray(offsets, dtype=np.float64)
        if grid.ndim != 1 or np.any(np.diff(grid) < 0.0) or not np.all(grid >= 0.0):
            raise ValueError("offsets must ascend and must not be negative")
        survival = np.empty((len(self), grid.size))
        if grid.size:
            grids.fill_survival_grid(*self._arrays(), since, grid, self._left(since), survival)
        return survival

    def left(self, elapsed: ArrayLike) -> Floats:
        """Probability of each distribution to exceed its elapsed time (1 where that is 0).

        Raises ``ValueError`` if the elapsed times are not one per distribution, finite and not
        negative.
        """
        return self._left(self._checked(elapsed))

    def limited_means(self, bounds: Floats) -> Floats:
        """E[min(T, bound)] for the own bounds of each distribution (none of a smooth kind).

        Shapes (distributions, n).
        """
        means = np.empty(bounds.shape)
        grids.fill_limited_means(self.first_row, self.rows, np.ascontiguousarray(bounds), means)
        return means

    def quantiles(self, levels: Floats) -> Floats:
        """The quantiles at the own levels of each distribution (none of a smooth kind).

        Shapes (distributions, n).
        """
        values = np.empty(levels.shape)
        grids.fill_quantiles(self.first_row, self.rows, np.ascontiguousarray(levels), values)
        return values

    def _left(self, elapsed: Floats) -> Floats:
        left = np.empty(len(self))
        grids.survival_left(*self._arrays(), elapsed, left)
        return left

    def _checked(self, elapsed: ArrayLike) -> Floats:
        since = np.ascontiguousarray(elapsed, dtype=np.float64)
        if since.shape != (len(self),):
            raise ValueError("elapsed must be one per distribution")
        if not np.all(np.isfinite(since) & (since >= 0.0)):
            raise ValueError("elapsed must be finite and not negative")
        return since

    def _arrays(self) -> tuple[Integers, Integers, Floats]:
        return self.kinds, self.first_row, self.rows


def _packed(distribution: Distribution) -> tuple[int, Floats]:
    """The kind of a distribution, and its rows."""
    match distribution:
        case LogNormal(mu, sigma, cap, elapsed):
            return grids.LOG_NORMAL, np.array([[mu, sigma, cap, elapsed]])
        case TruncatedNormal(mu, sigma, low):
            return grids.TRUNCATED_NORMAL, np.array([[mu, sigma, low, 0.0]])
        case _:
            return grids.IN_PIECES, _pieces(distribution)


def _pieces(distribution: Distribution) -> Floats:
    match distribution:
        case Point(value):
            return np.array([[value, 0.0, 0.0, 0.0]])
        case Empirical():
            pieces = np.zeros((distribution.values.size, grids.PIECE_COLUMNS))
            pieces[:, grids.PLACE] = distribution.values
            pieces[:, grids.SURVIVAL] = 1.0 - distribution.reached
            return pieces
        case Uniform(low, high):
            return _between(np.array([0.0, 1.0]), np.array([low, high]))
        case Quantiles():
            return _between(distribution.levels, distribution.values)
        case Histogram():
            return distribution.pieces()
        case _:
            return _between(np.array(BELIEF_LEVELS), belief_row(distribution))


def _between(levels: Floats, values: Floats) -> Floats:
    if not np.all(np.isfinite(values)):
        raise ValueError("a distribution of an unknown kind must have a finite largest value")
    pieces = np.zeros((values.size, grids.PIECE_COLUMNS))
    pieces[:, grids.PLACE] = values
    pieces[:, grids.SURVIVAL] = 1.0 - levels
    width = np.diff(values)
    rise = np.flatnonzero(width > 0.0)
    pieces[rise, grids.SLOPE] = np.diff(levels)[rise] / width[rise]
    return pieces
