"""Filters that change what jobs say of themselves."""

from __future__ import annotations

import polars as pl

from foresail.model.registry import register
from foresail.traces.filtering import change, plain
from foresail.traces.workload import Workload


@register("filter", "clip_runtime_to_request")
@plain
def clip_runtime_to_request(workload: Workload) -> tuple[Workload, int]:
    """Cut runtimes above the requested time down to it, as a machine that kills jobs would."""
    over = pl.col("runtime_seconds") > pl.col("requested_seconds")
    return change(workload, over, runtime_seconds=pl.col("requested_seconds"))


@register("filter", "raise_request_to_runtime")
@plain
def raise_request_to_runtime(workload: Workload) -> tuple[Workload, int]:
    """Raise requested times below the runtime up to it, so that no job is killed."""
    over = pl.col("runtime_seconds") > pl.col("requested_seconds")
    return change(workload, over, requested_seconds=pl.col("runtime_seconds"))


@register("filter", "core_for_gpus")
@plain
def core_for_gpus(workload: Workload) -> tuple[Workload, int]:
    """Give one core to each task that asks for GPUs, where the job's cores are not known."""
    asks = pl.col("gpus_per_task") > 0.0
    has_cores = (pl.col("cpus_per_task") > 0.0) | (pl.col("allocated_cpus") > 0.0)
    return change(workload, asks & ~has_cores.fill_null(value=False), cpus_per_task=pl.lit(1.0))


@register("filter", "fill_processors")
@plain
def fill_processors(workload: Workload) -> tuple[Workload, int]:
    """Where only one of requested and allocated processors is known, use it for both.

    Known is what is above 0; ``drop_no_processors`` drops jobs of which neither is.
    """
    requested = pl.col("tasks") * pl.col("cpus_per_task")
    has_requested = (requested > 0).fill_null(value=False)
    has_allocated = (pl.col("allocated_cpus") > 0).fill_null(value=False)
    workload, from_allocated = change(
        workload,
        ~has_requested & has_allocated,
        tasks=pl.col("allocated_cpus").cast(pl.Int64),
        cpus_per_task=pl.lit(1.0),
    )
    workload, from_requested = change(
        workload, ~has_allocated & has_requested, allocated_cpus=requested
    )
    return workload, from_allocated + from_requested
