"""Facts of a log: size, span, load and window, and what was done to its rows (provenance)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from foresail import __version__
from foresail.model.distribution import Floats, Integers
from foresail.traces import schema
from foresail.traces.workload import Oddity, Workload

_MOST_OUTSIDE: Final = 100
"""One job in so many may be outside of a log's window at either end,"""
_LEAST_GAP: Final = 0.1
"""if no job was submitted for such a share of the log's span between these and all others."""


def in_window(submit_seconds: pl.Series) -> pl.Series:
    """Return which submissions are in the window that a log is of; unknown ones are.

    Accounting of a week has the jobs that ran in it, of which one may have been submitted long
    before: that is no month of an idle machine.
    """
    ordered = submit_seconds.drop_nulls().sort().to_numpy()
    most = ordered.size // _MOST_OUTSIDE
    inside = pl.repeat(True, submit_seconds.len(), eager=True)
    if not most:
        return inside
    wide = np.flatnonzero(np.diff(ordered) > _LEAST_GAP * (ordered[-1] - ordered[0]))
    before, after = wide[wide < most], wide[wide >= ordered.size - 1 - most]
    if before.size:
        inside &= submit_seconds >= ordered[before[-1] + 1]
    if after.size:
        inside &= submit_seconds <= ordered[after[0]]
    return inside.fill_null(value=True)


def offered_load(
    width: Floats | Integers, runtime_seconds: Floats, capacity: float, seconds: float
) -> float:
    """Work of all jobs over what the machine can do in that time (3Sigma section 6.3).

    Widths and the capacity are nodes, or cpus; shapes are (jobs,).
    """
    return float(np.sum(width * runtime_seconds)) / (capacity * seconds)


@dataclass(frozen=True, slots=True)
class Treatment:
    """Rows repaired, dropped, folded or filled in for one cause, and the first of them."""

    cause: str
    rows: int
    example: str | None


@dataclass(frozen=True, slots=True)
class Provenance:
    """All that was done between a source and figures of its jobs, and what is odd about these."""

    foresail: str
    source: str
    sha256: str | None
    reader: str
    jobs: int
    treated: tuple[Treatment, ...]
    findings: tuple[Oddity, ...]

    def as_json(self) -> dict[str, Any]:
        """The same for programs; ``findings`` stand beside it."""
        plain = asdict(self)
        findings = plain.pop("findings")
        return {"provenance": plain, "findings": findings}


def provenance_of(workload: Workload) -> Provenance:
    """Return where figures of a workload come from, which was read and cleaned."""
    meta = workload.meta
    lost = {each.repair for each in meta.lost}
    done = [*sorted(meta.repairs.items()), *meta.filters]
    treated = [
        *(
            Treatment(f"{each.repair}: expected {each.expected}", each.rows, each.example)
            for each in meta.lost
        ),
        *(
            Treatment(cause, rows, meta.examples.get(cause))
            for cause, rows in done
            if rows and cause not in lost
        ),
    ]
    return Provenance(
        __version__,
        meta.source,
        meta.sha256,
        meta.reader,
        len(workload),
        tuple(treated),
        workload.findings,
    )


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
    """Time from the first submission to the last of the window that the log is of."""
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
