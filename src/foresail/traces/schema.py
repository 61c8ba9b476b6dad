"""The columns of the canonical tables, whatever a workload was read from. Unknown is null."""

from __future__ import annotations

from typing import Final

import polars as pl

JOBS: Final[dict[str, pl.DataType]] = {
    "job_id": pl.String(),
    "submit_seconds": pl.Float64(),
    "recorded_wait_seconds": pl.Float64(),
    "runtime_seconds": pl.Float64(),
    "tasks": pl.Int64(),
    "cpus_per_task": pl.Float64(),
    "memory_bytes_per_task": pl.Float64(),
    "gpus_per_task": pl.Float64(),
    "requested_seconds": pl.Float64(),
    "allocated_cpus": pl.Float64(),
    "used_cpu_seconds": pl.Float64(),
    "used_memory_bytes": pl.Float64(),
    "status": pl.String(),
    "user": pl.String(),
    "group": pl.String(),
    "queue": pl.String(),
    "partition": pl.String(),
    "executable": pl.String(),
    "after_job_id": pl.String(),
    "think_seconds": pl.Float64(),
    "deadline_seconds": pl.Float64(),
    "value": pl.Float64(),
    "extra": pl.String(),
}
"""One row a job. ``runtime_seconds``, the recorded wait, the status and what was used are the
truth; all else is the specification. ``used_cpu_seconds`` is the average over processors, as SWF
has it; ``used_memory_bytes`` is per task. ``extra`` keeps what the source had beyond its columns.
Columns with other names are features: strings that predictors may use."""

NODES: Final[dict[str, pl.DataType]] = {
    "node": pl.String(),
    "partition": pl.String(),
    "count": pl.Int64(),
    "cpus": pl.Float64(),
    "memory_bytes": pl.Float64(),
    "gpus": pl.Float64(),
    "model": pl.String(),
}
"""One row a node, or a row for ``count`` equal nodes."""

STATUSES: Final = ("completed", "failed", "cancelled", "partial", "unknown")

SCHEDULE: Final[dict[str, pl.DataType]] = {
    "job_id": pl.String(),
    "attempt": pl.Int64(),
    "submit_seconds": pl.Float64(),
    "start_seconds": pl.Float64(),
    "end_seconds": pl.Float64(),
    "cpus": pl.Float64(),
    "user": pl.String(),
    "requested_seconds": pl.Float64(),
    "predicted_seconds": pl.Float64(),
    "predicted_low_seconds": pl.Float64(),
    "predicted_high_seconds": pl.Float64(),
    "corrections": pl.Int64(),
    "backfilled": pl.Boolean(),
    "placement": pl.String(),
    "ended_because": pl.String(),
}
"""One row per attempt that ended. ``predicted_*`` is the belief at submission (mean, 10 % and 90 %
quantile)."""
