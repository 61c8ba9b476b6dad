"""Filter ``core_for_gpus``."""

from __future__ import annotations

import polars as pl

from foresail.model.registry import register
from foresail.traces.filtering import change, plain
from foresail.traces.workload import Workload


@register("filter", "core_for_gpus")
@plain
def core_for_gpus(workload: Workload) -> tuple[Workload, int]:
    """Give one core to each task that asks for GPUs, where the job's cores are not known."""
    asks = pl.col("gpus_per_task") > 0.0
    has_cores = (pl.col("cpus_per_task") > 0.0) | (pl.col("allocated_cpus") > 0.0)
    return change(workload, asks & ~has_cores.fill_null(value=False), cpus_per_task=pl.lit(1.0))
