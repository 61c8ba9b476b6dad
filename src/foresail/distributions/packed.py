"""Many distributions in a few arrays, for kernels that evaluate all of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foresail.distributions.basic import Point, Shifted, Uniform
from foresail.distributions.empirical import Empirical
from foresail.distributions.histogram import Histogram
from foresail.distributions.kernels.survival_grid import (
    IN_PIECES,
    LOG_NORMAL,
    PIECE_COLUMNS,
    PLACE,
    SLOPE,
    SURVIVAL,
    TRUNCATED_NORMAL,
    fill_survival_grid,
    survival_left,
)
from foresail.distributions.log_normal import LogNormal
from foresail.distributions.mixture import Mixture
from foresail.distributions.quantiles import Quantiles
from foresail.distributions.summary import belief_row
from foresail.distributions.truncated_normal import TruncatedNormal
from foresail.kernels.columns import BELIEF_LEVELS
from foresail.model.arrays import Floats, Integers
from foresail.model.distribution import Distribution

_Arrays: TypeAlias = tuple[Integers, Integers, Integers, Floats, Floats, Floats]


@dataclass(frozen=True, slots=True)
class _Component:
    kind: int
    weight: float
    shift: float
    rows: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class PackedDistributions:
    """Distributions laid out for ``distributions.kernels.survival_grid``; made by ``of``."""

    first_component: NDArray[np.int64]
    kinds: NDArray[np.int64]
    first_row: NDArray[np.int64]
    weights: NDArray[np.float64]
    shifts: NDArray[np.float64]
    rows: NDArray[np.float64]

    @classmethod
    def of(cls, distributions: Sequence[Distribution]) -> PackedDistributions:
        """Pack distributions, each as it is (conditioned ones stay conditioned).

        A kind that Foresail does not know is packed by its belief row: the quantiles at
        ``BELIEF_LEVELS``, linear in between.

        Raises ``ValueError`` if an unknown kind has no finite largest value.
        """
        parts = [list(_components(distribution)) for distribution in distributions]
        components = [component for part in parts for component in part]
        packed = cls(
            _starts([len(part) for part in parts]),
            np.array([component.kind for component in components], dtype=np.int64),
            _starts([component.rows.shape[0] for component in components]),
            np.array([component.weight for component in components]),
            np.array([component.shift for component in components]),
            np.concatenate([np.empty((0, PIECE_COLUMNS)), *(each.rows for each in components)]),
        )
        for array in packed._arrays():
            array.flags.writeable = False
        return packed

    def __len__(self) -> int:
        return self.first_component.size - 1

    def survival_grid(self, elapsed: ArrayLike, offsets: ArrayLike) -> NDArray[np.float64]:
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
            fill_survival_grid(*self._arrays(), since, grid, self._left(since), survival)
        return survival

    def left(self, elapsed: ArrayLike) -> NDArray[np.float64]:
        """Probability of each distribution to exceed its elapsed time (1 where that is 0).

        Raises ``ValueError`` if the elapsed times are not one per distribution, finite and not
        negative.
        """
        return self._left(self._checked(elapsed))

    def _left(self, elapsed: NDArray[np.float64]) -> NDArray[np.float64]:
        left = np.empty(len(self))
        survival_left(*self._arrays(), elapsed, left)
        return left

    def _checked(self, elapsed: ArrayLike) -> NDArray[np.float64]:
        since = np.ascontiguousarray(elapsed, dtype=np.float64)
        if since.shape != (len(self),):
            raise ValueError("elapsed must be one per distribution")
        if not np.all(np.isfinite(since) & (since >= 0.0)):
            raise ValueError("elapsed must be finite and not negative")
        return since

    def _arrays(self) -> _Arrays:
        return (
            self.first_component,
            self.kinds,
            self.first_row,
            self.weights,
            self.shifts,
            self.rows,
        )


def _starts(lengths: Sequence[int]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))).astype(np.int64)


def _components(
    distribution: Distribution, weight: float = 1.0, shift: float = 0.0
) -> Iterator[_Component]:
    match distribution:
        case Mixture():
            for each, share in zip(distribution.components, distribution.weights, strict=True):
                yield from _components(each, weight * float(share), shift)
        case Shifted(inner, amount):
            yield from _components(inner, weight, shift + amount)
        case LogNormal(mu, sigma, cap, elapsed):
            yield _Component(LOG_NORMAL, weight, shift, np.array([[mu, sigma, cap, elapsed]]))
        case TruncatedNormal(mu, sigma, low):
            yield _Component(TRUNCATED_NORMAL, weight, shift, np.array([[mu, sigma, low, 0.0]]))
        case _:
            yield _Component(IN_PIECES, weight, shift, _pieces(distribution))


def _pieces(distribution: Distribution) -> NDArray[np.float64]:
    match distribution:
        case Point(value):
            return np.array([[value, 0.0, 0.0, 0.0]])
        case Empirical():
            pieces = np.zeros((distribution.values.size, PIECE_COLUMNS))
            pieces[:, PLACE] = distribution.values
            pieces[:, SURVIVAL] = 1.0 - distribution.reached
            return pieces
        case Uniform(low, high):
            return _between(np.array([0.0, 1.0]), np.array([low, high]))
        case Quantiles():
            return _between(distribution.levels, distribution.values)
        case Histogram():
            return distribution.pieces()
        case _:
            return _between(np.array(BELIEF_LEVELS), belief_row(distribution))


def _between(levels: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    if not np.all(np.isfinite(values)):
        raise ValueError("a distribution of an unknown kind must have a finite largest value")
    pieces = np.zeros((values.size, PIECE_COLUMNS))
    pieces[:, PLACE] = values
    pieces[:, SURVIVAL] = 1.0 - levels
    width = np.diff(values)
    rise = np.flatnonzero(width > 0.0)
    pieces[rise, SLOPE] = np.diff(levels)[rise] / width[rise]
    return pieces
