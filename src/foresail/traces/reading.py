"""From a log file to a workload: the reader protocol, choosing a reader, and what all logs get.

A reader yields chunks of the jobs table. ``Intake`` repairs what any log can have wrong (negative
times, submissions out of order, ids used twice), counts it, and so makes a log of any layout
canonical. ``read`` keeps all chunks in memory; ``foresail.traces.folder.convert`` does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

import numpy as np
import polars as pl

from foresail.model.distribution import Integers
from foresail.model.errors import InputError
from foresail.model.registry import Entry, NoParameters, entries, find
from foresail.traces import schema, workload
from foresail.traces.source import LogFile, head

LINE: Final = "__line__"
"""Column in which a reader may give the line of each row; it does not reach the workload."""

UNIX_TIMES_BEGIN: Final = 5e8
"""A first submission later than this (16 years after any origin) must be a Unix time."""

MOST_LOST: Final = 0.01
"""Share of a log's rows of which no job can be made, beyond which it is probably read wrongly."""

LOSSES: Final = (
    *("dropped_malformed_line", "dropped_local_time_that_does_not_exist"),
    *("dropped_without_id", "dropped_without_submit"),
)
"""Repairs that drop rows of which no job can be made."""

FIRST_OF_TWO: Final = "took_first_of_two_local_times"
"""Repair of times that clocks of their zone showed twice."""

_NOT_NEGATIVE: Final = (
    "recorded_wait_seconds",
    "runtime_seconds",
    "tasks",
    "cpus_per_task",
    "memory_bytes_per_task",
    "gpus_per_task",
    "requested_seconds",
    "allocated_cpus",
    "used_cpu_seconds",
    "used_memory_bytes",
    "think_seconds",
)

_POSSIBLE: Final = {
    "tasks": (
        workload.MOST_PROCESSORS,
        f"at most {workload.MOST_PROCESSORS:,}, as many as any machine has processors",
    ),
    "runtime_seconds": (workload.LONGEST_RUNTIME_SECONDS, "seconds, fewer than of three centuries"),
}
"""Largest amounts that columns are believed to hold, in words too."""

_AMOUNT: Final = "a number of at least 0"
_MEASURED: Final = tuple(
    name for name, kind in schema.JOBS.items() if kind.is_float() and name != "submit_seconds"
)


@dataclass
class Notes:
    """Findings of a reader besides the jobs: facts of the header, and the repairs it made."""

    path: Path
    """The log."""
    strict: bool | None = None
    """True: a repair is an error instead. None: it is one that more than ``MOST_LOST`` of the rows
    are dropped, because no job can be made of them. False: nothing is."""
    advance: Callable[[int], None] | None = None
    """Called with the number of bytes of the file just read, for a progress bar."""
    processors: int | None = None
    origin_unix_seconds: float | None = None
    time_zone: str | None = None

    unix_times: bool = False
    """Set by a reader of Unix submit times: the workload's origin becomes its first submission."""
    header: dict[str, str] = field(default_factory=dict)
    nodes: pl.DataFrame | None = None
    tasks: pl.DataFrame | None = None
    usage: pl.DataFrame | None = None
    sha256: str | None = None

    earlier: workload.WorkloadMeta | None = None
    """Set by a reader of something that has meta facts of its own already."""
    repairs: Counter[str] = field(default_factory=Counter)
    lost: dict[str, workload.LostRows] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)

    def source(self) -> LogFile:
        """The log's bytes, with progress."""
        return LogFile(self.path, self.advance)

    def repair(
        self,
        name: str,
        count: int = 1,
        *,
        line: int | None = None,
        field: str | None = None,
        value: object | None = None,
        expected: str | None = None,
    ) -> None:
        """Count a repair of ``count`` rows, the first of them described by the rest.

        Raises
        ------
        InputError
            When strict.
        """
        if self.strict:
            problem = name.replace("_", " ") + (f" ({count} rows here)" if count > 1 else "")
            raise InputError(
                problem, source=self.path, line=line, field=field, value=value, expected=expected
            )
        self.repairs[name] += count
        where = "" if line is None else f"line {line}: "
        example = f"{where}{value!r}" if value is not None else where.removesuffix(": ")
        if example:
            self.examples.setdefault(name, example)
        if name in LOSSES:
            self._lose(name, count, field, expected or "a job", example)

    def repair_rows(
        self, name: str, rows: pl.DataFrame, wrong: pl.Series, field: str, expected: str
    ) -> None:
        """Count a repair of the rows that are wrong, if any are; raises as ``repair`` does."""
        if wrong.any():
            first = rows.row(wrong.arg_max() or 0, named=True)
            self.repair(
                name,
                int(wrong.sum()),
                line=first.get(LINE),
                field=field,
                value=first[field],
                expected=expected,
            )

    def _lose(self, name: str, count: int, field: str | None, expected: str, example: str) -> None:
        """Count rows by what is wrong with them, remembering the first of each cause."""
        cause = expected if field is None else f"{expected} in {field!r}"
        first = workload.LostRows(name, 0, cause, example or "unknown")
        before = self.lost.get(f"{name}: {cause}", first)
        self.lost[f"{name}: {cause}"] = replace(before, rows=before.rows + count)

    def meta(self, reader: str, processors: int | None) -> workload.WorkloadMeta:
        """All that is known of the workload as a whole.

        The processors are those given, or those of the log if none are.

        Raises ``InputError`` if no machine has as many processors.
        """
        known = self.processors if processors is None else processors
        if known is not None:
            workload.require_processors(known, self.path)
        base = self.earlier or workload.WorkloadMeta(source=self.path.name, reader=reader)
        return replace(
            base,
            processors=known,
            stated_processors=base.stated_processors or (self.processors if processors else None),
            origin_unix_seconds=self.origin_unix_seconds,
            time_zone=self.time_zone,
            header=dict(self.header),
            repairs=dict(Counter(base.repairs) + self.repairs),
            lost=(*base.lost, *self.lost.values()),
            examples=self.examples | dict(base.examples),
            sha256=self.sha256 or base.sha256,
        )


