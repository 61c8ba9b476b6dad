"""A schedule on disk: one Parquet file, what produced it in the file's metadata."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace
from pathlib import Path
from typing import Final

import polars as pl

from foresail.model.documents import parsed_json
from foresail.model.errors import InputError
from foresail.traces import schema
from foresail.traces.parquet import parquet_of, write_whole_parquet
from foresail.traces.parquet_pages import require_possible_pages
from foresail.traces.schedule import Schedule, ScheduleMeta

_KEY: Final = "foresail.schedule"
_LATER: Final = frozenset({"accepted", "eligible_seconds"})


def write_schedule(schedule: Schedule, path: Path) -> None:
    """Write a schedule; the file appears whole or not at all.

    Raises
    ------
    InputError
        If it cannot be written there.
    """
    meta = json.dumps(dataclasses.asdict(schedule.meta))
    write_whole_parquet(schedule.jobs, path, {_KEY: meta})


def read_schedule(path: Path) -> Schedule:
    """Read a schedule back.

    Raises
    ------
    InputError
        If the file is not a schedule.
    """
    require_possible_pages(path)
    with parquet_of(path):
        meta = pl.read_parquet_metadata(path).get(_KEY)
        jobs = pl.read_parquet(path)
    if meta is None:
        raise InputError("not a schedule", source=path, expected="a file written by a run")
    in_parts = [name for name in schema.PARTS if name in jobs.columns]
    columns = schema.SCHEDULE | (schema.PARTS if in_parts else {})
    later = [pl.lit(None, columns[name]).alias(name) for name in _LATER - {*jobs.columns}]
    if later and {*jobs.columns} | _LATER == {*columns}:  # as it was before there were these
        jobs = jobs.with_columns(later).select(*columns)
    if jobs.drop(schema.PARTITION, strict=False).schema != pl.Schema(columns):
        raise InputError("not the columns of a schedule", source=path, value=jobs.columns)
    try:
        told = ScheduleMeta(**parsed_json(meta, path))
        capacity = tuple((seconds, cpus) for seconds, cpus in told.capacity)
        return Schedule(jobs, replace(told, lost=tuple(told.lost), capacity=capacity))
    except (TypeError, ValueError) as error:
        raise InputError(f"not a schedule: {error}", source=path) from error
