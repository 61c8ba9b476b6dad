"""What a task uses of cpu and memory, on the steps that packing counts in."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.discretisation import Atoms, atoms_of
from foresail.distributions.kernels.convolution import bin_onto_nodes
from foresail.model.distribution import Distribution
from foresail.schedulers.kernels import packing as kernel

if TYPE_CHECKING:
    from foresail.schedulers._packing.use_by_age import UseByAge

NODES: Final = 17
_ROUNDING: Final = 1e-9


class TaskUse(NamedTuple):
    """A row of ``kernels.packing``'s tasks, and its masses, shape (resources, bins).

    Tasks of one ``kin`` have a common factor; None: what others use tells nothing of it. Where use
    by age counts, ``by_age`` tells what a task uses in parts of its life (None: always the same),
    and ``at_start`` what it uses at instants ahead of its start.
    """

    row: NDArray[np.float64]
    masses: NDArray[np.float64]
    kin: Hashable = None
    by_age: UseByAge | None = None
    at_start: Sequence[TaskUse] = ()

    @property
    def moments(self) -> Sequence[TaskUse]:
        """On average, and at instants ahead of its start."""
        return (self, *self.at_start)


def task_use(
    cpus: Distribution,
    memory_bytes: Distribution,
    cpu_request: float,
    steps: NDArray[np.float64],
    bins: int,
    common: tuple[float, float] = (0.0, 0.0),
    kin: Hashable = None,
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
    common
        Correlation of what two tasks of its kin use of cpu, and of memory.
    kin
        The tasks that it has that in common with.
    """
    use = TaskUse(np.zeros(kernel.TASK_COLUMNS), np.zeros((kernel.RESOURCES, bins)), kin)
    use.row[kernel.TASK_REQUEST] = cpu_request
    use.row[kernel.TASK_COMMON : kernel.TASK_COMMON + kernel.RESOURCES] = common
    for resource, belief in ((kernel.CPU, cpus), (kernel.MEMORY, memory_bytes)):
        believe(use, resource, belief, steps)
    return use


def believe(use: TaskUse, resource: int, belief: Distribution, steps: NDArray[np.float64]) -> None:
    """Let a belief about one resource take the place of what was believed before."""
    atoms = atoms_of(belief, NODES)
    believe_atoms(use, resource, atoms.values, atoms.masses, steps)


def believe_atoms(
    use: TaskUse,
    resource: int,
    amounts: NDArray[np.float64],
    probabilities: NDArray[np.float64],
    steps: NDArray[np.float64],
) -> None:
    """The same of a belief that is some amounts, in ascending order."""
    values = within(amounts, steps[resource], use.masses.shape[1])
    atoms, least = Atoms(values, probabilities), float(values[0])
    masses = masses_on_steps(atoms, least, steps[resource], use.masses.shape[1])
    use.masses[resource] = masses
    use.row[kernel.TASK_LEAST + resource] = least
    use.row[kernel.TASK_EXPECTED + resource] = atoms.mean()
    use.row[kernel.TASK_HIGHEST + resource] = np.flatnonzero(masses)[-1]


def within(amounts: NDArray[np.float64], step: float, bins: int) -> NDArray[np.float64]:
    """No more than all of the largest machine."""
    return np.minimum(amounts, (bins - 1) * step)


def masses_on_steps(atoms: Atoms, least: float, step: float, bins: int) -> NDArray[np.float64]:
    """The probability of each excess above an amount that is not above the least atom's.

    What is above the last step that the largest machine has room for counts as that.
    """
    room = math.floor(((bins - 1) * step - least) / step + _ROUNDING)
    nodes = np.arange(room + 1, dtype=np.float64)
    excess = np.minimum((atoms.values - least) / step, nodes[-1])
    masses = np.zeros(bins)
    masses[: nodes.size] = bin_onto_nodes(excess, atoms.masses, nodes)
    return masses
