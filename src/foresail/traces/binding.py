"""Which resource a machine runs out of: processors, or what their number says nothing of."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.model.errors import InputError
from foresail.model.words import count
from foresail.traces.workload import Workload

_REQUESTED = {
    "cpus": "cpus_per_task",
    "memory_bytes": "memory_bytes_per_task",
    "gpus": "gpus_per_task",
}
"""Column of the nodes table, and of the jobs table."""

_FILTERS = "--filter replayable --filter"
"""Filters that are asked for stand in place of the usual one."""


def shares_of_nodes(workload: Workload) -> Mapping[str, NDArray[np.float64]]:
    """Of each resource that the nodes have: the share of all of it that each job asks for.

    Shape (jobs,) each; by column of the nodes table, and empty where there is no such table.
    """
    if workload.nodes is None:
        return {}
    have = workload.nodes.select(
        (pl.col(name) * pl.col("count").fill_null(1)).sum() for name in _REQUESTED
    ).row(0, named=True)
    asked = workload.jobs.select(
        (pl.col("tasks") * pl.col(column)).fill_null(0.0).alias(name)
        for name, column in _REQUESTED.items()
    )
    return {name: asked[name].to_numpy() / total for name, total in have.items() if total}


def require_processors_bind(workload: Workload) -> None:
    """Refuse jobs that a pool of processors would run as if they asked for these alone.

    Such are jobs that ask for gpus, unless all jobs ask for as many processors (the pool is then
    one of gpus), and those whose memory is, over time, a larger share of what the nodes have
    than their processors are. Without a nodes table nothing is known of memory
    (``memory_left_out``).

    Raises
    ------
    InputError
        With the ways out.
    """
    jobs = workload.jobs
    gpus = pl.col("gpus_per_task").fill_null(0.0)
    some = jobs.filter(pl.col("tasks") > 0)
    asking = some.filter(gpus > 0.0)
    if asking.height and some.filter(gpus != pl.col("cpus_per_task")).height:
        _refuse(workload, asking.height, "gpus", "gpus_per_task", "drop_gpus")
    shares = shares_of_nodes(workload)
    if "memory_bytes" in shares and "cpus" in shares:
        lasting = np.nan_to_num(workload.runtime_seconds)
        memory, cpus = (float(shares[name] @ lasting) for name in ("memory_bytes", "cpus"))
        if memory > cpus:
            many = int((shares["memory_bytes"] > shares["cpus"]).sum())
            _refuse(workload, many, "more memory than processors", "memory_bytes_per_task", "")


def memory_left_out(workload: Workload) -> str | None:
    """What people should know of memory that jobs ask for where nobody knows how much there is.

    None where it is known, or no job asks for any.
    """
    asking = workload.jobs.filter(pl.col("memory_bytes_per_task") > 0.0).height
    if not asking or "memory_bytes" in shares_of_nodes(workload):
        return None
    return (
        f"{asking:,} of {count(len(workload), 'job')} ask for memory, which is not counted: "
        "the log does not say how much there is"
    )


def _refuse(workload: Workload, jobs: int, what: str, field: str, without: str) -> None:
    ways = [f"a filter that drops them ({_FILTERS} {without})"] if without else []
    if workload.nodes is not None:
        ways = [
            "--on-nodes (the log says which nodes there are)",
            f"what counts each job by what it asks most of ({_FILTERS} dominant_resource)",
            *ways,
        ]
    raise InputError(
        f"{jobs:,} of {len(workload):,} jobs ask for {what}, and a pool of processors knows only "
        "these",
        source=workload.meta.source,
        field=field,
        expected=", or ".join(ways),
    )
