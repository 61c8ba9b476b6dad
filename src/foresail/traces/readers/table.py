"""Any table of jobs (CSV or Parquet), by a column mapping file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from foresail.model.errors import InputError
from foresail.model.registry import register
from foresail.traces import accounting, schema
from foresail.traces import mapping as mappings
from foresail.traces.delimited import nearest, read_delimited
from foresail.traces.parquet import parquet_of, require_possible_pages
from foresail.traces.reading import LINE, UNIX_TIMES_BEGIN, Notes, Sample

if TYPE_CHECKING:
    from foresail.traces.mapping import ColumnSource, Mapping

_PARQUET_MAGIC: Final = "PAR1"
_ROWS_AT_ONCE: Final = 1 << 17
_SINCE: Final = "__since__"
_SHAPE: Final = ("tasks", "cpus_per_task")
_BY_WHOM: Final = r" by \S+$"
"""Follows the state of a cancelled job in Slurm's accounting."""
_CLOCKS_APART_SECONDS: Final = 60.0
"""Time before its submission that a job may have started by the clock of another machine."""
_UNENDED: Final = {
    *("PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "RESIZING", "STOPPED"),
    *("SIGNALING", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD"),
    *("PD", "R", "S", "CG", "CF", "RS", "ST", "SI", "RH", "RF", "RD"),
}
"""States of jobs in Slurm's accounting that have not ended, long and short."""
_EPOCH_SECONDS: Final = 86400.0
"""Unix times up to here are none: 0 (in whatever zone) stands for what never was."""


@dataclass(frozen=True)
class TableParameters:
    """Options of the reader.

    Parameters
    ----------
    mapping
        The column mapping file (TOML); ``foresail.traces.mapping`` shows one.
    """

    mapping: Path | None = None


@register("reader", "table", parameters=TableParameters)
class TableReader:
    """Any CSV or Parquet table of jobs, by a file that maps its columns.

    Ids are row numbers where no column holds them; tasks and cpus per task are 1 where nothing says
    otherwise. Times that are written out, or look like Unix times, count from the first submission.
    """

    def __init__(self, parameters: TableParameters) -> None:
        self._mapping = _mapping_of(parameters.mapping)

    def recognises(self, sample: Sample) -> bool:
        """Any file, once a mapping is given; none without."""
        return self._mapping is not None and not sample.path.is_dir()

    def chunks(self, notes: Notes) -> Iterator[pl.DataFrame]:
        """The jobs, some ten thousand at a time."""
        if self._mapping is None:
            raise InputError("the reader 'table' needs a column mapping", source=notes.path)
        mapping = self._mapping
        notes.processors = mapping.table.processors
        is_parquet = Sample.read(notes.path).text.startswith(_PARQUET_MAGIC)
        chunks = _from_parquet if is_parquet else _from_text
        first, folding = True, accounting.Folding(notes)
        for chunk in chunks(notes, mapping):
            rows = _mapped(chunk, mapping, notes, header_lines=0 if is_parquet else 1)
            jobs = accounting.with_array_tasks(folding.jobs(rows), notes)
            if first and jobs.height:
                submit = jobs["submit_seconds"].median()
                notes.unix_times = isinstance(submit, float) and submit >= UNIX_TIMES_BEGIN
                first = False
            if notes.unix_times:
                known = pl.col("submit_seconds") >= _EPOCH_SECONDS
                jobs = jobs.with_columns(submit_seconds=pl.when(known).then("submit_seconds"))
            yield jobs


def _mapping_of(path: Path | None) -> Mapping | None:
    """Only tables need it, and what checks it takes long to import."""
    if path is None:
        return None
    from foresail.traces.mapping import load_mapping

    return load_mapping(path)


def _from_text(notes: Notes, mapping: Mapping) -> Iterator[pl.DataFrame]:
    columns, layout = mapping.used, mapping.table
    optional = [name for name in accounting.ELAPSED if name not in columns]
    for chunk in read_delimited(
        notes.source(),
        notes,
        columns,
        layout.delimiter,
        optional=optional,
        free_text=layout.free_text,
    ):
        yield chunk.with_columns(
            pl.when(~pl.col(name).is_in(layout.null)).then(pl.col(name)) for name in columns
        )


def _from_parquet(notes: Notes, mapping: Mapping) -> Iterator[pl.DataFrame]:
    source = notes.source()
    for _ in source.blocks():
        pass
    notes.sha256 = source.sha256
    require_possible_pages(notes.path)
    with parquet_of(notes.path):
        kinds = pl.read_parquet_schema(notes.path)
        for name in mapping.used:
            if name not in kinds:
                raise InputError(
                    "no such column", source=notes.path, field=name, expected=nearest(name, kinds)
                )
        read = dict.fromkeys(
            (*mapping.used, *(name for name in accounting.ELAPSED if name in kinds))
        )
        lazy = pl.scan_parquet(notes.path).select(_plain(name, kinds[name]) for name in read)
        height = pl.scan_parquet(notes.path).select(pl.len()).collect().item()
        for start in range(0, height, _ROWS_AT_ONCE):
            chunk = lazy.slice(start, _ROWS_AT_ONCE).collect()
            yield chunk.with_columns(
                pl.int_range(start + 1, start + 1 + chunk.height).alias(LINE),
                *(
                    pl.when(~pl.col(name).is_in(mapping.table.null)).then(pl.col(name))
                    for name, kind in chunk.schema.items()
                    if kind == pl.String
                ),
            )


def _plain(name: str, kind: pl.DataType) -> pl.Expr:
    """Numbers as floats, times as Unix seconds, durations as seconds, all else as text."""
    column = pl.col(name)
    if kind in (pl.Date, pl.Datetime):
        return column.cast(pl.Datetime("ms")).dt.epoch("ms") / 1000.0
    if kind == pl.Duration:
        return column.dt.total_milliseconds() / 1000.0
    if kind.is_float() or kind.is_integer():
        return column
    return column.cast(pl.String)


def _mapped(chunk: pl.DataFrame, mapping: Mapping, notes: Notes, header_lines: int) -> pl.DataFrame:
    """The canonical columns and features that the mapping makes of some source columns."""
    features = [pl.col(source).alias(f"__feature__{name}") for name, source in
                mapping.features.items()]  # fmt: skip
    table = chunk.with_columns(features)
    submit_first = sorted(mapping.columns.items(), key=lambda item: item[0] != "submit_seconds")
    for target, source in submit_first:
        table = _with_target(table, target, source, notes)
    table = _without_unended(_with_shape(table, mapping), mapping, notes)
    table = table.with_columns(
        accounting.of_one_task(table, _target(name), name, *map(_target, _SHAPE))
        for name in accounting.PER_TASK
        if name in mapping.columns
    )
    made = [
        pl.col(_target(name)).alias(name) for name in dict.fromkeys((*mapping.columns, *_SHAPE))
    ]
    if "job_id" not in mapping.columns:
        made.append((pl.col(LINE) - header_lines).cast(pl.String).alias("job_id"))
    made += [pl.col(f"__feature__{name}").cast(pl.String).alias(name) for name in mapping.features]
    return table.select(*made, LINE)


def _target(name: str) -> str:
    return f"__target__{name}"


def _with_target(
    table: pl.DataFrame, name: str, source: ColumnSource, notes: Notes
) -> pl.DataFrame:
    target, kind = _target(name), schema.JOBS[name]
    if source.column is None:
        return _with_constant(table, target, source, kind, notes)
    table = table.with_columns(pl.col(source.column).alias(target))
    if kind == pl.String:
        text = pl.col(target).cast(pl.String)
        if source.values is not None:
            text = text.str.replace(_BY_WHOM, "")
            text = text.replace_strict(source.values, default=None, return_dtype=pl.String)
        return table.with_columns(text)
    if table.schema[target] == pl.String and source.time is None:
        table = accounting.with_amounts(table, target, name, source.column, source.factor)
    table = _as_numbers(table, target, source, notes, source.column)
    if source.since is not None:
        table = table.with_columns(pl.col(source.since).alias(_SINCE))
        table = _as_numbers(table, _SINCE, source, notes, source.since)
        if source.time is not None and name != "submit_seconds":
            ends, since = {source.column: _target(name)}, {source.since: _SINCE}
            table = _second_reading(table, since, "__target__submit_seconds", source, notes)
            table = _second_reading(table, ends, _SINCE, source, notes)
        table = _difference(table, name, notes)
    elif "bytes" not in name:
        table = _without(table, name, pl.col(target).is_in(accounting.UNSET), "unset", notes)
    table = table.with_columns(pl.col(target) * source.factor)
    if not kind.is_integer():
        return table
    number = table[target].round()
    wrong = (~(number.abs() < mappings.LARGEST_WHOLE)).fill_null(value=False)
    table = table.with_columns(pl.when(~wrong).then(number).cast(kind).alias(target))
    mappings.count_malformed(table, wrong, number, notes, source.column, "a whole number")
    return table.filter(~wrong)


def _second_reading(
    table: pl.DataFrame, read: dict[str, str], earliest: str, source: ColumnSource, notes: Notes
) -> pl.DataFrame:
    """The table with times that clocks showed twice read as the second where the first is too soon.

    ``read`` is the column of their text to that of the first readings, in Unix seconds.
    """
    ((text, column),) = read.items()
    apart = _CLOCKS_APART_SECONDS if earliest == _target("submit_seconds") else 0.0
    early = pl.col(column) + apart < pl.col(earliest)
    if table.schema[text] != pl.String or not table.select(early.any()).item():
        return table
    later = mappings.later_unix_seconds(table[text], source.time or "", source.zone)
    is_second = early & (later > pl.col(column)) & (later >= pl.col(earliest))
    taken = table.select(is_second.fill_null(value=False)).to_series()
    expected = "a time that is not too soon, or its offset from UTC"
    notes.repair_rows("took_second_of_two_local_times", table, taken, text, expected)
    return table.with_columns(pl.when(taken).then(later).otherwise(pl.col(column)).alias(column))


def _difference(table: pl.DataFrame, name: str, notes: Notes) -> pl.DataFrame:
    """The times since others; unknown where one of them never was, which 0 stands for.

    That is so of Unix times, and of others by the clock of submissions that came later.
    """
    target = pl.col(_target(name))
    both = (target, pl.col(_SINCE))
    is_unix = pl.max_horizontal(both) >= UNIX_TIMES_BEGIN
    submit = pl.col(_target("submit_seconds"))
    submitted_later = submit.is_between(_CLOCKS_APART_SECONDS, pl.max_horizontal(both), "right")
    never = is_unix & (pl.min_horizontal(both) < _EPOCH_SECONDS)
    never |= (pl.min_horizontal(both) == 0.0) & submitted_later
    table = _without(table, name, never, "time_zero", notes)
    table = table.with_columns(target - pl.col(_SINCE))
    if name == "runtime_seconds":
        return accounting.without_suspension(table, _target(name), notes)
    if name == "recorded_wait_seconds":
        early = table[_target(name)].is_between(-_CLOCKS_APART_SECONDS, 0.0, closed="left")
        expected = "a start that is not before the submission"
        early = early.fill_null(value=False)
        notes.repair_rows("zero_for_early_start", table, early, _target(name), expected)
        return table.with_columns(pl.when(early).then(0.0).otherwise(target).alias(_target(name)))
    return table


def _without_unended(table: pl.DataFrame, mapping: Mapping, notes: Notes) -> pl.DataFrame:
    """The table without runtimes of jobs that still run by their state: what they ran so far."""
    status, name = mapping.columns.get("status"), "runtime_seconds"
    if status is None or status.column is None or name not in mapping.columns:
        return table
    state = pl.col(status.column).cast(pl.String).str.strip_chars().str.to_uppercase()
    unended = _UNENDED - {each.upper() for each in status.values or ()}
    if table.select((state.str.len_chars() < 2).all()).item():  # of a code with a letter a state
        unended -= {"S"}  # where it may be success
    return _without(
        table, name, state.is_in(unended) & pl.col(_target(name)).is_not_null(), "unended", notes
    )


def _without(
    table: pl.DataFrame, name: str, unset: pl.Expr, why: str, notes: Notes
) -> pl.DataFrame:
    """The table without amounts of a column that stand for none."""
    target = _target(name)
    wrong = table.select(unset.fill_null(value=False)).to_series()
    notes.repair_rows(f"unknown_for_{why}_{name}", table, wrong, target, "an amount")
    return table.with_columns(pl.when(~wrong).then(pl.col(target)).alias(target))


def _with_shape(table: pl.DataFrame, mapping: Mapping) -> pl.DataFrame:
    """The table with tasks and their cpus: as allocated, or 1, where nothing else is mapped."""
    tasks, cpus = _target("tasks"), _target("cpus_per_task")
    if tasks in table.columns or cpus in table.columns or "allocated_cpus" not in mapping.columns:
        given = {tasks: pl.lit(1), cpus: pl.lit(1.0)}
    else:
        held = pl.col(_target("allocated_cpus"))
        is_whole = held == held.floor()
        given = {
            tasks: pl.when(held > 0).then(pl.when(is_whole).then(held).otherwise(1)).cast(pl.Int64),
            cpus: pl.when(is_whole.fill_null(value=True)).then(1.0).otherwise(held),
        }
    return table.with_columns(**{k: v for k, v in given.items() if k not in table.columns})


def _with_constant(
    table: pl.DataFrame, target: str, source: ColumnSource, kind: pl.DataType, notes: Notes
) -> pl.DataFrame:
    try:
        constant = pl.Series(target, [source.constant], strict=False).cast(kind)
    except pl.exceptions.PolarsError as error:
        raise InputError(
            "a constant of the wrong type",
            source=notes.path,
            field=target.removeprefix("__target__"),
            value=source.constant,
            expected=str(kind),
        ) from error
    return table.with_columns(pl.lit(constant[0], dtype=kind).alias(target))


def _as_numbers(
    table: pl.DataFrame, column: str, source: ColumnSource, notes: Notes, said: str
) -> pl.DataFrame:
    if table.schema[column] == pl.String:
        known = ~pl.col(column).is_in(accounting.UNKNOWN_WORDS)
        table = table.with_columns(pl.when(known).then(pl.col(column)).alias(column))
    if source.time is not None and table.schema[column] == pl.String:
        return mappings.unix_seconds(table, column, source.time, notes, source.zone, said)
    return mappings.with_numbers(table, [column], notes, said=said)
