"""Common factor of runtimes: what is wrong for many jobs in flight at once, and how much it is.

The place that each job's runtime takes within its belief, as a normal number, is a sum of what is
drawn for everybody, for the user, for the application (or else the request), for that and the
cpus, and for the job alone (a nested Gaussian copula). The shares come from jobs that were in
flight together: what they have in common is of a session, and does not become less with the
number of jobs that a user has ever run.
"""

from __future__ import annotations

import math
import zlib
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.model.distribution import Booleans, Floats, Integers

PRIOR: Final = (0.06, 0.35, 0.5, 0.6)
"""Shares of the variance that jobs of one group have in common, from everybody to the narrowest."""

_PRIOR_JOBS: Final = 50.0
_MOST_COUNTED: Final = 400.0
_LARGEST: Final = 0.99
_REMEMBERED: Final = 4_000
_FURTHEST: Final = 2.8
"""Standard deviations: a runtime further out in its belief teaches no more than one there."""

_GRID: Final = np.linspace(-6.0, 6.0, 3_001)
_BELOW: Final = np.array([0.5 * math.erfc(-each / math.sqrt(2.0)) for each in _GRID.tolist()])
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIERS: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS: Final = (np.uint64(30), np.uint64(27), np.uint64(31))
_UNIT: Final = 2.0**-53


def normal_levels(values: Floats) -> Floats:
    """Probability of a standard normal number to stay below each of the values."""
    return np.asarray(np.interp(values, _GRID, _BELOW))


def normal_value(level: float) -> float:
    """Return the standard normal number at a level, at most so far out as one that teaches."""
    return min(max(float(np.interp(level, _BELOW, _GRID)), -_FURTHEST), _FURTHEST)


def keys_of(names: Iterable[Hashable]) -> NDArray[np.uint64]:
    """Return keys that depend on nothing but each name."""
    return np.array([zlib.crc32(repr(each).encode()) for each in names], dtype=np.uint64)


def normal_draws(keys: NDArray[np.uint64], count: int, seed: int) -> Floats:
    """Independent standard normal numbers, a column for each key.

    They depend on the seed and the key: equal whatever other keys there are.

    Returns
    -------
    numpy.ndarray
        Shape (count, keys).
    """
    first = _mixed(keys + (np.uint64(seed) << np.uint64(32)))
    numbers = np.arange(2 * count, dtype=np.uint64).reshape(2, count, 1)
    uniform = (_mixed(first + numbers * _GOLDEN) >> np.uint64(11)) * _UNIT
    radius = np.sqrt(-2.0 * np.log1p(-uniform[0]))
    result: Floats = radius * np.cos(2.0 * math.pi * uniform[1])
    return result


def _mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers in which every bit depends on every bit of the key (splitmix64)."""
    mixed = keys + _GOLDEN
    for shift, multiplier in zip(_SHIFTS, _MULTIPLIERS, strict=False):
        mixed = (mixed ^ (mixed >> shift)) * multiplier
    return mixed ^ (mixed >> _SHIFTS[-1])


def drawn_levels(
    keys: NDArray[np.uint64],
    kinds: Integers,
    groups: Sequence[Sequence[Hashable]],
    shares: Floats,
    count: int,
    seed: int,
) -> Floats:
    """Levels of jobs within their beliefs, uniform each, with what they have in common.

    Jobs have a key and the number of a kind. Groups are those of each kind from the widest on, and
    shares those of the variance, shape (kinds, groups). Returns shape (count, jobs).
    """
    values = normal_draws(keys, count, seed)
    values *= np.sqrt(1.0 - shares[kinds, -1])
    weights = np.sqrt(np.diff(shares, axis=1, prepend=0.0))
    for level, of_kinds in enumerate(zip(*groups, strict=True)):
        numbers: dict[Hashable, int] = {}
        which = np.array([numbers.setdefault(each, len(numbers)) for each in of_kinds], np.int64)
        common = normal_draws(keys_of((level, each) for each in numbers), count, seed)
        values += weights[kinds, level] * common[:, which[kinds]]
    return normal_levels(values)


class CommonFactor:
    """Learns how much jobs of a group have in common from those that have ended."""

    def __init__(self) -> None:
        self.shares: tuple[float, ...] = PRIOR
        self._numbers: list[dict[Hashable, int]] = [{} for _ in PRIOR]
        self._ended: deque[tuple[float, ...]] = deque(maxlen=_REMEMBERED)

    def observe(
        self, groups: Sequence[Hashable], submit_seconds: float, end_seconds: float, value: float
    ) -> None:
        """A job of these groups, from the widest on, has ended at this place of its belief."""
        numbers = [
            known.setdefault(group, len(known))
            for known, group in zip(self._numbers, groups, strict=True)
        ]
        self._ended.append((submit_seconds, end_seconds, value, *numbers))

    def update(self) -> None:
        """Estimate the shares anew, from the latest jobs."""
        if not self._ended:
            return
        table = np.array(self._ended)
        submit, end, value = table[:, :3].T
        variance = max(float(np.mean(value**2)), 1e-9)
        shares: list[float] = []
        for prior, numbers in zip(PRIOR, table[:, 3:].T, strict=True):
            means, known = companions(numbers, submit, end, value)
            products = value[known] * means[known]
            count = min(float(products.size), _MOST_COUNTED)
            found = float(products.mean()) / variance if products.size else 0.0
            share = (_PRIOR_JOBS * prior + count * found) / (_PRIOR_JOBS + count)
            shares.append(min(max(share, 0.0, *shares), _LARGEST))
        self.shares = tuple(shares)


def companions(
    groups: Floats, submit: Floats, end: Floats, value: Floats
) -> tuple[Floats, Booleans]:
    """Mean value of the jobs of the same group that were in flight when each was submitted.

    In flight are those submitted before, and not ended by then. Returned is too, of which jobs
    there is a mean.
    """
    jobs = value.size
    is_end = np.repeat((0, 1), jobs)
    # Of what happens at once, submissions come last: who has ended by then is none.
    order = np.lexsort((1 - is_end, np.concatenate((submit, end)), np.tile(groups, 2)))
    signs = np.where(is_end == 0, 1.0, -1.0)
    sums = np.zeros(2 * jobs)
    counts = np.zeros(2 * jobs)
    sums[order] = np.cumsum((signs * np.tile(value, 2))[order])
    counts[order] = np.cumsum(signs[order])
    means, counts = sums[:jobs] - value, counts[:jobs] - 1.0
    known = counts > 0.5
    return np.where(known, means / np.maximum(counts, 1.0), 0.0), known
