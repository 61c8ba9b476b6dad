"""Beliefs about runtimes as curves over the slots of a plan, for all jobs at once."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from foresail.distributions.log_normal import LogNormal
from foresail.distributions.mixture import Mixture
from foresail.distributions.packed import PackedDistributions
from foresail.distributions.point import Point
from foresail.distributions.quantiles import Quantiles
from foresail.distributions.shifted import Shifted
from foresail.distributions.truncated_normal import TruncatedNormal
from foresail.model.arrays import Floats
from foresail.model.distribution import Distribution
from foresail.schedulers.kernels.belief_quantiles import fill_quantiles
from foresail.schedulers.kernels.limited_mean import fill_limited_means

_LEVELS: Final = np.concatenate((np.linspace(0.0, 0.98, 50), [0.99, 0.995, 0.999, 1.0]))
_NEARLY_ONE: Final = 0.9999
_GRACE_SECONDS: Final = 1e-6


def longest_seconds(belief: Distribution) -> float:
    """The longest runtime that is believed possible; of an endless belief, that of nearly all."""
    longest = belief.quantile(1.0)
    return longest if np.isfinite(longest) else belief.quantile(_NEARLY_ONE)


def in_pieces(belief: Distribution) -> Distribution:
    """The belief itself, or a smooth one as straight pieces between some fifty quantiles."""
    match belief:
        case LogNormal() | TruncatedNormal() | Mixture() | Shifted():
            values = [belief.quantile(float(level)) for level in _LEVELS[:-1]]
            return Quantiles(_LEVELS, [*values, max(longest_seconds(belief), values[-1])])
        case _:
            return belief


class RuntimeBeliefs:
    """The beliefs of some jobs, each about the runtime on the nodes it likes best."""

    def __init__(self, beliefs: Sequence[Distribution]) -> None:
        self._packed = PackedDistributions.of(list(beliefs))
        pieces = [in_pieces(belief) for belief in beliefs]
        unchanged = all(map(operator.is_, pieces, beliefs))
        self._pieces = self._packed if unchanged else PackedDistributions.of(pieces)

    def still_running(self, slowdown: float, offsets: Floats, elapsed: ArrayLike = 0.0) -> Floats:
        """Probability to run on so many seconds after the elapsed ones; shape (jobs, offsets).

        Zeros where nothing is left beyond the elapsed time.
        """
        since = np.broadcast_to(np.asarray(elapsed, np.float64), len(self._packed)) / slowdown
        return self._packed.survival_grid(since, offsets / slowdown)

    def done_by(self, slowdown: float, seconds: Floats, step: float, slots: int) -> Floats:
        """Probability of each to be done by a moment if it starts so many steps from now.

        Parameters
        ----------
        slowdown
            How many times longer the jobs run.
        seconds
            From now to each job's moment; shape (jobs,). A millionth of a second is given.
        step, slots
            Seconds between starts, and their number.

        Returns
        -------
        numpy.ndarray
            Shape (jobs, slots).
        """
        left = seconds + _GRACE_SECONDS
        last = np.clip(np.floor(left / step), -1, slots - 1).astype(np.int64)  # start in time
        shortest = np.maximum(left - last * step, 0.0) / slowdown
        offsets = np.arange(slots) * (step / slowdown)
        running = self._packed.survival_grid(shortest, offsets)
        running *= self._packed.left(shortest)[:, np.newaxis]
        place = last[:, np.newaxis] - np.arange(slots)
        late = np.take_along_axis(running, np.maximum(place, 0), axis=1)
        return np.where(place >= 0, 1.0 - late, 0.0)

    def limited_means(self, slowdown: float, bounds: Floats) -> Floats:
        """E[min(runtime, bound)] for each job's own bounds (seconds); shapes (jobs, n)."""
        means = np.empty(bounds.shape)
        packed = self._pieces
        fill_limited_means(
            packed.first_component,
            packed.first_row,
            packed.weights,
            packed.shifts,
            packed.rows,
            np.ascontiguousarray(bounds / slowdown),
            means,
        )
        return means * slowdown

    def quantiles(self, levels: Floats) -> Floats:
        """Each job's quantiles at its own levels; shapes (jobs, n)."""
        packed = self._pieces
        values = np.empty(levels.shape)
        fill_quantiles(
            packed.first_component,
            packed.first_row,
            packed.weights,
            packed.shifts,
            packed.rows,
            np.ascontiguousarray(levels),
            values,
        )
        return values


def as_point(belief: Distribution) -> Point:
    """The mean as if it were certain."""
    return Point(belief.mean())
