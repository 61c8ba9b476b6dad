"""The facts of a workload that people ask for first: how many jobs, how long and how wide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from foresail.traces import schema
from foresail.traces.load import in_window
from foresail.traces.workload import Workload

QUANTILES = (0.1, 0.5, 0.9, 0.99, 1.0)


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts of a workload; what the workload does not know is None."""

    source: str
    reader: str
    jobs: int
    users: int
    queues: int
    processors: int | None
    origin_unix_seconds: float | None
    time_zone: str | None

    span_seconds: float
    """From the first submission to the last of the window that the log is of."""
    outside_window: int
    """Jobs submitted long before or after it."""
    work_cpu_seconds: float

    offered_load: float | None
    """Work of all jobs within it (cpu-seconds) over what the machine could do in the span."""
    quantiles: Mapping[str, tuple[float, ...]]
    """Column name to values at ``QUANTILES`` (seconds, or cpus) over jobs where it is known."""
    mean: Mapping[str, float]
    """Column name to mean value over those jobs."""
    known: Mapping[str, float]
    """Column name to the share of jobs for which it is known, for all canonical columns."""
    repairs: Mapping[str, int]
    filters: tuple[tuple[str, int], ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """Canonical columns of which nothing is known."""
        return tuple(name for name, share in self.known.items() if share == 0)


def facts(workload: Workload) -> Facts:
    """Facts of a workload that has at least one job."""
    jobs, meta = workload.jobs, workload.meta
    cpus = (jobs["tasks"] * jobs["cpus_per_task"]).alias("cpus")
    kept = in_window(jobs["submit_seconds"])
    submit = jobs["submit_seconds"].filter(kept).drop_nulls()
    span = submit[-1] - submit[0] if submit.len() else 0.0
    columns = (
        *(jobs[name] for name in ("runtime_seconds", "requested_seconds", "recorded_wait_seconds")),
        cpus,
    )
    known = {column.name: column.drop_nulls() for column in columns}
    known = {name: column for name, column in known.items() if column.len()}
    held = (cpus * jobs["runtime_seconds"]).filter(kept)
    work = float(held.fill_null(0.0).to_numpy().sum())
    capacity = (meta.processors or 0) * span
    return Facts(
        source=meta.source,
        reader=meta.reader,
        jobs=jobs.height,
        users=jobs["user"].drop_nulls().n_unique(),
        queues=jobs["queue"].drop_nulls().n_unique(),
        processors=meta.processors,
        origin_unix_seconds=meta.origin_unix_seconds,
        time_zone=meta.time_zone,
        span_seconds=span,
        work_cpu_seconds=work,
        offered_load=work / capacity if capacity else None,
        outside_window=int((~kept).sum()),
        quantiles={name: _quantiles(column) for name, column in known.items()},
        mean={name: float(column.to_numpy().mean()) for name, column in known.items()},
        known={name: 1.0 - jobs[name].null_count() / jobs.height for name in schema.JOBS},
        repairs=dict(meta.repairs),
        filters=meta.filters,
    )


def _quantiles(column: pl.Series) -> tuple[float, ...]:
    ordered = column.cast(pl.Float64).sort()
    last = ordered.len() - 1
    return tuple(float(ordered[round(level * last)]) for level in QUANTILES)
