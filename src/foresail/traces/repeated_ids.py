"""Rows of the same id: attempts of one job, of which the last counts, or jobs of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

if TYPE_CHECKING:
    from foresail.traces.reading import Notes

COLUMNS: Final = (
    *("job_id", "submit_seconds", "recorded_wait_seconds", "runtime_seconds"),
    *("user", "tasks", "status"),
)
"""The columns by which attempts are recognised."""

REQUEUED_WITHIN_SECONDS: Final = 60.0
"""A row of the same id, user and width, submitted so soon after another's end, is of the same job;
one submitted later is of another job, under an id that was used again."""

RETRIED_WITHIN_SECONDS: Final = 86400.0
"""The same after one that is known not to have completed: ids are not used up within a day."""

_ROW: Final = "__row__"
_EARLIER: Final = "__earlier__"
_RAN: Final = "__ran__"


class Chunks(Protocol):
    """The chunks of a log in its order, in memory or on disk."""

    def ids(self) -> Iterator[pl.Series]:
        """The ids of each."""

    def rows(self) -> pl.LazyFrame:
        """The rows of all, with ``COLUMNS``."""

    def change(self, changed: Callable[[pl.DataFrame, int], pl.DataFrame]) -> None:
        """Replace each; it comes with the number of its first row."""


def give_unique_ids(chunks: Chunks, notes: Notes) -> None:
    """Fold the attempts of a job into its last row, and rename other jobs of an id used before.

    Raises
    ------
    InputError
        When strict and there are such rows.
    """
    used_before = occurrences(chunks.ids())
    if used_before is None:
        return
    attempts = _earlier_attempts(chunks.rows(), _used_again(chunks, used_before))
    chunks.change(partial(_without_earlier, attempts=attempts, notes=notes))
    # Once more where an id such as "7#2" was there already.
    while (used_before := occurrences(chunks.ids())) is not None:
        chunks.change(partial(_renamed, used_before=used_before, notes=notes))


def _used_again(chunks: Chunks, used_before: NDArray[np.int64]) -> Iterator[pl.Series]:
    first = 0
    for ids in chunks.ids():
        yield ids.filter(used_before[first : first + ids.len()] > 0)
        first += ids.len()


def occurrences(ids: Iterable[pl.Series]) -> NDArray[np.int64] | None:
    """Count how often each row's id was used before that row; None if every id is used once.

    ``ids`` are the id columns of all chunks. Takes a few words a row: ids are compared by hash.
    """
    hashes = np.concatenate([series.hash().to_numpy() for series in ids])
    order = np.argsort(hashes, kind="stable")
    same = np.concatenate(([False], hashes[order[1:]] == hashes[order[:-1]]))
    if not same.any():
        return None
    position = np.arange(hashes.size)
    group_start = np.maximum.accumulate(np.where(same, 0, position))
    used_before = np.empty(hashes.size, dtype=np.int64)
    used_before[order] = position - group_start
    return used_before


def _renamed(
    chunk: pl.DataFrame, first_row: int, used_before: NDArray[np.int64], notes: Notes
) -> pl.DataFrame:
    """The chunk with ``#2``, ``#3`` ... behind ids that earlier rows used already."""
    used_before = used_before[first_row : first_row + chunk.height]
    again = pl.Series(used_before > 0)
    if not again.any():
        return chunk
    expected = "an id of its own for every job"
    notes.repair_rows("renamed_duplicate_id", chunk, again, "job_id", expected)
    suffix = pl.Series("suffix", used_before + 1).cast(pl.String)
    unique = pl.when(again).then(pl.col("job_id") + "#" + suffix)
    return chunk.with_columns(unique.otherwise(pl.col("job_id")).alias("job_id"))


def _earlier_attempts(rows: pl.LazyFrame, used_again: Iterable[pl.Series]) -> pl.DataFrame:
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


def _without_earlier(
    chunk: pl.DataFrame, first_row: int, attempts: pl.DataFrame, notes: Notes
) -> pl.DataFrame:
    """The chunk, whose rows are numbered from ``first_row`` on, with a row a job.

    What earlier attempts ran is kept in ``extra``.
    """
    if not attempts[_ROW].is_between(first_row, first_row + chunk.height, closed="left").any():
        return chunk
    numbered = chunk.with_row_index(_ROW, offset=first_row)
    joined = numbered.join(attempts, on=_ROW, how="left", maintain_order="left")
    earlier = joined[_EARLIER].fill_null(value=False)
    expected = "one row a job; the job was requeued, and its last attempt counts"
    notes.repair_rows("folded_attempts", joined, earlier, "job_id", expected)
    note = pl.format("earlier attempts ran {} s", _RAN)
    extra = pl.concat_str(
        pl.col("extra").replace("", None), note, separator="; ", ignore_nulls=True
    ).replace("", None)
    return joined.filter(~earlier).with_columns(extra=extra).drop(_ROW, _EARLIER, _RAN)
