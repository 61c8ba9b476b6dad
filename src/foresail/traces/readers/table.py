"""Any table of jobs (CSV or Parquet), by a column mapping file."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from foresail.model.errors import InputError
from foresail.model.example import Example
from foresail.model.registry import register
from foresail.traces import schema
from foresail.traces.delimited import LARGEST_WHOLE, count_malformed, read_delimited, with_numbers
from foresail.traces.nearest import nearest
from foresail.traces.parquet import parquet_of
from foresail.traces.parquet_pages import require_possible_pages
from foresail.traces.reading import LINE, UNIX_TIMES_BEGIN, Notes, Sample
from foresail.traces.times import unix_seconds

if TYPE_CHECKING:
    from foresail.traces.mapping import ColumnSource, Mapping

_PARQUET_MAGIC: Final = "PAR1"
_ROWS_AT_ONCE: Final = 1 << 17
_SINCE: Final = "__since__"
_DEFAULTS: Final = {"tasks": 1, "cpus_per_task": 1.0}


@dataclass(frozen=True)
class TableParameters:
    """Options of the reader.

    Parameters
    ----------
    mapping
        The column mapping file (TOML); ``foresail.traces.mapping`` shows one.
    """

    mapping: Path | None = None


_EXAMPLE: Final = """\
JobID,Submit,Start,End,Limit,Cores,State,JobName
17,2024-03-01T10:00:00,2024-03-01T10:00:05,2024-03-01T11:00:05,90,4,COMPLETED,fit
18,2024-03-01T10:02:00,2024-03-01T10:03:00,2024-03-01T10:04:00,5,1,TIMEOUT,"sort, all"
"""
_EXAMPLE_MAPPING: Final = """\
[table]
delimiter = ","
null = ["NA"]
processors = 64

[columns]
job_id = "JobID"
submit_seconds = { column = "Submit", time = "%Y-%m-%dT%H:%M:%S", zone = "Europe/Paris" }
runtime_seconds = { column = "End", since = "Start", time = "%Y-%m-%dT%H:%M:%S" }
requested_seconds = { column = "Limit", unit = "minutes" }
tasks = { column = "Cores" }
cpus_per_task = { constant = 1 }
status = { column = "State", values = { COMPLETED = "completed", TIMEOUT = "failed" } }

[features]
application = "JobName"
"""


@register("reader", "table", parameters=TableParameters)
class TableReader:
    """Any CSV or Parquet table of jobs, by a file that maps its columns.

    Ids are row numbers where no column holds them; tasks and cpus per task are 1 where nothing says
    otherwise. Times that are written out, or look like Unix times, count from the first submission.
    """

    def __init__(self, parameters: TableParameters) -> None:
        self._mapping = _mapping_of(parameters.mapping)

    @staticmethod
    def examples() -> tuple[Example, ...]:
        """Small files of the layout."""
        table = io.BytesIO()
        pl.read_csv(_EXAMPLE.encode()).write_parquet(table)
        mapping = _EXAMPLE_MAPPING.encode()
        text = {"jobs.csv": _EXAMPLE.encode(), "mapping.toml": mapping}
        parquet = {"jobs.parquet": table.getvalue(), "mapping.toml": mapping}
        options = {"mapping": "mapping.toml"}
        return (
            Example(text, "jobs.csv", options),
            Example(parquet, "jobs.parquet", options),
        )

    def recognises(self, sample: Sample) -> bool:
        """Any file, once a mapping is given; none without."""
        return self._mapping is not None and not sample.path.is_dir()

    def chunks(self, notes: Notes) -> Iterator[pl.DataFrame]:
        """The jobs, some ten thousand at a time."""
        if self._mapping is None:
            raise InputError("the reader 'table' needs a column mapping", source=notes.path)
        mapping = self._mapping
        notes.processors = mapping.table.processors
        is_parquet = Sample.of(notes.path).text.startswith(_PARQUET_MAGIC)
        chunks = _from_parquet if is_parquet else _from_text
        first = True
        for chunk in chunks(notes, mapping):
            jobs = _mapped(chunk, mapping, notes, header_lines=0 if is_parquet else 1)
            if first and jobs.height:
                submit = jobs["submit_seconds"][0]
                notes.unix_times = submit is not None and submit >= UNIX_TIMES_BEGIN
                first = False
            yield jobs


def _mapping_of(path: Path | None) -> Mapping | None:
    """Only tables need it, and what checks it takes long to import."""
    if path is None:
        return None
    from foresail.traces.mapping import load_mapping

    return load_mapping(path)


def _from_text(notes: Notes, mapping: Mapping) -> Iterator[pl.DataFrame]:
    columns = mapping.used
    for chunk in read_delimited(notes.source(), notes, columns, mapping.table.delimiter):
        yield chunk.with_columns(
            pl.when(~pl.col(name).is_in(mapping.table.null)).then(pl.col(name)) for name in columns
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
        lazy = pl.scan_parquet(notes.path).select(
            _plain(name, kinds[name]) for name in mapping.used
        )
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
    for target, source in mapping.columns.items():
        table = _with_target(table, _target(target), source, schema.JOBS[target], notes)
    made = [pl.col(_target(target)).alias(target) for target in mapping.columns]
    if "job_id" not in mapping.columns:
        made.append((pl.col(LINE) - header_lines).cast(pl.String).alias("job_id"))
    made += [
        pl.lit(value).alias(name) for name, value in _DEFAULTS.items()
        if name not in mapping.columns
    ]  # fmt: skip
    made += [pl.col(f"__feature__{name}").cast(pl.String).alias(name) for name in mapping.features]
    return table.select(*made, LINE)


def _target(name: str) -> str:
    return f"__target__{name}"


def _with_target(
    table: pl.DataFrame, target: str, source: ColumnSource, kind: pl.DataType, notes: Notes
) -> pl.DataFrame:
    if source.column is None:
        return _with_constant(table, target, source, kind, notes)
    table = table.with_columns(pl.col(source.column).alias(target))
    if kind == pl.String:
        text = pl.col(target).cast(pl.String)
        if source.values is not None:
            text = text.replace_strict(source.values, default=None, return_dtype=pl.String)
        return table.with_columns(text)
    table = _as_numbers(table, target, source, notes, source.column)
    if source.since is not None:
        table = table.with_columns(pl.col(source.since).alias(_SINCE))
        table = _as_numbers(table, _SINCE, source, notes, source.since)
        table = table.with_columns(pl.col(target) - pl.col(_SINCE))
    table = table.with_columns(pl.col(target) * source.factor)
    if not kind.is_integer():
        return table
    number = table[target].round()
    wrong = (~(number.abs() < LARGEST_WHOLE)).fill_null(value=False)
    table = table.with_columns(pl.when(~wrong).then(number).cast(kind).alias(target))
    count_malformed(table, wrong, number, notes, source.column, "a whole number")
    return table.filter(~wrong)


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
    if source.time is not None and table.schema[column] == pl.String:
        return unix_seconds(table, column, source.time, notes, source.zone, said)
    return with_numbers(table, [column], notes, said=said)
