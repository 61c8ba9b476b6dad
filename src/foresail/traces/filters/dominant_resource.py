"""Filter ``dominant_resource``."""

from __future__ import annotations

import numpy as np
import polars as pl

from foresail.model.errors import InputError
from foresail.model.registry import register
from foresail.traces.binding import shares_of_nodes
from foresail.traces.filtering import change, plain
from foresail.traces.workload import Workload


@register("filter", "dominant_resource")
@plain
def dominant_resource(workload: Workload) -> tuple[Workload, int]:
    """Count jobs that ask for gpus or memory by that of which they ask for the largest share.

    A job that asks for a hundredth of all gpus of the nodes, and for less of their cpus and memory,
    gets a hundredth of the processors: so a pool of these is as full as the machine would be. Its
    gpus and memory are unknown afterwards.
    """
    memory, gpus = pl.col("memory_bytes_per_task"), pl.col("gpus_per_task")
    counted_anew = (memory.fill_null(0.0) > 0.0) | (gpus.fill_null(0.0) > 0.0)
    if not workload.jobs.select(counted_anew.any()).item():
        return workload, 0
    shares = shares_of_nodes(workload)
    if not shares:
        raise InputError(
            "jobs ask for gpus or memory, and the log does not say what its nodes have of them",
            source=workload.meta.source,
            expected="a log with nodes",
        )
    tasks = np.maximum(workload.jobs["tasks"].fill_null(1).to_numpy(), 1)
    cpus = np.max(list(shares.values()), axis=0) * workload.processors / tasks
    unknown = pl.lit(None)
    return change(
        workload,
        counted_anew,
        cpus_per_task=pl.max_horizontal("cpus_per_task", pl.lit(pl.Series(cpus))),
        memory_bytes_per_task=unknown,
        gpus_per_task=unknown,
    )
