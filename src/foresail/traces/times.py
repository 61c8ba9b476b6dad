"""Times written as text turned into Unix seconds."""

from __future__ import annotations

import warnings

import polars as pl

from foresail.model.errors import InputError
from foresail.traces.delimited import count_malformed
from foresail.traces.reading import Notes


def unix_seconds(
    chunk: pl.DataFrame, column: str, pattern: str, notes: Notes, zone: str, said: str
) -> pl.DataFrame:
    """The chunk with a string column of times turned into Unix seconds (float).

    Rows whose time does not follow the pattern are dropped and counted.

    The pattern is as ``strptime`` has it; an offset from UTC within it takes precedence over
    ``zone``. Of an hour that a zone repeated the first is taken; one that it skipped is no time.
    ``said`` is what errors call the column.

    Raises
    ------
    InputError
        If pattern or zone are unusable; when strict, if rows had to be dropped.
    """
    text = chunk[column]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pl.exceptions.PolarsWarning)
            time = _parsed(text, pattern, zone)
    except (pl.exceptions.PolarsError, pl.exceptions.PolarsWarning) as error:
        raise InputError(
            f"the time format is unusable: {str(error).partition(chr(10))[0]}",
            source=notes.path,
            field=said,
            value=f"{pattern} in zone {zone}",
        ) from error
    wrong = text.is_not_null() & time.is_null()
    chunk = chunk.with_columns((time.dt.epoch("ms") / 1000.0).alias(column))
    count_malformed(chunk, wrong, text, notes, said, f"a time like {pattern}")
    return chunk.filter(~wrong)


def _parsed(text: pl.Series, pattern: str, zone: str) -> pl.Series:
    if "%z" in pattern or "%:z" in pattern:
        return text.str.to_datetime(pattern, strict=False, time_zone="UTC", time_unit="ms")
    local = text.str.to_datetime(pattern, strict=False, time_unit="ms")
    return local.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
