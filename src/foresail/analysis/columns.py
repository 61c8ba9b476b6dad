"""The quantities of jobs that analyses look at, as arrays with NaN for what is unknown."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.traces.workload import Workload


def runtimes(workload: Workload) -> NDArray[np.float64]:
    """Seconds that each job ran; 0 is a runtime, unknown is NaN."""
    return _array(workload, pl.col("runtime_seconds"))


def cpus(workload: Workload) -> NDArray[np.float64]:
    """Cpus that each job asked for (tasks x cpus per task); NaN where unknown or 0."""
    return _positive(workload, pl.col("tasks") * pl.col("cpus_per_task"))


def memory_bytes(workload: Workload) -> NDArray[np.float64]:
    """Bytes that each job asked for, all tasks together; NaN where unknown or 0."""
    return _positive(workload, pl.col("tasks") * pl.col("memory_bytes_per_task"))


def gpus(workload: Workload) -> NDArray[np.float64]:
    """Gpus that each job asked for; NaN where unknown or 0."""
    return _positive(workload, pl.col("tasks") * pl.col("gpus_per_task"))


def tasks(workload: Workload) -> NDArray[np.float64]:
    """Tasks of each job; NaN where unknown or 0."""
    return _positive(workload, pl.col("tasks"))


def submissions(workload: Workload) -> NDArray[np.float64]:
    """Seconds of submission, ascending, without unknown ones."""
    submit = _array(workload, pl.col("submit_seconds"))
    return np.sort(submit[np.isfinite(submit)])


def _array(workload: Workload, quantity: pl.Expr) -> NDArray[np.float64]:
    values = workload.jobs.select(quantity.cast(pl.Float64)).to_series().to_numpy(writable=True)
    values[~np.isfinite(values)] = np.nan
    return values


def _positive(workload: Workload, quantity: pl.Expr) -> NDArray[np.float64]:
    values = _array(workload, quantity)
    values[~(values > 0)] = np.nan
    return values
