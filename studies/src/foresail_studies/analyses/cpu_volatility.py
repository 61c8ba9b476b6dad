"""Swings of cpu use within and between measured periods (V. Reis' thesis, chapter 3).

``averaged`` is the mean over a period (mu_5m), ``sampled`` the use in one second of it, chosen at
random (mu_1s); both in cores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.analysis.columns import cumulative_shares
from foresail.analysis.finding import Answer, Plot, study, study_with_parameters
from foresail.model.distribution import Floats
from foresail.model.errors import require_share
from foresail.model.registry import register
from foresail.traces.measured import task_keys
from foresail.traces.schema import STAGE
from foresail.traces.workload import ONLY_STAGE, Workload

SCHEDULING_CLASS: Final = "scheduling_class"
_SERVICES: Final = ("2", "3")
"""Values of this feature that services have; without the feature all jobs are taken."""

_ROUNDING: Final = 1e-9
_SECONDS: Final = pl.col("end_seconds") - pl.col("start_seconds")


class Kept(NamedTuple):
    """Records kept by one filter, and how many of them are left."""

    name: str
    jobs: int
    tasks: int
    periods: int


class Filtered(NamedTuple):
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
    begin, end = pl.col("start_seconds").min(), pl.col("end_seconds").max()
    span = float(periods.select(end - begin).item()) if periods.height else 0.0
    if SCHEDULING_CLASS in workload.jobs.columns:
        in_class = pl.col(SCHEDULING_CLASS).cast(pl.String).is_in(classes)
        mine = workload.jobs.filter(in_class).select("job_id")
        periods = periods.join(mine, "job_id", how="semi")
        counts.append(_kept(f"scheduling class {' or '.join(classes)}", periods))
    else:
        skipped.append("The jobs have no scheduling class: that filter was skipped.")
    periods = covering(periods, coverage * span)
    counts.append(_kept(f"tasks measured {coverage:.0%} of the trace or more", periods))
    periods = measured(periods)
    counts.append(_kept("jobs that were sampled", periods))
    return Filtered(periods, tuple(counts), tuple(skipped))


def _kept(name: str, periods: pl.DataFrame) -> Kept:
    tasks = periods.select(task_keys(periods)).unique()
    return Kept(name, tasks["job_id"].n_unique(), tasks.height, periods.height)


def volatility_per_task(periods: pl.DataFrame) -> pl.DataFrame:
    """One row a task: variation of the averaged and of the sampled series, and their distance.

    ``cv_*`` are sample deviation (n - 1) over mean, ``mad_*`` the median absolute deviation over
    the median, each null where its denominator is 0 or there are fewer than two values.
    ``distance`` is the mean of |d| over periods with an average above 0, where
    d = (averaged - sampled) / averaged.
    """
    series = [one for name in ("averaged", "sampled") for one in _spreads(name)]
    return (
        periods.with_columns(d=deviation())
        .group_by(task_keys(periods))
        .agg(*series, distance=pl.col("d").abs().mean())
        .sort(task_keys(periods))
    )


def deviation() -> pl.Expr:
    """The d of a period: at most 1, negative where the second exceeds the mean, or else null."""
    averaged = pl.col("averaged")
    return pl.when(averaged > 0).then((averaged - pl.col("sampled")) / averaged)


def _spreads(name: str) -> tuple[pl.Expr, ...]:
    value = pl.col(name)
    mean, median = value.mean(), value.median()
    several = value.count() >= 2
    apart = (value - median).abs().median()
    return (
        pl.when(several & (mean != 0)).then(value.std(ddof=1) / mean).alias(f"cv_{name}"),
        pl.when(several & (median != 0)).then(apart / median).alias(f"mad_{name}"),
    )


def sampling_per_task(periods: pl.DataFrame) -> pl.DataFrame:
    """One row a task: means of both series, number of samples, and of those that are not 0."""
    return (
        periods.group_by(task_keys(periods))
        .agg(
            averaged_mean=pl.col("averaged").mean(),
            sampled_mean=pl.col("sampled").mean(),
            samples=pl.col("sampled").count(),
            samples_not_zero=(pl.col("sampled") > 0).sum(),
        )
        .sort(task_keys(periods))
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


_MEASURES: Final = {"cv": "deviation / mean", "mad": "median absolute deviation / median"}
_SERIES: Final = {"averaged": "mean of a period", "sampled": "one second of a period"}
_LOWEST_D: Final = -3.0
_GRID: Final = np.linspace(_LOWEST_D, 1.0, 401)
_BIN: Final = 0.05
_LAST_BIN: Final = 2.0
_LEVELS: Final = (0.1, 0.2, 0.5, 1.0)
"""For which x the share of periods is given that deviate by more than x."""
_HEAT_BINS: Final = 100
_HIGHEST_SHARE: Final = 1.5


@dataclass(frozen=True, slots=True)
class CpuVolatilityParameters:
    """Parameters of the analysis ``cpu_volatility``."""

    coverage: float = 0.95
    """Share of the trace that a long-running task must have been measured."""

    def __post_init__(self) -> None:
        require_share(self, "coverage")


@register("analysis", "cpu_volatility", parameters=CpuVolatilityParameters)
@study_with_parameters("Volatility of cpu use")
def cpu_volatility(parameters: CpuVolatilityParameters, workload: Workload) -> Answer | str:
    """Is the mean over five minutes a surrogate for the use in a second? Long-running services.

    Variation of both series per task, the distance between them, and both against the request: as
    distributions, a heat map and shares.
    """
    if workload.usage is None:
        return "there is no usage table"
    if not workload.usage["sampled_cpus"].count():
        return "no period has a sampled second"
    left = filtered(workload, _SERVICES, parameters.coverage)
    if not left.periods.height:
        counted = "; ".join(f"{kept.name}: {kept.tasks} tasks" for kept in left.counts)
        return f"no task is left after the filters ({counted})"
    return _finding(left, with_requests(left.periods, workload))


def _finding(left: Filtered, periods: pl.DataFrame) -> Answer:
    tasks = volatility_per_task(periods)
    deviations = periods.select(deviation().alias("d")).drop_nulls()["d"].to_numpy()
    distances = tasks["distance"].drop_nulls().to_numpy()
    scalars = _scalars(tasks, distances)
    for level in _LEVELS:
        over = share_of(np.abs(deviations) > level)
        scalars[f"share_of_periods_deviating_over_{level:g}"] = over
    at_most = np.searchsorted(np.sort(deviations), _GRID, side="right")
    tables = {
        "filters": pl.DataFrame(left.counts, ["kept", "jobs", "tasks", "periods"], orient="row"),
        **{f"variation_{measure}": _variation_curves(tasks, measure) for measure in _MEASURES},
        "distances": _histogram(distances),
        "deviations": pl.DataFrame({"d": _GRID, "share": at_most / max(deviations.size, 1)}),
    }
    asked = periods.filter(pl.col("request").is_not_null() & pl.col("sampled").is_not_null())
    if asked.height:
        above = (asked["sampled"] > asked["request"]).to_numpy()
        scalars["share_of_samples_above_request"] = share_of(above)
        tables["heat"] = _heat(asked)
    verdict = (
        f"Over {scalars['tasks']:.0f} long-running tasks the seconds vary by a median of "
        f"{scalars['cv_sampled_median']:.2f} and the means of periods by "
        f"{scalars['cv_averaged_median']:.2f}; a second is off its period's mean by "
        f"{scalars['distance_median']:.0%} (median task)."
    )
    notes = (
        *left.skipped,
        "A job counts as sampled if one of its tasks that are left has a sample other than 0.",
        "Measures are undefined, and left out, for a mean (median) of 0 or under two values.",
        f"The last bin of distances holds all from {_LAST_BIN - _BIN:g} on, the last cells of the "
        f"heat map all above {_HIGHEST_SHARE:g}.",
    )
    return Answer(verdict, scalars, tables, _plots(tables, scalars), notes)


def _scalars(tasks: pl.DataFrame, distances: Floats) -> dict[str, float]:
    scalars = {"tasks": float(tasks.height)}
    for measure in _MEASURES:
        for series in _SERIES:
            values = tasks[f"{measure}_{series}"].drop_nulls().to_numpy()
            scalars[f"{measure}_{series}_median"] = quantile(values, 0.5)
            scalars[f"{measure}_{series}_p90"] = quantile(values, 0.9)
    both = tasks.select("cv_averaged", "cv_sampled").drop_nulls()
    scalars["share_of_tasks_with_cv_sampled_above_averaged"] = share_of(
        (both["cv_sampled"] > both["cv_averaged"]).to_numpy()
    )
    scalars["distance_mean"] = float(distances.mean()) if distances.size else float("nan")
    scalars["distance_median"] = quantile(distances, 0.5)
    return scalars


def _variation_curves(tasks: pl.DataFrame, measure: str) -> pl.DataFrame:
    """Distribution over tasks of a measure of both series."""
    return pl.concat(
        cumulative_shares(tasks[f"{measure}_{series}"].drop_nulls().to_numpy()).select(
            pl.lit(said).alias("series"), variation="value", share="share"
        )
        for series, said in _SERIES.items()
    )


def _histogram(distances: Floats) -> pl.DataFrame:
    """Tasks by their mean |d|; the last bin holds all above."""
    edges = np.arange(0.0, _LAST_BIN + _BIN, _BIN)
    counts = np.histogram(np.minimum(distances, edges[-1]), edges)[0]
    return pl.DataFrame(
        {"distance_from": edges[:-1], "tasks": counts, "share": counts / max(distances.size, 1)}
    )


def _heat(asked: pl.DataFrame) -> pl.DataFrame:
    counts = heat_cells(asked, _HEAT_BINS, _HIGHEST_SHARE)
    averaged, sampled = np.nonzero(counts)
    width = _HIGHEST_SHARE / _HEAT_BINS
    some = counts[averaged, sampled]
    return pl.DataFrame(
        {
            "averaged_share": (averaged + 0.5) * width,
            "sampled_share": (sampled + 0.5) * width,
            "periods": some,
            "log10_periods": np.log10(some),
        }
    )


def _plots(tables: dict[str, pl.DataFrame], scalars: dict[str, float]) -> tuple[Plot, ...]:
    curves = tuple(
        Plot(
            *("line", f"variation_{measure}", "variation", "share"),
            *(f"{_MEASURES[measure]} over a task's periods", "share of tasks up to this"),
            f"Median task: {scalars[f'{measure}_averaged_median']:.2f} for means of periods, "
            f"{scalars[f'{measure}_sampled_median']:.2f} for single seconds.",
            series="series",
            y_kind="share",
        )
        for measure in _MEASURES
    )
    distances = Plot(
        *("bars", "distances", "distance_from", "share"),
        *("mean |d| of a task, d = (mean - second) / mean", "share of tasks"),
        "How far single seconds are from the mean of their period, task by task.",
        y_kind="share",
    )
    deviations = Plot(
        *("line", "deviations", "d", "share"),
        "d = (mean - second) / mean; negative: the second exceeds the mean",
        *("share of periods up to this", "Distribution of the deviation over all periods."),
        y_kind="share",
    )
    heat = Plot(
        *("heat", "heat", "averaged_share", "sampled_share"),
        *("mean of the period / request", "one second / request"),
        "Periods by mean and by sampled second, both as a share of the request.",
        shade="log10_periods",
    )
    return (*curves, distances, deviations, *((heat,) if "heat" in tables else ()))


_FEW: Final = (1, 2, 3, 4)
_MOST_POINTS: Final = 4000
_MOST_VIOLATORS: Final = 1000


@register("analysis", "usage_sampling")
@study("Missing samples of cpu use")
def usage_sampling(workload: Workload) -> Answer | str:
    """Are samples of 0 bursts, or missing measurement? The mean sample against the mean per task.

    Bursty tasks would leave many tasks with a few samples other than 0; missing measurement leaves
    whole jobs without any. Counts of tasks by their samples, the scatter, and jobs that were
    sampled in part.
    """
    periods = periods_of(workload)
    if not periods.height:
        return "there is no usage table"
    if not periods["sampled"].count():
        return "no period has a sampled second"
    per_task = sampling_per_task(periods)
    violators = partly_sampled_jobs(per_task)
    not_zero = per_task["samples_not_zero"]
    jobs = per_task.group_by("job_id").agg(pl.col("samples_not_zero").sum())
    unsampled = int((jobs["samples_not_zero"] == 0).sum())
    scalars = {
        "tasks": float(per_task.height),
        "jobs": float(jobs.height),
        "jobs_never_sampled": float(unsampled),
        "tasks_with_mean_sample_0": float((not_zero == 0).sum()),
        **{f"tasks_with_{few}_samples_not_0": float((not_zero == few).sum()) for few in _FEW},
        "median_samples_per_task": float(per_task.select(pl.col("samples").median()).item()),
        "jobs_sampled_in_part": float(violators.height),
    }
    verdict = (
        f"{unsampled} of {jobs.height} jobs have no sample other than 0; "
        f"{violators.height} jobs were sampled in some of their working tasks only."
    )
    step = -(-per_task.height // _MOST_POINTS)
    scatter = per_task.gather_every(step).select("job_id", "task", "averaged_mean", "sampled_mean")
    plot = Plot(
        *("points", "tasks", "averaged_mean", "sampled_mean"),
        *("mean over the periods, cores", "mean sample, cores", verdict),
    )
    tables = {"tasks": scatter, "sampled_in_part": violators.head(_MOST_VIOLATORS)}
    notes = ["A sample of 0 and no sample are the same here."]
    if step > 1:
        notes.append(f"Every {step}th task is drawn; all are counted.")
    return Answer(verdict, scalars, tables, (plot,), tuple(notes))


def share_of(holds: NDArray[np.bool_]) -> float:
    """The share of which it holds; NaN of none."""
    return float(holds.mean()) if holds.size else float("nan")


def quantile(values: NDArray[np.float64], probability: float) -> float:
    """A quantile (linear interpolation); NaN of none."""
    return float(np.quantile(values, probability)) if values.size else float("nan")
