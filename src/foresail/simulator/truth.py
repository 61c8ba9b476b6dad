"""The locked-away truth of a workload, checked before a simulation uses it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.model.errors import InputError
from foresail.model.event import Allocation
from foresail.model.protocols import Predictor
from foresail.traces.measured import used_by_job
from foresail.traces.partitions import largest_partitions
from foresail.traces.workload import LONGEST_RUNTIME_SECONDS, ONLY_STAGE, Workload

_WIDTH = pl.col("tasks") * pl.col("cpus_per_task")


def real_runtimes(workload: Workload, *, enforce_limits: bool = False) -> NDArray[np.float64]:
    """Real runtimes in seconds, a row per job in order of submission.

    With ``enforce_limits`` they are cut at the requested time. Raises ``InputError`` if there are
    no jobs, a runtime is unknown, negative or beyond belief, or a job is wider than the machine, or
    how wide it is unknown.
    """
    runtime = known_runtimes(workload)
    have = f"the machine's {workload.processors}"
    wide = workload.cpus > workload.processors
    if workload.partitions:
        wide = workload.jobs.select(largest_partitions(workload) < _WIDTH).to_series().to_numpy()
        have = "as many as a partition has that it may run in"
    filtered = f"at most {have}, or the filter drop_wider_than_machine"
    _refuse(workload, wide, "cpus", workload.cpus, filtered)
    if enforce_limits:
        requested = workload.jobs["requested_seconds"].fill_null(np.inf).to_numpy()
        runtime = np.minimum(runtime, requested)
    return runtime


def reveal(workload: Workload, predictor: Predictor) -> None:
    """Hand an oracle among predictors the truth: runtimes, and what tasks use if it needs that."""
    predictor.reveal(workload.truth())
    if predictor.needs_real_use:
        predictor.reveal_use(used_by_job(workload))


def known_runtimes(workload: Workload) -> NDArray[np.float64]:
    """Real runtimes in seconds as above, of jobs that may be wider than the machine, too.

    Raises ``InputError`` if there are no jobs, a runtime is unknown, negative or beyond belief, or
    it is unknown how many cpus a job holds.
    """
    if len(workload) == 0:
        raise workload.meta.nothing_left("no jobs to replay", "a log and filters that leave some")
    runtime = workload.runtime_seconds.copy()
    unknown = np.isnan(workload.cpus)
    _refuse(workload, unknown, "cpus", workload.cpus, "a number, or the filter drop_no_processors")
    known = "a known runtime, 0 or more, or the filter drop_no_runtime"
    _refuse(workload, ~(runtime >= 0), "runtime_seconds", runtime, known)
    endless = runtime > LONGEST_RUNTIME_SECONDS
    _refuse(workload, endless, "runtime_seconds", runtime, "seconds, fewer than of three centuries")
    return runtime


def runtimes_of_allocations(workload: Workload) -> Callable[[Allocation], float]:
    """Return the runtimes of allocations (seconds): of the job, or the longest of its tasks.

    Tasks are those of the tasks table, by their numbers within a stage, counted from 0.

    Raises ``InputError`` if the runtime of a task of these jobs is unknown, negative or beyond
    belief.
    """
    of_jobs = workload.truth()
    if workload.tasks is None:
        return lambda allocation: of_jobs[allocation.job_id]
    of_stages = _task_runtimes(workload.tasks, workload)

    def runtime_seconds(allocation: Allocation) -> float:
        job_id, stage, tasks, _ = allocation
        if not stage:
            return of_jobs[job_id]
        runtimes = of_stages[job_id, stage]
        return max(runtimes[task] for task in tasks) if tasks else max(runtimes)

    return runtime_seconds


def _task_runtimes(tasks: pl.DataFrame, workload: Workload) -> dict[tuple[str, str], list[float]]:
    """Runtimes of a stage's tasks in order of their numbers, by job and stage."""
    known = tasks.join(workload.jobs.select("job_id"), on="job_id", how="semi")
    runtime = pl.col("runtime_seconds")
    possible = runtime.is_between(0.0, LONGEST_RUNTIME_SECONDS)
    bad = known.filter(possible.fill_null(value=False).not_())
    if bad.height:
        first = bad.row(0, named=True)
        raise InputError(
            f"{bad.height} tasks cannot be replayed, the first is one of job {first['job_id']!r}",
            source=workload.meta.source,
            field="runtime_seconds",
            value=first["runtime_seconds"],
            expected="a known runtime, 0 or more",
        )
    stages = (
        known.with_columns(pl.col("stage").fill_null(ONLY_STAGE))
        .sort("task", maintain_order=True)
        .group_by("job_id", "stage", maintain_order=True)
        .agg(runtime)
    )
    return {(job_id, stage): runtimes for job_id, stage, runtimes in stages.iter_rows()}


def _refuse(
    workload: Workload,
    bad: NDArray[np.bool_],
    field: str,
    values: NDArray[np.float64],
    expected: str,
) -> None:
    if not bad.any():
        return
    first = int(np.argmax(bad))
    raise InputError(
        f"{int(bad.sum())} jobs cannot be replayed, the first is job "
        f"{workload.jobs['job_id'][first]!r}",
        source=workload.meta.source,
        field=field,
        value=float(values[first]),
        expected=expected,
    )
