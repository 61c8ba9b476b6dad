"""Filter ``merge_duplicates``."""

from __future__ import annotations

import polars as pl

from foresail.model.registry import register
from foresail.traces.filtering import plain
from foresail.traces.workload import Workload


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
