"""Schedule: what happened to every job of a run; metrics and reports are functions of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl


@dataclass(frozen=True)
class ScheduleMeta:
    """What produced a schedule."""

    policy: str
    """Short form of scheduler, predictor and correction."""
    processors: float
    """Processors (cpus) of the cluster."""
    workload: str
    """Source of the workload."""
    conventions: str = "standard"
    """Name of the replay's conventions."""
    capacity: Sequence[tuple[float, float]] = ()
    """Where nodes come and go: from when on (seconds) there are so many cpus, in order; those of
    the first hold before it too. None: always ``processors``, which otherwise are the most."""
    counters: Mapping[str, float] = field(default_factory=dict)
    """Counts a replay keeps: passes, corrections, head jobs whose reservation moved later."""
    replay_seconds: float | None = None
    """Seconds the replay proper took."""
    manifest: Mapping[str, Any] = field(default_factory=dict)

    engine: str | None = None
    """What carried it out; None: a real run, as earlier versions wrote it."""
    unit: str = "processor"
    """What a cpu of the workload stands for."""
    lost: Sequence[str] = ()
    """What of the workload's source is in no job, for people."""
    partitions: Mapping[str, float] = field(default_factory=dict)
    """Cpus by partition (``a,b``: those that belong to both); empty for one pool."""
    partitions_said: str = ""
    """How these are known, or why partitions are one pool, for people."""


@dataclass(frozen=True)
class Schedule:
    """Attempts that ended and jobs that never started, as ``schema.SCHEDULE``, by submission.

    Where jobs started in parts, the columns of ``schema.PARTS`` follow; on a divided machine,
    ``schema.PARTITION``.
    """

    jobs: pl.DataFrame
    meta: ScheduleMeta


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
