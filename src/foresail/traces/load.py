"""Offered load: what jobs ask of a machine over a length of time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foresail.model.arrays import Floats


def offered_load(
    width: Floats | NDArray[np.int64], runtime_seconds: Floats, capacity: float, seconds: float
) -> float:
    """Work of all jobs over what the machine can do in that time (3Sigma section 6.3).

    Widths and the capacity are nodes, or cpus; shapes are (jobs,).
    """
    return float(np.sum(width * runtime_seconds)) / (capacity * seconds)


def deadline_seconds(submit_seconds: Floats, runtime_seconds: Floats, slack: Floats) -> Floats:
    """Deadlines, where ``slack`` is the share of the runtime that a job may wait; shape (jobs,).

    3Sigma's slack of 60 % is 0.6 here, DistSched's slack of 1.2 (deadline minus submission over
    runtime) is 0.2.
    """
    return submit_seconds + runtime_seconds * (1.0 + slack)
