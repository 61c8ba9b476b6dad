"""Operations on distributions: atoms on nodes with the mean kept, sums, the largest of several."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from foresail.distributions.basic import SHARE_WEIGHTS, SHARES, Point, Uniform
from foresail.distributions.empirical import Empirical
from foresail.distributions.histogram import Histogram
from foresail.distributions.log_normal import LogNormal
from foresail.distributions.quantiles import Quantiles
from foresail.distributions.truncated_normal import TruncatedNormal
from foresail.kernels.compile import bare_kernel
from foresail.model.distribution import Distribution, Floats


def bin_onto_nodes(values: Floats, masses: Floats, nodes: Floats) -> Floats:
    """Share each atom between the two nodes around it so that its mean is kept.

    Parameters
    ----------
    values, masses
        Atoms, in ascending order.
    nodes
        Strictly ascending; the first is not above, the last not below any atom.

    Returns
    -------
    numpy.ndarray
        Mass of each node. The mean is that of the atoms; the variance grows by the mean over all
        atoms of (distance to the node below) times (distance to the node above).
    """
    binned = np.zeros(nodes.size)
    _add_atoms(values, masses, nodes, binned)
    return binned


@bare_kernel
def _add_atoms(values: Floats, masses: Floats, nodes: Floats, binned: Floats) -> None:
    upper = 0
    for i in range(values.size):
        while upper < nodes.size - 1 and nodes[upper] < values[i]:
            upper += 1
        if upper == 0 or nodes[upper] <= values[i]:
            binned[upper] += masses[i]
            continue
        gap = nodes[upper] - nodes[upper - 1]
        share = (values[i] - nodes[upper - 1]) / gap
        binned[upper] += share * masses[i]
        binned[upper - 1] += (1.0 - share) * masses[i]


_TAIL_LEVELS: Final = np.concatenate(
    (np.geomspace(1e-12, 1e-5, 8), 1.0 - np.geomspace(1e-4, 1e-12, 40))
)
Survival = Callable[[Floats], Floats]


class Atoms(NamedTuple):
    """Values, strictly ascending, and their probabilities."""

    values: Floats
    masses: Floats

    def mean(self) -> float:
        """Expected value."""
        return float(self.values @ self.masses)

    def as_empirical(self) -> Empirical:
        """The same as a distribution."""
        return Empirical(self.values, self.masses)


def node_levels(nodes: int) -> Floats:
    """Levels from 0 to 1 that lie the closer the nearer to an end.

    So many are (1 - cos) / 2 of equal steps; 48 more follow the tails down to 1e-12, most of them
    the upper one, which may be heavy.
    """
    even = 0.5 - 0.5 * np.cos(np.linspace(0.0, math.pi, nodes))
    return np.unique(np.concatenate((even, _TAIL_LEVELS)))


def exact_atoms(distribution: Distribution) -> Atoms | None:
    """The atoms of a discrete distribution; None if it is not one."""
    match distribution:
        case Point(value):
            return Atoms(np.array([float(value)]), np.ones(1))
        case Empirical():
            return joined(distribution.values, distribution.probabilities)
        case Histogram() if not distribution.merged:
            return Atoms(distribution.centroids, distribution.counts / distribution.count)
        case _:
            return None


def joined(values: Floats, masses: Floats) -> Atoms:
    """Atoms in ascending order, those of the same value as one."""
    order = np.argsort(values, kind="stable")  # quick on what comes in ascending runs
    ordered = values[order]
    first = np.flatnonzero(np.concatenate(([True], ordered[1:] > ordered[:-1])))
    return Atoms(ordered[first], np.add.reduceat(masses[order], first))


def breaks(distribution: Distribution) -> Floats:
    """Return where survival jumps or bends, as far as is known; may lie outside the range."""
    match distribution:
        case Point(value):
            return np.array([float(value)])
        case Empirical() | Quantiles():
            return distribution.values
        case Uniform(low, high):
            return np.array([low, high])
        case Histogram():
            return np.concatenate(
                ([distribution.smallest], distribution.centroids, [distribution.largest])
            )
        case LogNormal():
            return np.array([distribution.elapsed, distribution.cap])
        case TruncatedNormal():
            return np.array([distribution.low])
        case _:
            return np.empty(0)


def places_at(distribution: Distribution, levels: Floats) -> Floats:
    """The quantile at each of the levels."""
    return np.array([distribution.quantile(level) for level in levels])


def atoms_of(distribution: Distribution, nodes: int) -> Atoms:
    """The exact atoms of a discrete distribution, or atoms on nodes.

    The nodes are the places at ``node_levels(nodes)`` and the breaks. The mass between two nodes
    is shared so that its mean is kept; what lies beyond the last node of an unbounded distribution
    is put on its own mean.
    """
    exact = exact_atoms(distribution)
    if exact is not None:
        return exact
    places = places_at(distribution, node_levels(nodes))
    atoms = _atoms_on_nodes(distribution.survival, places, breaks(distribution))
    left = float(distribution.survival(atoms.values[-1]))
    if left <= 0.0:
        return atoms
    excess = distribution.mean() - atoms.mean()  # of what lies beyond the last node
    beyond = atoms.values[-1] + max(excess / left, 0.0)
    masses = atoms.masses.copy()
    masses[-1] = max(masses[-1] - left, 0.0)
    return joined(np.append(atoms.values, beyond), np.append(masses, left))


def _atoms_on_nodes(survival: Survival, places: Floats, further: Floats) -> Atoms:
    """Atoms on the finite places, and on further ones between them, all mass beyond on the last.

    The mass between two nodes is shared so that its mean is kept: by the average survival between
    them, which quadrature finds exactly where the survival is a polynomial.
    """
    places = places[np.isfinite(places)]
    inside = further[(further > places.min()) & (further < places.max())]
    at = np.unique(np.concatenate((places, inside)))
    gaps = np.diff(at)
    within = at[:-1, np.newaxis] + gaps[:, np.newaxis] * SHARES
    average = survival(within.ravel()).reshape(within.shape) @ SHARE_WEIGHTS
    masses = np.maximum(-np.diff(np.concatenate(([1.0], average, [0.0]))), 0.0)
    return Atoms(at, masses)


def _total_of(left: Atoms, right: Atoms) -> Atoms:
    """The sum of two independent discrete quantities, exactly."""
    values = np.add.outer(left.values, right.values).ravel()
    return joined(values, np.multiply.outer(left.masses, right.masses).ravel())


def reduced(atoms: Atoms, nodes: int) -> Atoms:
    """Fewer atoms, with the same mean: on their own quantiles at ``node_levels(nodes)``."""
    levels = node_levels(nodes)
    if atoms.values.size <= levels.size:
        return atoms
    reached = np.cumsum(atoms.masses)
    chosen = np.searchsorted(reached, levels * reached[-1])
    ends = (0, atoms.values.size - 1)
    places = np.unique(np.concatenate((np.minimum(chosen, ends[1]), ends)))
    at = np.ascontiguousarray(atoms.values[places])
    return Atoms(at, bin_onto_nodes(atoms.values, atoms.masses, at))


def _product_of(distributions: Sequence[Distribution]) -> Survival:
    """Survival of the largest of independent quantities, one of each distribution."""

    def survival(values: Floats) -> Floats:
        with np.errstate(divide="ignore"):  # surely exceeded: the logarithm is minus infinity
            logs = [np.log1p(-each.survival(values)) for each in distributions]
        return np.asarray(-np.expm1(np.sum(logs, axis=0)))

    return survival


NODES: Final = 129
"""Nodes per distribution that is not discrete."""
ATOMS: Final = 1025
"""Nodes of a result, unless it is the exact sum of few atoms."""
_EXACT: Final = 4096


def convolved(distributions: Sequence[Distribution], nodes: int = NODES) -> Empirical:
    """The sum of independent quantities.

    Exact for discrete distributions while the sum has no more than 4,096 atoms. Otherwise every
    distribution that is not discrete is first put on ``nodes`` of its quantiles, every part of the
    sum on twice as many of its own, and the result on ``ATOMS`` (48 further nodes each follow the
    tails). Each time the mean is kept and no probability moves further than to the next node, so
    that the variance of a bounded sum grows a little.

    Raises ``ValueError`` if there are no distributions or fewer than two nodes.
    """
    _check(distributions, nodes)
    total: Atoms | None = None
    for distribution in distributions:
        atoms = atoms_of(distribution, nodes)
        if total is None:
            total = atoms
        elif total.values.size * atoms.values.size <= _EXACT:
            total = _total_of(total, atoms)
        else:
            total = _total_of(reduced(total, 2 * nodes), reduced(atoms, ATOMS))
    if total is None:
        raise ValueError("distributions must be one or more")
    return (total if total.values.size <= _EXACT else reduced(total, ATOMS)).as_empirical()


def largest(distributions: Sequence[Distribution], nodes: int = NODES) -> Empirical:
    """The largest of independent quantities, one of each distribution.

    Exact for discrete distributions; otherwise on nodes, with the mean kept but for what lies
    beyond all but 1e-12 of an unbounded distribution.

    Raises ``ValueError`` if there are no distributions or fewer than two nodes.
    """
    _check(distributions, nodes)
    survival = _product_of(distributions)
    exact = [exact_atoms(distribution) for distribution in distributions]
    discrete = [atoms.values for atoms in exact if atoms is not None]
    if len(discrete) == len(distributions):
        values = np.unique(np.concatenate(discrete))
        masses = -np.diff(np.concatenate(([1.0], survival(values))))
        return joined(values, np.maximum(masses, 0.0)).as_empirical()
    lowest = max(distribution.quantile(0.0) for distribution in distributions)
    levels = node_levels(nodes)
    # Of many, the largest lies far up in each: where their product passes the same levels.
    levels = np.unique(np.concatenate((levels, levels ** (1.0 / len(distributions)))))
    found = np.concatenate([places_at(distribution, levels) for distribution in distributions])
    places = np.append(found[np.isfinite(found) & (found > lowest)], lowest)
    further = np.concatenate([breaks(distribution) for distribution in distributions])
    return reduced(_atoms_on_nodes(survival, places, further), ATOMS).as_empirical()


def _check(parts: Sequence[object], nodes: int) -> None:
    if not parts:
        raise ValueError("distributions must be one or more")
    if nodes < 2:
        raise ValueError("nodes must be 2 or more")
