"""Filters that change what jobs say of themselves, and bundles of filters."""

from __future__ import annotations

import numpy as np
import polars as pl

from foresail.model.errors import InputError
from foresail.model.registry import NoParameters, register
from foresail.traces.filtering import Bundle, change, plain
from foresail.traces.nodes import shares_of_nodes
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
    """Use requested processors as allocated ones and the reverse, where only one is known.

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


@register("filter", "predictsim")
def predictsim(_: NoParameters) -> Bundle:
    """The six filters of Gaussier, Glesser, Reis and Trystram, SC 2015, in their order.

    Jobs wider than the machine, of unknown size, or without positive runtime, requested time and
    submission are dropped; runtimes are cut at the requested time. For CEA-Curie the study sets the
    machine to 80,640 processors.
    """
    return Bundle.named(
        *("drop_wider_than_machine", "drop_no_processors", "fill_processors", "drop_no_runtime"),
        *("drop_no_request", "clip_runtime_to_request", "drop_negative_submit"),
    )


@register("filter", "replayable")
def replayable(_: NoParameters) -> Bundle:
    """Drop jobs that cannot be replayed: without processors or runtime, or wider than the machine.

    A job whose processors are known only as allocated is kept with those. The few that were
    submitted far outside of the time that the log is of are dropped as well.
    """
    return Bundle.named(
        *("drop_no_processors", "fill_processors", "drop_no_runtime", "drop_wider_than_machine"),
        "drop_outside_window",
    )


@register("filter", "replayable_by_task")
def replayable_by_task(_: NoParameters) -> Bundle:
    """Drop jobs without processors or runtime, or with a task that is wider than the machine.

    As ``replayable``, for schedulers that start the tasks of a job apart.
    """
    return Bundle.named(
        *("drop_no_processors", "fill_processors", "drop_no_runtime"),
        *("drop_tasks_wider_than_machine", "drop_outside_window"),
    )
