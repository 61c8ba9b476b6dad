"""Rows that are earlier attempts of a job: it was requeued under its id; its last row counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    from foresail.traces.reading import Notes

COLUMNS: Final = (
    *("job_id", "submit_seconds", "recorded_wait_seconds", "runtime_seconds"),
    *("user", "tasks", "status"),
)
"""The columns by which attempts are told."""

REQUEUED_WITHIN_SECONDS: Final = 60.0
"""A row of the same id, user and width, submitted so soon after another's end, is of the same job;
one submitted later is of another job, under an id that was used again."""

RETRIED_WITHIN_SECONDS: Final = 86400.0
"""The same after one that is known not to have completed: ids are not used up within a day."""

_ROW: Final = "__row__"
_EARLIER: Final = "__earlier__"
_RAN: Final = "__ran__"


def earlier_attempts(rows: pl.LazyFrame, used_again: Iterable[pl.Series]) -> pl.DataFrame:
    """Rows by number that are one of several attempts, and what the earlier of these ran.

    ``rows`` are all of a log in its order, with ``COLUMNS``; ``used_again`` are ids that several
    have, and only these rows are held in memory.
    """
    ids = pl.concat(used_again).unique()
    end = pl.sum_horizontal(COLUMNS[1:4], ignore_nulls=False)
    start = pl.col("submit_seconds") + pl.col("recorded_wait_seconds")
    numbered = rows.select(COLUMNS).with_row_index(_ROW)
    several = numbered.filter(pl.col("job_id").is_in(ids.implode())).collect()
    ordered = several.sort("job_id", "submit_seconds", _ROW)

    def following(column: pl.Expr) -> pl.Expr:
        return column.shift(-1).over("job_id")

    pause = following(pl.col("submit_seconds")) - end
    within = (
        pl.when(pl.col("status").str.to_lowercase() != "completed")
        .then(RETRIED_WITHIN_SECONDS)
        .otherwise(REQUEUED_WITHIN_SECONDS)
    )
    again = pause.is_between(-1.0, within) | (
        (following(pl.col("submit_seconds")) == pl.col("submit_seconds"))
        & (following(start) >= end)
        & (following(start) > start)
    )
    same = [following(pl.col(name)).eq_missing(pl.col(name)) for name in ("user", "tasks")]
    marked = ordered.with_columns(
        pl.all_horizontal(again, *same).fill_null(value=False).alias(_EARLIER)
    )
    job = (~pl.col(_EARLIER)).shift(1, fill_value=True).cum_sum().alias("__job__")
    ran = pl.col("runtime_seconds").filter(pl.col(_EARLIER)).cast(pl.String).str.join(", ")
    return (
        marked.with_columns(job)
        .with_columns(ran.over("__job__").alias(_RAN), pl.len().over("__job__").alias("__n__"))
        .filter(pl.col("__n__") > 1)
        .select(_ROW, _EARLIER, _RAN)
    )


def without_earlier(
    chunk: pl.DataFrame, first_row: int, attempts: pl.DataFrame, notes: Notes
) -> pl.DataFrame:
    """The chunk, whose rows are numbered from ``first_row`` on, with a row a job.

    What earlier attempts ran is kept in ``extra``.
    """
    numbered = chunk.with_row_index(_ROW, offset=first_row)
    joined = numbered.join(attempts, on=_ROW, how="left", maintain_order="left")
    earlier = joined[_EARLIER].fill_null(value=False)
    expected = "one row a job; the job was requeued, and its last attempt counts"
    notes.repair_rows("folded_attempts", joined, earlier, "job_id", expected)
    told = pl.format("earlier attempts ran {} s", _RAN)
    extra = pl.concat_str(
        pl.col("extra").replace("", None), told, separator="; ", ignore_nulls=True
    ).replace("", None)
    return joined.filter(~earlier).with_columns(extra=extra).drop(_ROW, _EARLIER, _RAN)
