"""Operations on several distributions: their sum, and the largest of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from foresail.distributions.discretisation import (
    Atoms,
    atoms_of,
    atoms_on_nodes,
    breaks,
    exact_atoms,
    joined,
    node_levels,
    places_at,
    product_of,
    reduced,
    total_of,
)
from foresail.distributions.empirical import Empirical
from foresail.model.distribution import Distribution

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

    Raises
    ------
    ValueError
        If there are no distributions or fewer than two nodes.
    """
    _check(distributions, nodes)
    total: Atoms | None = None
    for distribution in distributions:
        atoms = atoms_of(distribution, nodes)
        if total is None:
            total = atoms
        elif total.values.size * atoms.values.size <= _EXACT:
            total = total_of(total, atoms)
        else:
            total = total_of(reduced(total, 2 * nodes), reduced(atoms, ATOMS))
    if total is None:
        raise ValueError("distributions must be one or more")
    return (total if total.values.size <= _EXACT else reduced(total, ATOMS)).as_empirical()


def largest(distributions: Sequence[Distribution], nodes: int = NODES) -> Empirical:
    """The largest of independent quantities, one of each distribution.

    Exact for discrete distributions; otherwise on nodes, with the mean kept but for what lies
    beyond all but 1e-12 of an unbounded distribution.

    Raises
    ------
    ValueError
        If there are no distributions or fewer than two nodes.
    """
    _check(distributions, nodes)
    survival = product_of(distributions)
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
    return reduced(atoms_on_nodes(survival, places, further), ATOMS).as_empirical()


def _check(parts: Sequence[object], nodes: int) -> None:
    if not parts:
        raise ValueError("distributions must be one or more")
    if nodes < 2:
        raise ValueError("nodes must be 2 or more")
