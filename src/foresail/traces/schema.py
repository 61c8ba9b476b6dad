"""The columns of the canonical tables, whatever a workload was read from. Unknown is null."""

from __future__ import annotations

from collections.abc import Mapping
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
    "after_jobs": pl.String(),
    "deadline_seconds": pl.Float64(),
    "value": pl.Float64(),
    "preferred": pl.String(),
    "slowdown_elsewhere": pl.Float64(),
    "strl": pl.String(),
    "extra": pl.String(),
}
"""One row a job. ``runtime_seconds``, the recorded wait, the status and what was used are the
truth; all else is the specification. ``used_cpu_seconds`` is the average over processors, as SWF
has it; ``used_memory_bytes`` is per task. ``after_jobs`` names the jobs that must have completed
before it may start (comma-separated), whenever that is; ``after_job_id`` is one whose end a
recorded submission has already waited for. ``preferred`` says where the job runs best, and
``slowdown_elsewhere`` how many times longer it runs where that is not given: ``partition:a,b`` (all
tasks in these partitions), ``attribute:gpu`` (on nodes that have it), ``same:rack`` (all tasks in
one rack), ``spread:rack`` (no two tasks in one rack). ``strl`` is a request of the job's own
instead: the places where it may run, and nowhere else. ``extra`` keeps what the source had beyond
its columns.
Columns with other names are features: strings that predictors may use."""

TASKS: Final[dict[str, pl.DataType]] = {
    "job_id": pl.String(),
    "stage": pl.String(),
    "after_stages": pl.String(),
    "task": pl.Int64(),
    "runtime_seconds": pl.Float64(),
    "cpus": pl.Float64(),
    "memory_bytes": pl.Float64(),
}
"""One row a task: its stage, the names of the stages that must have ended first (comma-separated,
null for none), its number within the stage, its real runtime, and what it asked for."""

USAGE: Final[dict[str, pl.DataType]] = {
    "job_id": pl.String(),
    "task": pl.Int64(),
    "start_seconds": pl.Float64(),
    "end_seconds": pl.Float64(),
    "average_cpus": pl.Float64(),
    "maximum_cpus": pl.Float64(),
    "sampled_cpus": pl.Float64(),
    "average_memory_bytes": pl.Float64(),
    "maximum_memory_bytes": pl.Float64(),
}
"""One row per task and measured period: averages and maxima over it, and ``sampled_cpus``, the use
in one second chosen at random within it. Where ``meta.header`` has ``memory_unit``, memory is in
that unit instead of bytes."""

STAGE: Final = "stage"
"""A further column of usage, where jobs have several stages: of which of them the task is, which is
numbered within it. Null, or no such column: of the only one, or of the one without a name."""

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

SPEED: Final = "speed"
"""A further column of nodes, where they differ: what takes t seconds at speed 1 takes t / speed."""

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
    "deadline_seconds": pl.Float64(),
    "nominal_runtime_seconds": pl.Float64(),
    "accepted": pl.Boolean(),
    "eligible_seconds": pl.Float64(),
}
"""One row per attempt that ended, and one without attempt, start and end for a job that never
started. ``predicted_*`` is the belief at submission (mean, 10 % and 90 % quantile). The nominal
runtime is the real one where the job runs best, without noise and limits: it says how much work was
done, however slowly; null where only what happened is known (a live cluster). ``accepted`` says
whether the job's request for a reservation was; null where it made none. ``eligible_seconds`` is
when the job could first have started, had there been room: after those that it waits for, its
begin, and what it could not have ended before; null: from its submission on."""

PARTITION: Final = "partition"
"""A last column of schedules on a divided machine: the partitions that the job names, or null."""

PARTS: Final[dict[str, pl.DataType]] = {"stage": pl.String(), "tasks": pl.String()}
"""Further columns of schedules of jobs that started in parts: a row per attempt of each part. The
stage's name is null where a row is of a whole job, and the numbers of tasks (comma-separated, from
0 on) where it is of all of a stage. ``cpus`` are then those of the part, and of its nominal runtime
nothing is said."""


def laid_out(table: pl.DataFrame, columns: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """The table with these columns alone, in this order and cast; those that it lacks are null."""
    return table.select(
        (pl.col(name) if name in table.columns else pl.lit(None)).cast(kind).alias(name)
        for name, kind in columns.items()
    )


def canonical_jobs(table: pl.DataFrame) -> pl.DataFrame:
    """A table with every column of ``JOBS`` in order, then its features."""
    features = [name for name in table.columns if name not in JOBS]
    return laid_out(table, JOBS | {name: table.schema[name] for name in features})
