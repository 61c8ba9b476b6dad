"""Swings of cpu use within and between measured periods (CPU volatility, chapter 3).

``averaged`` is the mean over a period (mu_5m), ``sampled`` the use in one second of it, chosen at
random (mu_1s); both in cores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.traces.measured import task_keys
from foresail.traces.schema import STAGE
from foresail.traces.workload import ONLY_STAGE, Workload

SCHEDULING_CLASS: Final = "scheduling_class"

_ROUNDING: Final = 1e-9
_SECONDS: Final = pl.col("end_seconds") - pl.col("start_seconds")


@dataclass(frozen=True, slots=True)
class Kept:
    """Records kept by one filter, and how many of them are left."""

    name: str
    jobs: int
    tasks: int
    periods: int


@dataclass(frozen=True, slots=True)
class Filtered:
    """The periods that are left of a usage table, and the count after every filter, in order."""

    periods: pl.DataFrame
    counts: tuple[Kept, ...]
    skipped: tuple[str, ...]


def periods_of(workload: Workload) -> pl.DataFrame:
    """The usage table's periods with known average cpus; empty without a usage table.

    Columns are ``job_id``, ``stage`` if the table has it, ``task``, ``start_seconds``,
    ``end_seconds``, ``seconds``, ``averaged`` and ``sampled`` (null where not sampled).
    """
    if workload.usage is None:
        return pl.DataFrame()
    return (
        _with_names(workload.usage)
        .select(
            *task_keys(workload.usage),
            "start_seconds",
            "end_seconds",
            seconds=_SECONDS,
            averaged="average_cpus",
            sampled="sampled_cpus",
        )
        .filter(pl.col("averaged").is_not_null() & (pl.col("seconds") > 0))
    )


def _with_names(rows: pl.DataFrame) -> pl.DataFrame:
    """The same with a name for stages without one, where there is a column for it."""
    named = [pl.col(STAGE).fill_null(ONLY_STAGE)] if STAGE in rows.columns else []
    return rows.with_columns(named)


def of_classes(
    periods: pl.DataFrame, jobs: pl.DataFrame, classes: tuple[str, ...]
) -> pl.DataFrame | None:
    """Periods of jobs of these scheduling classes; None where jobs have no such feature."""
    if SCHEDULING_CLASS not in jobs.columns:
        return None
    mine = jobs.filter(pl.col(SCHEDULING_CLASS).cast(pl.String).is_in(classes))
    return periods.join(mine.select("job_id"), "job_id", how="semi")


def covering(periods: pl.DataFrame, seconds: float) -> pl.DataFrame:
    """Periods of tasks that were measured during at least so many seconds."""
    keys = task_keys(periods)
    long = (
        periods.group_by(keys)
        .agg(pl.col("seconds").sum())
        .filter(pl.col("seconds") >= seconds * (1.0 - _ROUNDING))
    )
    return periods.join(long, on=keys, how="semi")


def measured(periods: pl.DataFrame) -> pl.DataFrame:
    """Periods of jobs that were sampled: at least one task has a sample other than 0."""
    sampled = periods.filter(pl.col("sampled") > 0).select("job_id").unique()
    return periods.join(sampled, on="job_id", how="semi")


def filtered(workload: Workload, classes: tuple[str, ...], coverage: float) -> Filtered:
    """The three filters in their order: scheduling class, long-running tasks, sampled jobs."""
    periods = periods_of(workload)
    counts = [_kept("all measured periods", periods)]
    skipped = []
    span = _span(periods)
    in_class = of_classes(periods, workload.jobs, classes)
    if in_class is None:
        skipped.append("The jobs have no scheduling class: that filter was skipped.")
    else:
        periods = in_class
        counts.append(_kept(f"scheduling class {' or '.join(classes)}", periods))
    periods = covering(periods, coverage * span)
    counts.append(_kept(f"tasks measured {coverage:.0%} of the trace or more", periods))
    periods = measured(periods)
    counts.append(_kept("jobs that were sampled", periods))
    return Filtered(periods, tuple(counts), tuple(skipped))


def _span(periods: pl.DataFrame) -> float:
    if not periods.height:
        return 0.0
    extent = periods.select(pl.col("end_seconds").max() - pl.col("start_seconds").min())
    return float(extent.item())


def _kept(name: str, periods: pl.DataFrame) -> Kept:
    tasks = periods.select(task_keys(periods)).unique()
    return Kept(name, tasks["job_id"].n_unique(), tasks.height, periods.height)


def volatility_per_task(periods: pl.DataFrame) -> pl.DataFrame:
    """One row a task: variation of the averaged and of the sampled series, and their distance.

    ``cv_*`` are sample deviation (n - 1) over mean, ``mad_*`` the median absolute deviation over
    the median, ``iqr_*`` the interquartile range over the median, each null where its denominator
    is 0 or there are fewer than two values. ``distance`` is the mean of |d| over periods with an
    average above 0, where d = (averaged - sampled) / averaged.
    """
    series = [one for name in ("averaged", "sampled") for one in _spreads(name)]
    return (
        periods.lazy()
        .with_columns(d=deviation())
        .group_by(task_keys(periods))
        .agg(
            *series,
            distance=pl.col("d").abs().mean(),
            averaged_mean=pl.col("averaged").mean(),
            sampled_mean=pl.col("sampled").mean(),
        )
        .sort(task_keys(periods))
        .collect()
    )


def deviation() -> pl.Expr:
    """The d of a period: at most 1, negative where the second exceeds the mean, or else null."""
    averaged = pl.col("averaged")
    return pl.when(averaged > 0).then((averaged - pl.col("sampled")) / averaged)


def _spreads(name: str) -> tuple[pl.Expr, ...]:
    value = pl.col(name)
    mean, median = value.mean(), value.median()
    several = value.count() >= 2
    quartiles = value.quantile(0.75, "linear") - value.quantile(0.25, "linear")
    return (
        pl.when(several & (mean != 0)).then(value.std(ddof=1) / mean).alias(f"cv_{name}"),
        pl.when(several & (median != 0))
        .then((value - median).abs().median() / median)
        .alias(f"mad_{name}"),
        pl.when(several & (median != 0)).then(quartiles / median).alias(f"iqr_{name}"),
    )


def sampling_per_task(periods: pl.DataFrame) -> pl.DataFrame:
    """One row a task: means of both series, number of samples, and of those that are not 0."""
    return (
        periods.lazy()
        .group_by(task_keys(periods))
        .agg(
            averaged_mean=pl.col("averaged").mean(),
            sampled_mean=pl.col("sampled").mean(),
            samples=pl.col("sampled").count(),
            samples_not_zero=(pl.col("sampled") > 0).sum(),
        )
        .sort(task_keys(periods))
        .collect()
    )


def partly_sampled_jobs(per_task: pl.DataFrame) -> pl.DataFrame:
    """Jobs that break the rule that either all working tasks have a sample other than 0, or none.

    Of ``sampling_per_task``: ``job_id``, ``working_tasks`` (average above 0), ``sampled_tasks``
    among them.
    """
    return (
        per_task.filter(pl.col("averaged_mean") > 0)
        .group_by("job_id")
        .agg(working_tasks=pl.len(), sampled_tasks=(pl.col("samples_not_zero") > 0).sum())
        .filter((pl.col("sampled_tasks") > 0) & (pl.col("sampled_tasks") < pl.col("working_tasks")))
        .sort("job_id")
    )


def with_requests(periods: pl.DataFrame, workload: Workload) -> pl.DataFrame:
    """The periods with ``request``: the cpus each task asked for; null where unknown or 0."""
    if workload.tasks is not None:
        keys = task_keys(periods)
        per_task = (
            _with_names(workload.tasks)
            .select(*keys, request="cpus")
            .unique(keys, keep="first", maintain_order=True)
        )
        periods = periods.join(per_task, on=keys, how="left")
    else:
        per_job = workload.jobs.select("job_id", request="cpus_per_task")
        periods = periods.join(per_job, on="job_id", how="left")
    return periods.with_columns(pl.when(pl.col("request") > 0).then(pl.col("request")))


def heat_cells(periods: pl.DataFrame, bins: int = 100, highest: float = 1.5) -> NDArray[np.int64]:
    """Counts of (averaged / request, sampled / request), shape (bins, bins), averaged first.

    The cells reach up to ``highest``; values above it are in the last. ``periods`` are as
    ``with_requests`` gives them; those without a request or sample are left out.
    """
    known = periods.filter(pl.col("request").is_not_null() & pl.col("sampled").is_not_null())
    cells = known.select(
        _bin(pl.col("averaged") / pl.col("request"), bins, highest).alias("averaged"),
        _bin(pl.col("sampled") / pl.col("request"), bins, highest).alias("sampled"),
    )
    flat = cells.select(pl.col("averaged") * bins + pl.col("sampled")).to_series().to_numpy()
    return np.bincount(flat, minlength=bins * bins).reshape(bins, bins)


def _bin(share: pl.Expr, bins: int, highest: float) -> pl.Expr:
    return (share / highest * bins).floor().clip(0, bins - 1).cast(pl.Int64)
