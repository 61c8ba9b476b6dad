"""Filters that drop jobs of which something is missing, odd or too large."""

from __future__ import annotations

import polars as pl

from foresail.model.registry import register
from foresail.traces.filtering import keep, plain
from foresail.traces.load import in_window
from foresail.traces.partitions import largest_partitions
from foresail.traces.plausibility import LONGEST_RUNTIME_SECONDS
from foresail.traces.workload import Workload


@register("filter", "drop_cancelled_before_start")
@plain
def drop_cancelled_before_start(workload: Workload) -> tuple[Workload, int]:
    """Drop jobs recorded as cancelled that did not run."""
    cancelled = (pl.col("status") == "cancelled").fill_null(value=False)
    ran = (pl.col("runtime_seconds") > 0).fill_null(value=False)
    return keep(workload, ~cancelled | ran)


@register("filter", "drop_gpus")
@plain
def drop_gpus(workload: Workload) -> tuple[Workload, int]:
    """Drop jobs that ask for GPUs."""
    return keep(workload, pl.col("gpus_per_task").fill_null(0.0) <= 0.0)


@register("filter", "drop_negative_submit")
@plain
def drop_negative_submit(workload: Workload) -> tuple[Workload, int]:
    """Drop jobs submitted before second zero, or at no known time."""
    return keep(workload, pl.col("submit_seconds") >= 0)


@register("filter", "drop_no_processors")
@plain
def drop_no_processors(workload: Workload) -> tuple[Workload, int]:
    """Drop jobs whose processors are unknown or not above zero, as requested and as allocated."""
    requested = (pl.col("tasks") * pl.col("cpus_per_task") > 0).fill_null(value=False)
    return keep(workload, requested | (pl.col("allocated_cpus") > 0).fill_null(value=False))


@register("filter", "drop_no_request")
@plain
def drop_no_request(workload: Workload) -> tuple[Workload, int]:
    """Drop jobs whose requested time is unknown or not above zero."""
    return keep(workload, pl.col("requested_seconds") > 0)


@register("filter", "drop_no_runtime")
@plain
def drop_no_runtime(workload: Workload) -> tuple[Workload, int]:
    """Drop jobs whose runtime is unknown or not above zero."""
    return keep(workload, pl.col("runtime_seconds") > 0)


@register("filter", "drop_runtime_beyond_a_year")
@plain
def drop_runtime_beyond_a_year(workload: Workload) -> tuple[Workload, int]:
    """Drop jobs that ran for more than 366 days, which is most often a mistake of the record."""
    runtime = pl.col("runtime_seconds").fill_null(0.0)
    return keep(workload, runtime <= LONGEST_RUNTIME_SECONDS)


@register("filter", "drop_outside_window")
@plain
def drop_outside_window(workload: Workload) -> tuple[Workload, int]:
    """Drop the few jobs that were submitted long before or after all others.

    They are at most one in a hundred at either end, and nobody submitted anything for a tenth of
    the whole time between them and the others: accounting of a week has a job that ran in it, and
    was submitted a month before.
    """
    return keep(workload, pl.lit(in_window(workload.jobs["submit_seconds"])))


@register("filter", "drop_wider_than_machine")
@plain
def drop_wider_than_machine(workload: Workload) -> tuple[Workload, int]:
    """Drop jobs whose requested or allocated processors exceed the machine's, or a partition's."""
    most = largest_partitions(workload)
    requested = pl.col("tasks") * pl.col("cpus_per_task")
    fits = requested.fill_null(0.0) <= most
    return keep(workload, fits & (pl.col("allocated_cpus").fill_null(0.0) <= most))


@register("filter", "drop_tasks_wider_than_machine")
@plain
def drop_tasks_wider_than_machine(workload: Workload) -> tuple[Workload, int]:
    """Drop jobs of whom a single task asks for more processors than the machine has.

    For schedulers whose tasks start apart: a job may have more tasks than there are processors.
    """
    most = workload.processors
    fits = pl.col("cpus_per_task").fill_null(0.0) <= most
    if workload.tasks is not None:
        wide = workload.tasks.filter(pl.col("cpus") > most)["job_id"].unique()
        fits &= ~pl.col("job_id").is_in(wide.implode())
    return keep(workload, fits)
