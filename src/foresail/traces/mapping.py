"""Mappings of columns in files of users, and what numbers and times in their text mean.

A mapping is a TOML file that says where a table's columns go in the canonical schema.

::

    [table]
    delimiter = ";"            # default ","
    null = ["", "NA", "-1"]    # texts that mean unknown; the empty text always does
    processors = 1024
    free_text = ["Comment"]    # columns that hold delimiters unquoted [JobName, SubmitLine]

    [columns]                  # canonical column = source column, or more about it
    job_id = "JobID"
    submit_seconds = { column = "Submit", time = "%Y-%m-%dT%H:%M:%S", zone = "Europe/Paris" }
    runtime_seconds = { column = "End", since = "Start", time = "%Y-%m-%dT%H:%M:%S" }
    requested_seconds = { column = "Limit", unit = "minutes" }
    tasks = { constant = 1 }
    status = { column = "State", values = { COMPLETED = "completed", TIMEOUT = "failed" } }

    [features]                 # further columns kept as text, which predictors may use
    application = "JobName"
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import polars as pl
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from foresail.model.documents import toml_of
from foresail.model.errors import InputError
from foresail.model.short_form import misfit
from foresail.traces import schema
from foresail.traces.delimited import nearest
from foresail.traces.reading import FIRST_OF_TWO, LINE, Notes

UNITS: Final = {
    "microseconds": 1e-6,
    "milliseconds": 1e-3,
    "seconds": 1.0,
    "minutes": 60.0,
    "hours": 3600.0,
    "days": 86400.0,
    "milli": 1e-3,
    "bytes": 1.0,
    "kB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
}
"""Factors that turn a number in this unit into one in the canonical unit."""

_REQUIRED: Final = ("submit_seconds",)
_DELIMITER: Final = r"^[\t !#-~]{1,8}$"
"""ASCII characters that are seen, or a blank, but the quote."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


_ALONE: Final = BeforeValidator(lambda text: {"column": text} if isinstance(text, str) else text)


class ColumnSource(_Strict):
    """The source of one canonical column."""

    column: str | None = None
    """The source column; or a ``constant`` instead of it."""
    constant: float | str | None = None

    since: str | None = None
    """Another source column that is subtracted (end minus start, for example)."""
    unit: str = "seconds"
    scale: float = Field(default=1.0, gt=0.0, allow_inf_nan=False)
    """A factor for numbers: by a name of ``UNITS``, and any other."""
    time: str | None = None
    zone: str = "UTC"
    """Pattern of times (as ``strptime`` has it), and the zone of those without an offset."""
    values: dict[str, str] | None = None
    """Texts and what they become; other texts become null."""

    @property
    def factor(self) -> float:
        """Return the factor for numbers."""
        return UNITS[self.unit] * self.scale

    @model_validator(mode="after")
    def _is_sensible(self) -> ColumnSource:
        if (self.column is None) == (self.constant is None):
            raise ValueError("give either a column or a constant")
        if self.unit not in UNITS:
            raise ValueError(f"unknown unit {self.unit!r}; known: {', '.join(UNITS)}")
        return self


class _TableLayout(_Strict):
    """Facts of the table as a whole."""

    delimiter: str = Field(default=",", pattern=_DELIMITER)
    null: tuple[str, ...] = ()
    free_text: tuple[str, ...] = ("JobName", "SubmitLine")
    """Columns that may hold the delimiter and line ends without quotes, as Slurm writes them."""
    processors: int | None = Field(default=None, gt=0)


class Mapping(_Strict):
    """A column mapping file."""

    table: _TableLayout = _TableLayout()
    columns: dict[str, Annotated[ColumnSource, _ALONE]]
    features: dict[str, str] = {}

    @property
    def used(self) -> tuple[str, ...]:
        """The source columns that the mapping names, each once."""
        named = [part for c in self.columns.values() for part in (c.column, c.since)]
        given = [name for name in (*named, *self.features.values()) if name is not None]
        return tuple(dict.fromkeys(given))


def _known_key(above: Sequence[str], name: str) -> str:
    """Return the keys that resemble one, in a section of the file or a column in it."""
    section = Mapping if not above else _TableLayout if above[0] == "table" else ColumnSource
    return nearest(name, section.model_fields)


def load_mapping(path: Path) -> Mapping:
    """Read a column mapping file.

    Raises ``InputError`` if it cannot be read, is not TOML, or names what does not exist (the
    nearest is offered).
    """
    try:
        mapping = Mapping.model_validate(toml_of(path))
    except ValidationError as error:
        raise misfit(error, path, _known_key) from error
    for name in mapping.columns:
        if name not in schema.JOBS:
            raise InputError(
                "no such canonical column",
                source=path,
                field=name,
                expected=nearest(name, schema.JOBS),
            )
    for name in mapping.features:
        if name in schema.JOBS:
            raise InputError(
                "a feature has the name of a canonical column", source=path, field=name
            )
    for name in _REQUIRED:
        if name not in mapping.columns:
            raise InputError("a required column is not mapped", source=path, field=name)
    return mapping


