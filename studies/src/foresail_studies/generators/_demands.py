"""Demands of jobs beyond nodes: deadlines, their tightness, and preferred places."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from foresail.model.arrays import Booleans, Floats, Integers
from foresail.model.errors import InputError
from foresail.traces import schema

NODE_MEMORY_BYTES: Final = 16.0 * 2.0**30
_TRIES: Final = 50
_NEAR: Final = 0.002


def require_racks(nodes: int, racks: int) -> None:
    """Raise ``InputError`` unless every rack can have a node."""
    if not 1 <= racks <= nodes:
        raise InputError(
            "not that many racks", field="racks", value=racks, expected=f"1 to {nodes}"
        )


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


def rack_sizes(nodes: int, racks: int) -> Integers:
    """Nodes of each rack, as even as can be; shape (racks,)."""
    return np.full(racks, nodes // racks) + (np.arange(racks) < nodes % racks)


def rack_name(number: int) -> str:
    """Name of the rack (the partition) of this number, from 0."""
    return f"rack{number + 1}"


def rack_nodes(nodes: int, racks: int, gpu_racks: int = 0) -> pl.DataFrame:
    """The nodes table: a row a rack, which is a partition; the first ``gpu_racks`` have gpus.

    A node counts as one cpu, since gangs of these workloads hold whole nodes.
    """
    sizes = rack_sizes(nodes, racks)
    names = [rack_name(rack) for rack in range(racks)]
    table = pl.DataFrame(
        {
            "node": names,
            "partition": names,
            "count": sizes,
            "cpus": 1.0,
            "memory_bytes": NODE_MEMORY_BYTES,
            "gpus": np.arange(racks) < gpu_racks,
        }
    )
    return schema.laid_out(table, schema.NODES)


def preferred_racks(
    width: Integers, nodes: int, racks: int, chosen: int, random: np.random.Generator
) -> list[str | None]:
    """For each job, ``chosen`` racks drawn for it alone (3Sigma A-19); shape (jobs,).

    A job that its racks cannot hold prefers nothing: it could never run there.
    """
    sizes = rack_sizes(nodes, racks)
    if not 0 < chosen < racks:
        return [None] * width.size
    drawn = np.sort(np.argsort(random.random((width.size, racks)), axis=1)[:, :chosen], axis=1)
    fits = sizes[drawn].sum(axis=1) >= width
    return [
        "partition:" + ",".join(rack_name(rack) for rack in row) if fit else None
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
