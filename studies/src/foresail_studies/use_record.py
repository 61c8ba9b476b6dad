"""Record of what tasks that share nodes used over time, kept beside the event log of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import polars as pl

from foresail.model.errors import InputError
from foresail.traces.parquet import parquet_of, require_possible_pages
from foresail.traces.schedule import use_file

USE: Final = pl.Schema(
    {
        "seconds": pl.Float64,
        "what": pl.String,
        "node": pl.String,
        "job_id": pl.String,
        "stage": pl.String,
        "task": pl.Int64,
        "run": pl.Int64,
        "cpus_needed": pl.Float64,
        "cpus_given": pl.Float64,
        "memory_bytes": pl.Float64,
    }
)
"""A row a change, in order: a task has changed its use, was throttled or released, was evicted, has
completed, or has left for another reason; from then on it needs and has so much, or nothing any
more after the last three. ``task`` is its number within the stage, whose name is null where a job
started as a whole. ``run`` counts the tasks that have started anywhere."""

GONE: Final = ("completed", "evicted", "left")
"""After these a task uses nothing."""

EVICTION_SHARE: Final = 0.95
"""Share of a machine's memory that is held when tasks are evicted (chosen)."""


def read_use(log: Path) -> pl.DataFrame:
    """The use of the machines of a run, by its event log.

    Raises ``InputError`` if there is none: its tasks did not share nodes.
    """
    path = use_file(log)
    if not path.is_file():
        raise InputError(
            "there is no record of what tasks used",
            source=path,
            expected="a run of foresail simulate with --share-nodes and --events",
        )
    require_possible_pages(path)
    with parquet_of(path):
        use = pl.read_parquet(path)
    if "stage" not in use.columns:  # of an earlier version
        at = use.columns.index("task") if "task" in use.columns else 0
        use = use.insert_column(at, pl.lit(None, pl.String).alias("stage"))
    if use.schema != USE:
        raise InputError("not the columns of a record of use", source=path, value=use.columns)
    return use