LARGEST_WHOLE: Final = 2.0**53
"""Number from which not every whole number is a float."""
_LARGEST_AMOUNT: Final = 1e100  # what is beyond is no measurement, and its sums would overflow


def with_numbers(
    chunk: pl.DataFrame,
    columns: Sequence[str],
    notes: Notes,
    *,
    required: Sequence[str] = (),
    whole: Sequence[str] = (),
    said: str | None = None,
) -> pl.DataFrame:
    """The chunk with some string columns turned to floats.

    Rows where one is not a finite number below 1e100, or where a required one is null, are dropped
    and counted; so are those where one that is to be whole is not, or is too large for a float to
    be sure.
    ``said`` is what errors call the column, if that is not its name.

    Raises
    ------
    InputError
        When strict and there are such rows.
    """
    wrong = chunk.select(_wrong(name, name in required, name in whole) for name in columns)
    numbers = chunk.with_columns(pl.col(columns).cast(pl.Float64, strict=False))
    if not wrong.select(pl.any_horizontal(pl.all()).any()).item():
        return numbers
    dropped = pl.repeat(False, chunk.height, eager=True)
    for name in columns:
        expected = "a whole number" if name in whole else "a number"
        count_malformed(chunk, wrong[name] & ~dropped, chunk[name], notes, said or name, expected)
        dropped |= wrong[name]
    return numbers.filter(~dropped)


def _wrong(column: str, required: bool, whole: bool) -> pl.Expr:
    """Test for texts that are no usable number."""
    text = pl.col(column)
    number = text.cast(pl.Float64, strict=False)
    usable = number.abs() < _LARGEST_AMOUNT
    if whole:
        usable &= (number == number.floor()) & (number.abs() < LARGEST_WHOLE)
    usable = usable.fill_null(value=False)
    return (~usable if required else text.is_not_null() & ~usable).alias(column)


def count_malformed(
    chunk: pl.DataFrame, wrong: pl.Series, text: pl.Series, notes: Notes, field: str, expected: str
) -> None:
    """Count the rows, which the caller drops, whose text is no value that can be used.

    Raises
    ------
    InputError
        When strict and there are such rows.
    """
    rows = pl.DataFrame([chunk[LINE], text.alias(field)])
    notes.repair_rows("dropped_malformed_line", rows, wrong, field, expected)


def unix_seconds(
    chunk: pl.DataFrame, column: str, pattern: str, notes: Notes, zone: str, said: str
) -> pl.DataFrame:
    """The chunk with a string column of times turned into Unix seconds (float).

    Rows whose time does not follow the pattern, or was skipped in the zone when clocks were put
    forward, are dropped and counted.

    The pattern is as ``strptime`` has it; an offset from UTC within it takes precedence over
    ``zone``. Of a time that a zone had twice, when clocks were put back, the first is taken, and
    counted. ``said`` is what errors call the column.

    Raises ``InputError`` if pattern or zone are unusable; when strict, if rows had to be dropped.
    """
    text = chunk[column]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pl.exceptions.PolarsWarning)
            written, time, later = _parsed(text, pattern, zone)
    except (pl.exceptions.PolarsError, pl.exceptions.PolarsWarning) as error:
        raise InputError(
            f"the time format is unusable: {str(error).partition(chr(10))[0]}",
            source=notes.path,
            field=said,
            value=f"{pattern} in zone {zone}",
        ) from error
    wrong = text.is_not_null() & written.is_null()
    skipped = written.is_not_null() & time.is_null()
    rows = pl.DataFrame([chunk[LINE], text.alias(said)])
    notes.repair_rows(
        "dropped_local_time_that_does_not_exist", rows, skipped, said, f"a time of clocks in {zone}"
    )
    expected = f"an offset from UTC beside a time that clocks in {zone} showed twice"
    notes.repair_rows(FIRST_OF_TWO, rows, time != later, said, expected)
    chunk = chunk.with_columns((time.dt.epoch("ms") / 1000.0).alias(column))
    count_malformed(chunk, wrong, text, notes, said, f"a time like {pattern}")
    return chunk.filter(~(wrong | skipped))


def later_unix_seconds(text: pl.Series, pattern: str, zone: str) -> pl.Series:
    """Times as ``unix_seconds`` has them, but the second of two; null where they are none."""
    return _parsed(text, pattern, zone)[2].dt.epoch("ms") / 1000.0


def _parsed(text: pl.Series, pattern: str, zone: str) -> tuple[pl.Series, pl.Series, pl.Series]:
    """Times as they are written, and in the zone; of one that the zone had twice, both."""
    if "%z" in pattern or "%:z" in pattern:
        time = text.str.to_datetime(pattern, strict=False, time_zone="UTC", time_unit="ms")
        return time, time, time
    local = text.str.to_datetime(pattern, strict=False, time_unit="ms")
    time = local.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    return local, time, local.dt.replace_time_zone(zone, ambiguous="latest", non_existent="null")
