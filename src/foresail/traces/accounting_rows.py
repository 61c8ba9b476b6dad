"""Rows of accounting that are no jobs by themselves: steps, and arrays whose tasks still wait."""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from foresail.traces.accounting_amounts import clock_seconds
from foresail.traces.reading import LINE, Notes

ELAPSED: Final = ("ElapsedRaw", "Elapsed", "time_suspended")
"""Columns that say for how long a job ran, or did not, between its start and its end."""

STEP: Final = r"^(.+)\.(?:batch|extern|interactive|TBD\+?|\d+(?:\+\d*)?)$"
"""Ids of steps: that of their job, and a name or number of their own, that of a component behind
it; what has none yet is to be done."""

PENDING_ARRAY: Final = r"^(.+)_\[([\d,:-]+)(?:\.\.\.)?(?:%\d+)?\]$"
"""Ids of such arrays; of a long list Slurm writes the beginning, and dots."""
_SPAN: Final = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?")
_MOST_TASKS: Final = 4_000_000
"""As many as Slurm lets an array have."""


class Folding:
    """Folds steps into their jobs, where these stand in the same chunk or in the one before."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._before = pl.Series([], dtype=pl.String)

    def jobs(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows that are jobs; the most memory that steps used is what their job used."""
        ids = rows["job_id"]
        parents = ids.str.extract(STEP, 1)
        is_step = (parents.is_in(ids.implode()) | parents.is_in(self._before.implode())).fill_null(
            value=False
        )
        self._before = ids
        if not is_step.any():
            return rows
        expected = "jobs, without steps"
        self._notes.repair_rows("folded_steps", rows, is_step, "job_id", expected)
        jobs = rows.filter(~is_step)
        if "used_memory_bytes" not in jobs.columns:
            return jobs
        most = pl.col("used_memory_bytes").max().alias("__most__")
        of_steps = rows.with_columns(job_id=parents).filter(is_step).group_by("job_id").agg(most)
        joined = jobs.join(of_steps, on="job_id", how="left", maintain_order="left")
        used = pl.coalesce("used_memory_bytes", "__most__").alias("used_memory_bytes")
        return joined.with_columns(used).drop("__most__")


def with_array_tasks(rows: pl.DataFrame, notes: Notes) -> pl.DataFrame:
    """The rows with one for each task of an array that waits as one, such as ``7_[1-4,9%2]``."""
    waits = rows["job_id"].str.contains(PENDING_ARRAY).fill_null(value=False)
    if not waits.any():
        return rows
    arrays = rows.filter(waits)
    ids = [_tasks_of(job_id) for job_id in arrays["job_id"]]
    cut = arrays["job_id"].str.contains(r"\.\.\.").fill_null(value=False)
    notes.repair_rows("pending_array_cut_short", arrays, cut, "job_id", "the whole list of tasks")
    notes.repair(
        "pending_array_tasks",
        sum(map(len, ids)),
        line=arrays[LINE][0],
        field="job_id",
        value=arrays["job_id"][0],
        expected="a row for each task",
    )
    listed = pl.Series("job_id", ids, dtype=pl.List(pl.String))
    return pl.concat([rows.filter(~waits), arrays.with_columns(listed).explode("job_id")])


def without_suspension(rows: pl.DataFrame, runtime: str, notes: Notes) -> pl.DataFrame:
    """The rows whose runtimes (end less start) leave out what ``ELAPSED`` says was suspended."""
    ran = pl.col(runtime)
    said = {
        "ElapsedRaw": pl.col("ElapsedRaw").cast(pl.Float64, strict=False),
        "Elapsed": clock_seconds(pl.col("Elapsed")),
        "time_suspended": ran - pl.col("time_suspended").cast(pl.Float64, strict=False),
    }
    known = [elapsed for name, elapsed in said.items() if name in rows.columns]
    if not known:
        return rows
    elapsed = pl.coalesce(known)
    is_shorter = elapsed.is_between(0.0, ran - 1.0).fill_null(value=False)
    shorter = rows.select(is_shorter).to_series()
    told = rows.rename({runtime: "runtime_seconds"})
    expected = "as long as from start to end: the job was suspended"
    notes.repair_rows("runtime_without_suspension", told, shorter, "runtime_seconds", expected)
    return rows.with_columns(pl.when(shorter).then(elapsed).otherwise(ran).alias(runtime))


def _tasks_of(job_id: str) -> list[str]:
    """The ids of an array's tasks; its own where it has none."""
    array = re.match(PENDING_ARRAY, job_id)
    tasks: list[int] = []
    for part in array[2].split(",") if array else ():
        if span := _SPAN.fullmatch(part):
            first, last, step = int(span[1]), int(span[2] or span[1]), int(span[3] or 1)
            tasks += range(first, min(last, first + _MOST_TASKS) + 1, max(step, 1))
    return [f"{array[1]}_{task}" for task in tasks] if array and tasks else [job_id]
