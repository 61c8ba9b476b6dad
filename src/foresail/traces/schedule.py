"""Schedule: what happened to every job of a run; metrics and reports are functions of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl


@dataclass(frozen=True)
class ScheduleMeta:
    """What produced a schedule.

    Parameters
    ----------
    policy
        Short form of scheduler, predictor and correction.
    processors
        Processors (cpus) of the cluster.
    workload
        Source of the workload.
    conventions
        Name of the replay's conventions.
    counters
        Counts a replay keeps: passes, corrections, head jobs whose reservation moved later.
    replay_seconds
        Seconds the replay proper took.
    engine
        What carried it out; None: a real run, as earlier versions wrote it.
    lost
        What of the workload's source is in no job, for people.
    """

    policy: str
    processors: float
    workload: str
    conventions: str = "standard"
    counters: Mapping[str, float] = field(default_factory=dict)
    replay_seconds: float | None = None
    manifest: Mapping[str, Any] = field(default_factory=dict)
    engine: str | None = None
    lost: Sequence[str] = ()


@dataclass(frozen=True)
class Schedule:
    """Attempts that ended and jobs that never started, as ``schema.SCHEDULE``, by submission.

    Where jobs started in parts, the columns of ``schema.PARTS`` follow.
    """

    jobs: pl.DataFrame
    meta: ScheduleMeta
