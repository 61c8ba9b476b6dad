"""The schedule of a run, in memory and on disk, and what tasks used of shared nodes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import polars as pl

from foresail.model.documents import parsed_json
from foresail.model.errors import InputError
from foresail.traces import schema
from foresail.traces.parquet import parquet_of, require_possible_pages, write_whole_parquet


@dataclass(frozen=True)
class ScheduleMeta:
    """The run that made a schedule."""

    policy: str
    """Short form of scheduler, predictor and correction."""
    processors: float
    """Processors (cpus) of the cluster."""
    workload: str
    """Source of the workload."""
    conventions: str = "standard"
    """Name of the replay's conventions."""
    capacity: Sequence[tuple[float, float]] = ()
    """Capacity where nodes come and go: from when on (seconds) there are so many cpus, in order;
    those of the first hold before it too. None: always ``processors``, else these are the most."""
    counters: Mapping[str, float] = field(default_factory=dict)
    """Counts a replay keeps: passes, corrections, head jobs whose reservation moved later."""
    replay_seconds: float | None = None
    """Seconds the replay proper took."""
    manifest: Mapping[str, Any] = field(default_factory=dict)

    engine: str | None = None
    """The engine that carried it out; None: a real run, as earlier versions wrote it."""
    unit: str = "processor"
    """The thing that a cpu of the workload stands for."""
    lost: Sequence[str] = ()
    """Rows of the workload's source that are in no job, for people."""
    partitions: Mapping[str, float] = field(default_factory=dict)
    """Cpus by partition (``a,b``: those that belong to both); empty for one pool."""
    partitions_said: str = ""
    """Says how these are known, or why partitions are one pool, for people."""


@dataclass(frozen=True)
class Schedule:
    """Attempts that ended and jobs that never started, as ``schema.SCHEDULE``, by submission.

    Where jobs started in parts, the columns of ``schema.PARTS`` follow; on a divided machine,
    ``schema.PARTITION``.
    """

    jobs: pl.DataFrame
    meta: ScheduleMeta

    @classmethod
    def from_columns(cls, columns: Mapping[str, Any], meta: ScheduleMeta) -> Schedule:
        """Return the schedule of these columns, with those of parts where there are stages.

        What a replay does not know, and gives no column for, is null.
        """
        every = schema.SCHEDULE | (schema.PARTS if "stage" in columns else {})
        known = pl.DataFrame(columns, schema_overrides={name: every[name] for name in columns})
        return cls(schema.laid_out(known, every), meta)


def with_partitions(
    schedule: Schedule, jobs: pl.DataFrame, partitions: Mapping[str, float], said: str
) -> Schedule:
    """The schedule of these jobs with the partitions of its machine, and which each job names."""
    meta = replace(schedule.meta, partitions=dict(partitions), partitions_said=said)
    named = jobs.select("job_id", "partition") if partitions else None
    rows = schedule.jobs
    if named is not None:
        rows = rows.join(named, on="job_id", how="left", maintain_order="left")
    return Schedule(rows, meta)


_KEY: Final = "foresail.schedule"


def write_schedule(schedule: Schedule, path: Path) -> None:
    """Write a schedule; the file appears whole or not at all.

    Raises ``InputError`` if it cannot be written there.
    """
    meta = json.dumps(dataclasses.asdict(schedule.meta))
    write_whole_parquet(schedule.jobs, path, {_KEY: meta})


def read_schedule(path: Path) -> Schedule:
    """Read a schedule back.

    Raises ``InputError`` if the file is not a schedule.
    """
    require_possible_pages(path)
    with parquet_of(path):
        meta = pl.read_parquet_metadata(path).get(_KEY)
        jobs = pl.read_parquet(path)
    if meta is None:
        raise InputError("not a schedule", source=path, expected="a file written by a run")
    in_parts = [name for name in schema.PARTS if name in jobs.columns]
    columns = schema.SCHEDULE | (schema.PARTS if in_parts else {})
    if jobs.drop(schema.PARTITION, strict=False).schema != pl.Schema(columns):
        raise InputError("not the columns of a schedule", source=path, value=jobs.columns)
    try:
        found = ScheduleMeta(**parsed_json(meta, path))
        capacity = tuple((seconds, cpus) for seconds, cpus in found.capacity)
        return Schedule(jobs, replace(found, lost=tuple(found.lost), capacity=capacity))
    except (TypeError, ValueError) as error:
        raise InputError(f"not a schedule: {error}", source=path) from error


def use_file(log: Path) -> Path:
    """Return the file with the use of the machines of a run, by its event log."""
    return log.with_suffix(".use.parquet")
