"""Sums of independent quantities: their atoms onto fewer nodes."""

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
