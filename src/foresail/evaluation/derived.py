"""Runtimes derived from predicted work: cpu time over a number of cpus (dissertation Fig. 5.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.analysis.prediction_errors import ErrorShares, error_histogram, error_shares
from foresail.evaluation.replaying import Evaluation, evaluate
from foresail.model.errors import InputError
from foresail.model.short_form import PlugIn
from foresail.traces.measured import quantity, task_keys
from foresail.traces.workload import Workload

BASELINE: Final = "runtime"


@dataclass(frozen=True)
class Derived:
    """One way to estimate the runtime, scored on the jobs that all ways can estimate.

    ``name`` is ``BASELINE`` (the runtime was predicted itself) or what the estimated cpu time was
    divided by; ``histogram`` is that of ``error_histogram``.
    """

    name: str
    shares: ErrorShares
    histogram: pl.DataFrame


def derived_runtimes(
    workload: Workload, predictor: str | PlugIn, baseline: Evaluation
) -> tuple[Derived, ...]:
    """The baseline, and the runtimes derived from estimates of the cpu time (spec 3.3, W18).

    Divided by: the estimated average cpus, the real average, the request, and the cpus used in the
    first measured period (left out where there is no usage table).

    ``baseline`` is this predictor's evaluation on the runtime; the others learn as it did.

    Raises
    ------
    InputError
        If cpu use is not known of any job whose runtime is above zero.
    """
    cpu_time, cpu = (
        _by_job(workload, evaluate(workload, predictor, quantity=name, learning=baseline.learning))
        for name in ("cpu_time", "cpu")
    )
    divisors = {
        "predicted_cpu": cpu,
        "actual_cpu": quantity(workload, "cpu"),
        "requested_cpu": workload.jobs["cpus_per_task"].fill_null(np.nan).to_numpy(),
        "initial_cpu": _initial_cpus(workload),
    }
    derived = {BASELINE: _by_job(workload, baseline)}
    for name, divisor in divisors.items():
        usable = np.where(divisor > 0, divisor, np.nan)
        if np.isfinite(usable).any():
            derived[name] = cpu_time / usable
    actual = workload.runtime_seconds
    comparable = actual > 0
    for values in derived.values():
        comparable &= np.isfinite(values)
    if not comparable.any():
        raise InputError(
            "no job for which all derived runtimes can be told", source=workload.meta.source
        )
    return tuple(
        Derived(
            name,
            error_shares(values[comparable], actual[comparable]),
            error_histogram(values[comparable], actual[comparable]),
        )
        for name, values in derived.items()
    )


def _initial_cpus(workload: Workload) -> NDArray[np.float64]:
    """Average cpus of a job's tasks over their first measured period."""
    if workload.usage is None:
        return np.full(len(workload), np.nan)
    first = (
        workload.usage.sort("start_seconds", maintain_order=True)
        .group_by(task_keys(workload.usage))
        .agg(pl.col("average_cpus").first())
        .group_by("job_id")
        .agg(value=pl.col("average_cpus").mean())
    )
    return _joined(workload, first)


def _by_job(workload: Workload, evaluation: Evaluation) -> NDArray[np.float64]:
    """The estimate of each job, NaN where there is none."""
    return _joined(workload, evaluation.jobs.select("job_id", value="predicted"))


def _joined(workload: Workload, values: pl.DataFrame) -> NDArray[np.float64]:
    joined = workload.jobs.select("job_id").join(
        values, on="job_id", how="left", maintain_order="left"
    )
    return joined["value"].fill_null(np.nan).to_numpy().astype(np.float64)
