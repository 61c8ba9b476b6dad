"""Filters that drop jobs of which something is missing, odd or too large, bursts, and copies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from foresail.model.errors import require_at_least
from foresail.model.registry import register
from foresail.traces.facts import in_window
from foresail.traces.filtering import Filter, keep, plain
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


_BURST_GAP_SECONDS: Final = 1800.0


@dataclass(frozen=True, slots=True)
class FlurryParameters:
    """Bounds of a flurry."""

    jobs: int = 1000
    """A burst of more jobs than this is a flurry."""

    def __post_init__(self) -> None:
        require_at_least(self, 1, "jobs")


@register("filter", "drop_flurries", parameters=FlurryParameters)
def drop_flurries(parameters: FlurryParameters) -> Filter:
    """Drop bursts in which one user submits very many jobs with hardly a pause.

    A burst is a row of submissions by one user, each at most half an hour after the one before;
    bursts of more than ``jobs`` jobs are dropped whole. Jobs of unknown users are kept. The reason
    to: D. Tsafrir, D. G. Feitelson, "Instability in parallel job scheduling simulation: the role of
    workload flurries", IPDPS 2006.
    """

    def apply(workload: Workload) -> tuple[Workload, int]:
        gap = pl.col("submit_seconds").diff().over("user")
        pause = (gap > _BURST_GAP_SECONDS).fill_null(value=True)
        burst = pause.cast(pl.Int64).cum_sum().over("user")
        jobs = workload.jobs.with_columns(burst.alias("__burst__"))
        size = jobs.select(pl.len().over("user", "__burst__").alias("size"))["size"]
        calm = pl.lit(size <= parameters.jobs) | pl.col("user").is_null()
        return keep(workload, calm)

    return apply


@register("filter", "merge_duplicates")
@plain
def merge_duplicates(workload: Workload) -> tuple[Workload, int]:
    """Keep one row of those that are one job: same id and same submission.

    Readers write ``7#2`` for the second row with the id 7; the part after # is not looked at. Of
    such rows the last that is not a partial execution is kept (the last of all, if all are
    partial), under the id proper. Counts the rows dropped.
    """
    proper = pl.col("job_id").str.replace(r"#\d+$", "")
    jobs = workload.jobs.with_columns(proper.alias("__id__"))
    key = ["__id__", "submit_seconds"]
    rank = (pl.col("status") != "partial").fill_null(value=True).cast(pl.Int64)
    chosen = jobs.with_row_index("__row__").with_columns(rank.alias("__rank__"))
    last = chosen.sort("__rank__", "__row__").unique(key, keep="last", maintain_order=True)
    merged = chosen.join(last.select("__row__"), on="__row__", how="semi").sort("__row__")
    dropped = jobs.height - merged.height
    if not dropped:
        return workload, 0
    several = merged.select(pl.len().over("__id__").alias("n"))["n"] > 1
    name = pl.when(pl.lit(several)).then(pl.col("job_id")).otherwise(pl.col("__id__"))
    merged = merged.with_columns(name.alias("job_id")).select(workload.jobs.columns)
    return workload.with_jobs(merged), dropped
