"""Machines that are taken at random times, as the published experiment took them."""

from __future__ import annotations

import math

import numpy as np

from foresail.model.errors import InputError
from foresail_studies.transient.serving import TransientMachines


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

    Raises ``InputError`` if a number is not as above.
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
