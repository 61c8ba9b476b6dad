"""Sums of independent quantities: atoms onto nodes, and many probability rows on a slot grid."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import bare_kernel


def bin_onto_nodes(
    values: NDArray[np.float64], masses: NDArray[np.float64], nodes: NDArray[np.float64]
) -> NDArray[np.float64]:
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
def _add_atoms(
    values: NDArray[np.float64],
    masses: NDArray[np.float64],
    nodes: NDArray[np.float64],
    binned: NDArray[np.float64],
) -> None:
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


def convolve_rows(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of independent pairs whose probabilities are given on a grid of equal slots.

    Parameters
    ----------
    left, right
        Shapes (pairs, slots) and (pairs, other slots): probability of slot 0, 1, 2, ...

    Returns
    -------
    numpy.ndarray
        Shape (pairs, slots + other slots - 1).
    """
    total = np.zeros((left.shape[0], left.shape[1] + right.shape[1] - 1))
    _add_products(left, right, total)
    return total


@bare_kernel
def _add_products(
    left: NDArray[np.float64], right: NDArray[np.float64], total: NDArray[np.float64]
) -> None:
    for i in range(left.shape[0]):
        for j in range(left.shape[1]):
            mass = left[i, j]
            if mass == 0.0:
                continue
            for k in range(right.shape[1]):
                total[i, j + k] += mass * right[i, k]
