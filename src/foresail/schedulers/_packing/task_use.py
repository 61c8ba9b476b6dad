"""What a task uses of cpu and memory, on the steps that packing counts in."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.discretisation import Atoms, atoms_of
from foresail.distributions.kernels.convolution import bin_onto_nodes
from foresail.model.distribution import Distribution
from foresail.schedulers.kernels import packing as kernel

_NODES: Final = 17
_ROUNDING: Final = 1e-9


class TaskUse(NamedTuple):
    """A row of ``kernels.packing``'s tasks, and its masses, shape (resources, bins)."""

    row: NDArray[np.float64]
    masses: NDArray[np.float64]


def task_use(
    cpus: Distribution,
    memory_bytes: Distribution,
    cpu_request: float,
    steps: NDArray[np.float64],
    bins: int,
) -> TaskUse:
    """What is believed of a task's use, each probability shared by the steps around its value.

    The expected use is kept, but for what lies beyond the largest machine: a task that runs at all
    uses no more than all of it. Otherwise one that may use so much would fit nowhere, ever.

    Parameters
    ----------
    cpus, memory_bytes
        Beliefs about its use.
    cpu_request
        What it asked for: shares of cpus are in proportion to it.
    steps
        Of cpus and of memory.
    bins
        How many steps an excess over the least use may have.
    """
    use = TaskUse(np.zeros(kernel.TASK_COLUMNS), np.zeros((kernel.RESOURCES, bins)))
    use.row[kernel.TASK_REQUEST] = cpu_request
    for resource, belief in ((kernel.CPU, cpus), (kernel.MEMORY, memory_bytes)):
        atoms = atoms_of(belief, _NODES)
        believe_atoms(use, resource, atoms.values, atoms.masses, steps)
    return use


def believe_atoms(
    use: TaskUse,
    resource: int,
    amounts: NDArray[np.float64],
    probabilities: NDArray[np.float64],
    steps: NDArray[np.float64],
) -> None:
    """Replace what is believed of one resource by some amounts, in ascending order."""
    values = np.minimum(amounts, (use.masses.shape[1] - 1) * steps[resource])
    atoms, least = Atoms(values, probabilities), float(values[0])
    masses = _masses_on_steps(atoms, least, steps[resource], use.masses.shape[1])
    use.masses[resource] = masses
    use.row[kernel.TASK_LEAST + resource] = least
    use.row[kernel.TASK_EXPECTED + resource] = atoms.mean()
    use.row[kernel.TASK_HIGHEST + resource] = np.flatnonzero(masses)[-1]


def _masses_on_steps(atoms: Atoms, least: float, step: float, bins: int) -> NDArray[np.float64]:
    """The probability of each excess above an amount that is not above the least atom's.

    What is above the last step that the largest machine has room for counts as that.
    """
    room = math.floor(((bins - 1) * step - least) / step + _ROUNDING)
    nodes = np.arange(room + 1, dtype=np.float64)
    excess = np.minimum((atoms.values - least) / step, nodes[-1])
    masses = np.zeros(bins)
    masses[: nodes.size] = bin_onto_nodes(excess, atoms.masses, nodes)
    return masses
