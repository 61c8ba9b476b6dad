"""Sizes and runtimes of jobs submitted by night and by day."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.analysis import columns
from foresail.analysis.columns import HOURS, local_times
from foresail.analysis.finding import Answer, Plot, study
from foresail.model.registry import register
from foresail.model.words import number
from foresail.traces.workload import Workload

_HOUR_SECONDS: Final = 3600.0


@register("analysis", "size_by_hour")
@study("Do large jobs come by night?", "3.3")
def size_by_hour(workload: Workload) -> Answer | str:
    """Mean size, runtime and work of the jobs submitted in each hour of the day.

    Spec section 10, W5 (dissertation, section 3.3). Night is before 7 and from 19 h on. Means by
    hour over the jobs of known size and runtime.
    """
    cpus, runtimes = columns.cpus(workload), columns.runtimes(workload)
    usable = np.isfinite(cpus) & np.isfinite(runtimes)
    if not usable.any():
        return "No job's cpus and runtime are both known."
    times = local_times(workload)
    night = times.by_night[usable]
    if night.all() or not night.any():
        when = "night" if night.all() else "day"
        return f"All jobs were submitted by {when}."
    hour, cpus, runtimes = times.hour_of_day[usable], cpus[usable], runtimes[usable]
    work = cpus * runtimes
    jobs = np.bincount(hour, minlength=HOURS)
    table = pl.DataFrame(
        {
            "hour": np.arange(HOURS, dtype=np.float64),
            "jobs": jobs,
            "mean_cpus": _means(hour, cpus, jobs),
            "mean_runtime_seconds": _means(hour, runtimes, jobs),
            "mean_cpu_hours": _means(hour, work / _HOUR_SECONDS, jobs),
        }
    ).fill_nan(None)
    scalars = {}
    for name, values in (("cpus", cpus), ("runtime", runtimes), ("work", work)):
        by_day = float(values[~night].mean())
        if by_day > 0:
            scalars[f"night_to_day_mean_{name}"] = float(values[night].mean()) / by_day
    positive = work > 0
    together = _correlation(night[positive].astype(np.float64), np.log(work[positive]))
    if together is not None:
        scalars["correlation_of_night_and_log_work"] = together
    said = ", ".join(
        f"{number(scalars[f'night_to_day_mean_{name}'])} times the mean {name}"
        for name in ("cpus", "runtime", "work")
        if f"night_to_day_mean_{name}" in scalars
    )
    verdict = f"Jobs submitted by night have {said or 'no work'} of those by day."
    plots = tuple(
        Plot(
            kind="line",
            table="hours",
            x="hour",
            y=column,
            x_label="hour of the day of the submission",
            y_label=f"mean {what} of a job (log scale)",
            alternative=_largest(table, column, what) or verdict,
            x_kind="hour",
            log_y=True,
        )
        for column, what in (("mean_cpu_hours", "cpu-hours"), ("mean_cpus", "cpus"))
    )
    notes = (times.said, "Night: before 7 and from 19 h on. Means are ruled by few large jobs.")
    return Answer(verdict, scalars, {"hours": table}, plots, notes)


def _largest(table: pl.DataFrame, column: str, what: str) -> str:
    """At what hour jobs are largest, in a sentence; empty where all have nothing."""
    mean = table[column].fill_null(0.0).to_numpy()
    hour = int(mean.argmax())
    if not mean.any():
        return ""
    return f"Jobs submitted at {hour} h have most {what}: {number(float(mean[hour]))} in the mean."


def _means(
    hour: NDArray[np.int64], values: NDArray[np.float64], jobs: NDArray[np.int64]
) -> NDArray[np.float64]:
    sums = np.bincount(hour, weights=values, minlength=HOURS)
    return np.asarray(np.divide(sums, jobs, out=np.full(HOURS, np.nan), where=jobs > 0))


def _correlation(left: NDArray[np.float64], right: NDArray[np.float64]) -> float | None:
    if left.size < 2 or left.std() == 0 or right.std() == 0:
        return None
    return float(np.corrcoef(left, right)[0, 1])
