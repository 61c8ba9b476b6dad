"""Erlang's loss formula by its recurrence, elementwise over arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import bare_kernel


@bare_kernel
def erlang_b(
    servers: NDArray[np.int64], offered: NDArray[np.float64], lost: NDArray[np.float64]
) -> None:
    """Fill ``lost`` with the share of arrivals that find all ``servers`` busy and leave.

    ``offered`` is the arrival rate times the mean service time. Never by factorials.
    """
    for i in range(servers.size):
        share = 1.0
        for busy in range(1, servers[i] + 1):
            share = offered[i] * share / (busy + offered[i] * share)
        lost[i] = share
