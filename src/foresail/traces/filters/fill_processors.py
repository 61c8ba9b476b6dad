"""Filter ``fill_processors``."""

from __future__ import annotations

import polars as pl

from foresail.model.registry import register
from foresail.traces.filtering import change, keep, plain
from foresail.traces.workload import Workload


@register("filter", "fill_processors")
@plain
def fill_processors(workload: Workload) -> tuple[Workload, int]:
    """Where only one of requested and allocated processors is known, use it for both.

    Jobs where neither is known (positive) are dropped. Counts both kinds.
    """
    requested = pl.col("tasks") * pl.col("cpus_per_task")
    has_requested = (requested > 0).fill_null(value=False)
    has_allocated = (pl.col("allocated_cpus") > 0).fill_null(value=False)
    workload, dropped = keep(workload, has_requested | has_allocated)
    workload, from_allocated = change(
        workload,
        ~has_requested,
        tasks=pl.col("allocated_cpus").cast(pl.Int64),
        cpus_per_task=pl.lit(1.0),
    )
    workload, from_requested = change(workload, ~has_allocated, allocated_cpus=requested)
    return workload, dropped + from_allocated + from_requested
