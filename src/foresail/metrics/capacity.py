"""Capacity that was there: the denominator of every share of the machine."""

from __future__ import annotations

import numpy as np

from foresail.model.arrays import Floats
from foresail.traces.schedule import ScheduleMeta


def capacity_steps(meta: ScheduleMeta) -> tuple[Floats, Floats, Floats]:
    """From when and until when (seconds) there were how many cpus, for all time, in order."""
    since, cpus = np.array([*meta.capacity] or [(0.0, meta.processors)], dtype=np.float64).T
    changes = since[1:]
    return np.append(-np.inf, changes), np.append(changes, np.inf), cpus


def cpu_seconds_there(meta: ScheduleMeta, begin_seconds: float, end_seconds: float) -> float:
    """Cpu seconds that there were from one time to another."""
    return cpu_seconds(*capacity_steps(meta), begin_seconds, end_seconds)


def cpu_seconds(
    since: Floats, until: Floats, cpus: Floats, begin_seconds: float, end_seconds: float
) -> float:
    """Cpu seconds of some stretches of time, each with so many cpus, that lie in a window."""
    window = (begin_seconds, end_seconds)
    return float(cpus @ (np.clip(until, *window) - np.clip(since, *window)))
