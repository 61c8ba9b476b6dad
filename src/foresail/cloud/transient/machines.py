"""Single machines and when they are gone: of a plan in a stretch of history, or at random."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.transient.estimating import require_markets
from foresail.cloud.transient.joint import JointHistory
from foresail.cloud.transient.plan import CapacityPlan
from foresail.model.errors import InputError


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


def taken_at_random(
    machines: int,
    *,
    revocations_per_minute: float,
    absent_seconds: float,
    seconds: float,
    random: np.random.Generator,
) -> TransientMachines:
    """Equal machines of capacity 1, one of which is taken at times that know of no other.

    There are ``revocations_per_minute`` of all machines together, in a stretch of so many seconds.
    Each machine is gone for ``absent_seconds``, and is not taken while it is.

    Raises
    ------
    InputError
        If a number is not as above.
    """
    if machines < 1:
        raise InputError("no number of machines", value=machines, expected="1 or more")
    for field, value in (
        ("revocations_per_minute", revocations_per_minute),
        ("absent_seconds", absent_seconds),
        ("seconds", seconds),
    ):
        if not 0.0 <= value < math.inf:
            raise InputError("cannot be", field=field, value=value, expected="0 or more")
    many = int(random.poisson(revocations_per_minute * seconds / 60.0))
    times = np.sort(random.uniform(0.0, seconds, many))
    taken = random.integers(0, machines, many)
    back = np.zeros(machines)
    kept = np.zeros(many, dtype=np.bool_)
    for i in range(many):
        if times[i] >= back[taken[i]]:
            kept[i] = True
            back[taken[i]] = times[i] + absent_seconds
    begin = times[kept]
    return TransientMachines(
        np.ones(machines),
        taken[kept].astype(np.int64),
        begin,
        np.minimum(begin + absent_seconds, seconds),
        seconds,
    )
