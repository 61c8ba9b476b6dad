"""How the cluster was used and how long jobs waited, over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foresail.service.store.protocol import JobSpan


@dataclass(frozen=True, slots=True)
class UseOverTime:
    """Bins of equal length; arrays of shape (bins,)."""

    begin_seconds: float
    bin_seconds: float
    """Where the first one begins (Unix seconds), and how long each is."""
    used_cpus: NDArray[np.float64]
    """Held by jobs that ran, in the mean."""
    started: NDArray[np.int64]
    """How many jobs started."""
    wait_seconds: NDArray[np.float64]
    """How long these had waited, in the mean; NaN where none started."""


def use_over_time(
    spans: Sequence[JobSpan], begin_seconds: float, end_seconds: float, bins: int
) -> UseOverTime:
    """The use between two times by the jobs of these spans; of attempts, the last of each job."""
    length = (end_seconds - begin_seconds) / bins
    ran = [each for each in spans if each.start_seconds is not None]
    cpus = np.array([each.cpus for each in ran], dtype=np.float64)
    start = np.array([each.start_seconds for each in ran], dtype=np.float64)
    end = np.array(
        [end_seconds if each.end_seconds is None else each.end_seconds for each in ran],
        dtype=np.float64,
    )
    edges = begin_seconds + length * np.arange(bins + 1, dtype=np.float64)
    held = _held_before(edges, start, cpus) - _held_before(edges, end, cpus)
    waits = start - np.array([each.submit_seconds for each in ran], dtype=np.float64)
    started, _ = np.histogram(start, edges)
    waited, _ = np.histogram(start, edges, weights=waits)
    with np.errstate(invalid="ignore"):
        means = waited / started
    return UseOverTime(begin_seconds, length, np.diff(held) / length, started, means)


def _held_before(
    edges: NDArray[np.float64], since: NDArray[np.float64], cpus: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Cpu seconds up to each edge, were nothing given back; shape of the edges."""
    order = np.argsort(since)
    since, cpus = since[order], cpus[order]
    count = np.searchsorted(since, edges)
    total = np.concatenate(([0.0], np.cumsum(cpus)))[count]
    moment = np.concatenate(([0.0], np.cumsum(cpus * since)))[count]
    result: NDArray[np.float64] = total * edges - moment
    return result
