"""Parquet files: those that a user hands in are read, or refused; ours are written whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import polars as pl

from foresail.model.errors import InputError
from foresail.model.whole_files import require_replaceable


@contextmanager
def parquet_of(source: object) -> Iterator[None]:
    """What goes wrong while a Parquet file is read is about the file.

    Polars panics, which is no ``Exception``, where what a damaged file says of itself cannot be.

    Raises
    ------
    InputError
        If the file cannot be opened, is not Parquet, or is damaged.
    """
    try:
        yield
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise damaged(source) from error


def damaged(source: object) -> InputError:
    """The error about a file that is no Parquet file, or is damaged."""
    problem = "the Parquet file is damaged, or is none"
    return InputError(problem, source=source, expected="a complete Parquet file")


def write_whole_parquet(
    table: pl.DataFrame, path: Path, metadata: dict[str, str] | None = None
) -> None:
    """Write a table; the file appears whole or not at all.

    Raises
    ------
    InputError
        If it cannot be written there, or something that is no file is there.
    """
    require_replaceable(path)
    partial = path.with_name(f".{path.name}.partial")
    try:
        table.write_parquet(partial, metadata=metadata)
        partial.replace(path)
    except (OSError, pl.exceptions.ComputeError) as error:
        with suppress(OSError):
            partial.unlink()
        problem = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be written: {problem}", source=path) from error