@dataclass(frozen=True)
class Sample:
    """The beginning of a log, by which readers know its layout; a folder's ``text`` is empty."""

    path: Path
    text: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The first line, taken for the header of a comma-separated table."""
        first = self.text.partition("\n")[0].strip()
        return tuple(name.strip().strip('"') for name in first.split(","))

    @classmethod
    def read(cls, path: Path) -> Sample:
        """Sample of a file or folder.

        Raises ``InputError`` if there is none, or it is empty or unreadable.
        """
        if not path.exists():
            raise InputError("no such file or folder", source=path)
        if path.is_dir():
            return cls(path, "")
        return cls(path, head(path).decode("utf-8-sig", errors="replace"))


@runtime_checkable
class Reader(Protocol):
    """Reads logs of one layout. A reader is built from its parameters record alone."""

    def recognises(self, sample: Sample) -> bool:
        """Test for a log that the reader reads."""

    def chunks(self, notes: Notes) -> Iterator[pl.DataFrame]:
        """The jobs of ``notes.path``, in the order of the file, in tables of bounded size.

        Columns of ``schema.JOBS`` may be absent (null), except ``job_id`` and
        ``submit_seconds``; further columns are features; ``LINE`` may say where rows came from.
        Facts and repairs go to ``notes``.
        """


class PlainReader:
    """Base of readers that have nothing to set."""

    def __init__(self, parameters: NoParameters) -> None:
        del parameters


class Intake:
    """Makes the chunks of a log canonical as they come, and remembers what they need afterwards."""

    def __init__(
        self,
        path: Path,
        reader: str | None,
        strict: bool | None,
        processors: int | None,
        advance: Callable[[int], None] | None,
        options: Mapping[str, Any],
    ) -> None:
        self._reader_name, self._reader = choose(path, reader, **options)
        if processors is not None:
            workload.require_processors(processors, path)
        self._processors = processors
        self.notes = Notes(path, strict, advance)
        self._highest_submit = -np.inf
        self._lowest_submit = np.inf
        self._highest_id = -1
        self.rows = 0
        self.ordered = True
        self.ids_ascend = True

    def chunks(self) -> Iterator[pl.DataFrame]:
        """The chunks with every canonical column, without impossible values.

        Raises ``InputError`` if there is no job, or more rows are lost than may be; when strict and
        something had to be repaired.
        """
        for chunk in self._reader.chunks(self.notes):
            chunk = self._without_impossible(self._canonical(chunk))
            self._watch_order(chunk)
            self._watch_ids(chunk)
            self.rows += chunk.height
            yield chunk
        self._check_enough()

    def meta(self) -> workload.WorkloadMeta:
        """All that is known of the workload as a whole, once all chunks have come."""
        return self.notes.meta(self._reader_name, self._processors)

    def _check_enough(self) -> None:
        lost = sum(each.rows for each in self.notes.lost.values())
        if not self.rows and not lost:
            raise InputError("holds no jobs", source=self.notes.path, expected="at least one job")
        if not self.rows or (self.notes.strict is None and too_many_lost(lost, self.rows)):
            causes = (
                f"{each.rows:,} without {each.expected} (the first is {each.example})"
                for each in self.notes.lost.values()
            )
            instead = ", or --lenient to do without them" if self.rows else ""
            raise InputError(
                f"no job can be made of {lost:,} of {self.rows + lost:,} rows: {'; '.join(causes)}",
                source=self.notes.path,
                expected=f"a source or mapping put right{instead}",
            )

    def origin_shift(self) -> float:
        """Seconds to take off all times, which were Unix times or not; sets the origin."""
        if not self.notes.unix_times:
            return 0.0
        self.notes.origin_unix_seconds = self._lowest_submit
        return float(self._lowest_submit)

    def _canonical(self, chunk: pl.DataFrame) -> pl.DataFrame:
        try:
            jobs = schema.canonical_jobs(chunk)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            raise InputError(
                f"values of another type than their column: {str(error).partition(chr(10))[0]}",
                source=self.notes.path,
                expected="numbers within 64 bits, and text",
            ) from error
        if jobs["partition"].str.contains("*", literal=True).any():
            unmarked = pl.col("partition").str.replace_all("*", "", literal=True)
            return jobs.with_columns(unmarked)  # Slurm's mark of its default partition
        return jobs

    def _without_impossible(self, chunk: pl.DataFrame) -> pl.DataFrame:
        repair = self.notes.repair_rows
        nameless = chunk["job_id"].is_null()
        if nameless.any():
            repair("dropped_without_id", chunk, nameless, "job_id", "an id")
            chunk = chunk.filter(~nameless)
        submit = chunk["submit_seconds"]
        unusable = (submit < 0).fill_null(value=True) | ~submit.is_finite().fill_null(value=True)
        if unusable.any():
            repair("dropped_without_submit", chunk, unusable, "submit_seconds", _AMOUNT)
            chunk = chunk.filter(~unusable)
        finite_at_all = chunk.select(pl.col(_MEASURED).is_finite().all()).row(0)
        for name, all_finite in zip(_MEASURED, finite_at_all, strict=True):
            if not all_finite:
                endless = ~chunk[name].is_finite()
                chunk = self._unknown(chunk, name, endless, "endless", "a finite number")
        for name in _NOT_NEGATIVE:
            lowest = chunk[name].min()
            if isinstance(lowest, int | float) and lowest < 0:
                chunk = self._unknown(chunk, name, chunk[name] < 0, "negative", _AMOUNT)
        name = "requested_seconds"
        chunk = self._unknown(chunk, name, chunk[name] == 0, "zero", "a time limit, which 0 is not")
        for name, (most, expected) in _POSSIBLE.items():
            chunk = self._unknown(chunk, name, chunk[name] > most, "impossible", expected)
        return chunk

    def _unknown(
        self, chunk: pl.DataFrame, name: str, wrong: pl.Series, why: str, expected: str
    ) -> pl.DataFrame:
        """The chunk without the values of a column that are wrong, which are counted."""
        wrong = wrong.fill_null(value=False)
        if not wrong.any():
            return chunk
        self.notes.repair_rows(f"unknown_for_{why}_{name}", chunk, wrong, name, expected)
        return chunk.with_columns(pl.when(~wrong).then(pl.col(name)).alias(name))

    def _watch_order(self, chunk: pl.DataFrame) -> None:
        if not chunk.height:
            return
        submit = chunk["submit_seconds"].to_numpy()
        before = np.maximum.accumulate(np.concatenate(([self._highest_submit], submit[:-1])))
        late = pl.Series(submit < before)
        if late.any():
            expected = "jobs in order of submission"
            self.notes.repair_rows("sorted_by_submit", chunk, late, "submit_seconds", expected)
            self.ordered = False
        self._highest_submit = max(self._highest_submit, float(submit.max()))
        self._lowest_submit = min(self._lowest_submit, float(submit.min()))

    def _watch_ids(self, chunk: pl.DataFrame) -> None:
        if not chunk.height or not self.ids_ascend:
            return
        numbers = chunk["job_id"].cast(pl.Int64, strict=False)
        values = numbers.to_numpy() if not numbers.null_count() else np.zeros(2)
        ascend = values[0] > self._highest_id and bool((np.diff(values) > 0).all())
        self.ids_ascend = ascend
        if ascend:
            self._highest_id = int(values[-1])


def too_many_lost(lost: int, kept: int) -> bool:
    """Test whether so many rows of a log are no jobs that it is probably read wrongly."""
    return lost > MOST_LOST * (lost + kept)


Table = TypeVar("Table", pl.DataFrame, pl.LazyFrame)


def finished(table: Table, shift: float) -> Table:
    """The table with absolute times counted from the origin, without line numbers."""
    table = table.drop(LINE, strict=False)
    if not shift:
        return table
    return table.with_columns(pl.col("submit_seconds", "deadline_seconds") - shift)


def choose(path: Path, reader: str | None = None, **options: Any) -> tuple[str, Reader]:
    """The reader of this name, or else the one that recognises the log and has these options.

    An option (a parameter of the reader) that is None counts as not given.

    Raises ``InputError`` if no reader (or more than one) recognises the log, or the reader has no
    such option; ``UnknownNameError`` if no reader has this name.
    """
    given = {name: value for name, value in options.items() if value is not None}
    sample = Sample.read(path)
    if reader is not None:
        entry = find("reader", reader)
        _demand_options(entry, given)
        return reader, entry.build(entry.parameters(**given))
    able = [entry for entry in entries("reader") if given.keys() <= _parameters(entry)]
    built = {entry.name: entry.build(entry.parameters(**given)) for entry in able}
    matching = [name for name, candidate in built.items() if candidate.recognises(sample)]
    if not matching:
        for entry in entries("reader"):
            if entry not in able and entry.build(entry.parameters()).recognises(sample):
                _demand_options(entry, given)
    if len(matching) != 1:
        names = ", ".join(matching or [entry.name for entry in entries("reader")])
        problem = "several readers read this layout" if matching else "no reader knows this layout"
        raise InputError(
            problem,
            source=path,
            expected=f"a reader given by name ({names}), or a mapping of columns (--mapping)",
        )
    return matching[0], built[matching[0]]


def _demand_options(entry: Entry, given: Iterable[str]) -> None:
    for name in given:
        if name not in _parameters(entry):
            known = ", ".join(sorted(_parameters(entry))) or "no options"
            raise InputError(
                f"the reader {entry.name!r} has no such option", field=name, expected=known
            )


def _parameters(entry: Entry) -> set[str]:
    return {parameter.name for parameter in fields(entry.parameters)}


def read(
    path: Path,
    reader: str | None = None,
    *,
    strict: bool | None = None,
    processors: int | None = None,
    advance: Callable[[int], None] | None = None,
    **options: Any,
) -> workload.Workload:
    """Read a log into memory, its jobs sorted by submission (stable).

    Raises ``InputError`` if the log cannot be used: what is wrong, where, and what was expected.

    Parameters
    ----------
    path
        The log: a file, or a canonical folder.
    reader
        Name of the reader; by default the one that recognises the log.
    strict
        True: what would be repaired (and counted in ``meta.repairs``) is an error instead. None:
        more than ``MOST_LOST`` of the rows dropped because no job can be made of them is one.
        False: nothing is.
    processors
        Processors of the machine, where the log does not say or says otherwise.
    advance
        Called with the number of bytes just read.
    options
        Parameters of the reader.
    """
    intake = Intake(path, reader, strict, processors, advance, options)
    notes, chunks = intake.notes, [*intake.chunks()]
    if not intake.ids_ascend:
        give_unique_ids(_InMemory(chunks), notes)
    shift = intake.origin_shift()
    jobs = pl.concat([finished(chunk, shift) for chunk in chunks], how="diagonal")
    chunks.clear()
    if not intake.ordered:
        jobs = jobs.sort("submit_seconds", maintain_order=True)
    return workload.Workload(jobs, intake.meta(), notes.nodes, notes.tasks, notes.usage)


@dataclass
class _InMemory:
    """The chunks of a log, in its order."""

    chunks: list[pl.DataFrame]

    def ids(self) -> Iterator[pl.Series]:
        return (chunk["job_id"] for chunk in self.chunks)

    def rows(self) -> pl.LazyFrame:
        return pl.concat([chunk.lazy().select(COLUMNS) for chunk in self.chunks])

    def change(self, changed: Callable[[pl.DataFrame, int], pl.DataFrame]) -> None:
        first = 0
        for at, chunk in enumerate(self.chunks):
            self.chunks[at] = changed(chunk, first)
            first += chunk.height


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


def _used_again(chunks: Chunks, used_before: Integers) -> Iterator[pl.Series]:
    first = 0
    for ids in chunks.ids():
        yield ids.filter(used_before[first : first + ids.len()] > 0)
        first += ids.len()


def occurrences(ids: Iterable[pl.Series]) -> Integers | None:
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
    chunk: pl.DataFrame, first_row: int, used_before: Integers, notes: Notes
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
