"""Parquet files that a user hands in: read, or refused; nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import polars as pl

from foresail.model.errors import InputError


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
        problem = "the Parquet file is damaged, or is none"
        raise InputError(problem, source=source, expected="a complete Parquet file") from error
