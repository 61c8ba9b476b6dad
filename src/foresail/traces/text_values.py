"""Texts of a table turned to numbers, and to times."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Final

import polars as pl

from foresail.model.errors import InputError
from foresail.traces.reading import FIRST_OF_TWO, LINE, Notes

LARGEST_WHOLE: Final = 2.0**53
"""From here on not every whole number is a float."""
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
