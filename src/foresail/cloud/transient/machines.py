"""Single machines and when they are gone: of a plan in a stretch of history, or at random."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.transient.estimating import require_markets
from foresail.cloud.transient.joint import JointHistory
from foresail.cloud.transient.plan import CapacityPlan


@dataclass(frozen=True)
class TransientMachines:
    """Machines over a stretch of time that begins at 0."""

    capacities: NDArray[np.float64]
    """Shape (machines,): of each."""
    machine: NDArray[np.int64]
    """Shape (outages,): which machine is gone."""
    begin: NDArray[np.float64]
    end: NDArray[np.float64]
    """Shape (outages,): from when until when (seconds); those of a machine do not overlap."""
    seconds: float
    """Length of the stretch."""


def machines_of(history: JointHistory, planned: CapacityPlan) -> TransientMachines:
    """The machines of a plan, gone whenever their market was down.

    Raises
    ------
    InputError
        If the history does not have a market of the plan.
    """
    require_markets(history, planned)
    edges = np.concatenate(([0.0], np.cumsum(history.seconds)))
    capacities: list[float] = []
    machine: list[int] = []
    begin: list[float] = []
    end: list[float] = []
    for each in planned.rented:
        up = history.up[:, history.names.index(each.type.name)]
        change = np.flatnonzero(np.diff(up, prepend=True, append=True))
        for _ in range(each.count):
            machine += [len(capacities)] * (change.size // 2)
            begin += edges[change[0::2]].tolist()
            end += edges[change[1::2]].tolist()
            capacities.append(each.type.capacity)
    return TransientMachines(
        np.array(capacities),
        np.array(machine, dtype=np.int64),
        np.array(begin),
        np.array(end),
        history.total_seconds,
    )
