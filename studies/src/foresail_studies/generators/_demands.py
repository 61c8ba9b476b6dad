"""Arrivals, deadlines and preferred places of generated jobs, and the load and mix reached."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.model.distribution import Booleans, Floats, Integers
from foresail.traces import schema
from foresail.traces.facts import offered_load
from foresail.traces.generating import ACHIEVED

NODE_MEMORY_BYTES: Final = 16.0 * 2.0**30
RACKS: Final = 8
"""Racks of a machine, as a rule; they are its partitions."""
_TRIES: Final = 50
_NEAR: Final = 0.002


def split_by_load(work: Floats, share: float, random: np.random.Generator) -> Booleans:
    """Return which jobs belong to the part that does this share of the work; shape (jobs,).

    Jobs are taken in random order until the share is reached; of some such orders, the first one
    that comes within 0.2 % of all work is taken, or else the nearest.
    """
    chosen = np.zeros(work.size, dtype=np.bool_)
    total, nearest = float(work.sum()), np.inf
    for _ in range(_TRIES):
        order = random.permutation(work.size)
        sums = np.concatenate(([0.0], np.cumsum(work[order])))
        count = int(np.argmin(np.abs(sums - share * total)))
        distance = abs(sums[count] / total - share)
        if distance < nearest:
            nearest = distance
            chosen = np.zeros(work.size, dtype=np.bool_)
            chosen[order[:count]] = True
        if nearest <= _NEAR:
            break
    return chosen


def draw_slacks(percents: tuple[float, ...], count: int, random: np.random.Generator) -> Floats:
    """Slacks as fractions of the runtime, each of the percentages as likely; shape (count,)."""
    drawn: Floats = np.array(percents)[random.integers(0, len(percents), count)] / 100.0
    return drawn


def rack_sizes(nodes: int, racks: int = RACKS) -> Integers:
    """Nodes of each rack, as even as can be; shape (racks,)."""
    return np.full(racks, nodes // racks) + (np.arange(racks) < nodes % racks)


def rack_nodes(nodes: int, racks: int = RACKS, gpu_racks: int = 0) -> pl.DataFrame:
    """The nodes table: a row a rack, which is a partition; the first ``gpu_racks`` have gpus.

    A node counts as one cpu, since gangs of these workloads hold whole nodes.
    """
    names = [f"rack{rack + 1}" for rack in range(racks)]
    table = pl.DataFrame(
        {
            "node": names,
            "partition": names,
            "count": rack_sizes(nodes, racks),
            "cpus": 1.0,
            "memory_bytes": NODE_MEMORY_BYTES,
            "gpus": np.arange(racks) < gpu_racks,
        }
    )
    return schema.laid_out(table, schema.NODES)


def preferred_racks(
    width: Integers, nodes: int, random: np.random.Generator, racks: int = RACKS
) -> list[str | None]:
    """For each job, three in four racks, drawn for it alone (3Sigma A-19); shape (jobs,).

    A job that its racks cannot hold prefers nothing: it could never run there.
    """
    chosen = racks * 3 // 4
    if not chosen:
        return [None] * width.size
    drawn = np.sort(np.argsort(random.random((width.size, racks)), axis=1)[:, :chosen], axis=1)
    fits = rack_sizes(nodes, racks)[drawn].sum(axis=1) >= width
    return [
        "partition:" + ",".join(f"rack{rack + 1}" for rack in row) if fit else None
        for row, fit in zip(drawn.tolist(), fits.tolist(), strict=True)
    ]


def demands(
    deadline: Floats, slo: Booleans, preferred: list[str | None], slowdown_elsewhere: float
) -> dict[str, pl.Series]:
    """Columns: deadlines of the SLO jobs, where jobs run best, and how long elsewhere."""
    slowdown = [None if where is None else slowdown_elsewhere for where in preferred]
    return {
        "deadline_seconds": pl.Series(np.where(slo, deadline, np.nan)).fill_nan(None),
        "preferred": pl.Series(preferred, dtype=pl.String),
        "slowdown_elsewhere": pl.Series(slowdown, dtype=pl.Float64),
    }


def balanced_hyperexponential(variability: float) -> tuple[float, float, float]:
    """Two-phase hyperexponential distribution of mean 1 with balanced means (3Sigma A-18).

    Of a squared coefficient of variation of at least 1: the probability of the first phase, and the
    rates of both.
    """
    first = (1.0 + math.sqrt((variability - 1.0) / (variability + 1.0))) / 2.0
    return first, 2.0 * first, 2.0 * (1.0 - first)


def draw_gaps(count: int, variability: float, random: np.random.Generator) -> Floats:
    """Gaps of mean 1; shape (count,)."""
    first, fast, slow = balanced_hyperexponential(variability)
    rate = np.where(random.random(count) < first, fast, slow)
    gaps: Floats = random.standard_exponential(count) / rate
    return gaps


def draw_arrivals(
    count: int, seconds: float, variability: float, random: np.random.Generator
) -> Floats:
    """Arrival times: the first at second zero, the last at ``seconds``; shape (count,).

    All gaps are stretched alike, which leaves their variability as it is.
    """
    times = np.concatenate(([0.0], np.cumsum(draw_gaps(max(count - 1, 0), variability, random))))
    return times[:count] * (seconds / times[-1] if count > 1 else 0.0)


def variability_of(times: Floats) -> float:
    """Squared coefficient of variation of the gaps between arrivals; 0 for fewer than three."""
    gaps = np.diff(times)
    if gaps.size < 2 or not gaps.any():
        return 0.0
    return float(gaps.var() / gaps.mean() ** 2)


def of_classes(
    submit: Floats,
    runtime: Floats,
    width: NDArray[np.int64],
    slo: NDArray[np.bool_],
    nodes: int,
    seconds: float,
) -> dict[str, str]:
    """Load and mix of SLO and best-effort jobs, arrivals and mean sizes."""
    return achieved(
        hours=seconds / 3600.0,
        load=offered_load(width, runtime, nodes, seconds),
        slo_load=offered_load(width[slo], runtime[slo], nodes, seconds),
        best_effort_load=offered_load(width[~slo], runtime[~slo], nodes, seconds),
        slo_jobs=float(slo.sum()),
        best_effort_jobs=float((~slo).sum()),
        arrival_variability=variability_of(submit),
        tasks_per_job=float(width.mean()),
        machine_hours_per_job=float(np.mean(width * runtime)) / 3600.0,
    )


def deadline_seconds(submit_seconds: Floats, runtime_seconds: Floats, slack: Floats) -> Floats:
    """Deadlines, where ``slack`` is the share of the runtime that a job may wait; shape (jobs,).

    3Sigma's slack of 60 % is 0.6 here, DistSched's slack of 1.2 (deadline minus submission over
    runtime) is 0.2.
    """
    return submit_seconds + runtime_seconds * (1.0 + slack)


def achieved(**figures: float) -> dict[str, str]:
    """Header facts from figures."""
    return {ACHIEVED + name: f"{value:.7g}" for name, value in figures.items()}
