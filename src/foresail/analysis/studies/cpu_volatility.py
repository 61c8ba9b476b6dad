"""Cpu use of services in the second against its mean over minutes (paper 004, chapter 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from foresail.analysis.columns import cumulative_shares, quantile, share_of
from foresail.analysis.finding import Answer, Plot, study_with_parameters
from foresail.analysis.volatility import (
    Filtered,
    deviation,
    filtered,
    heat_cells,
    volatility_per_task,
    with_requests,
)
from foresail.model.arrays import Floats
from foresail.model.errors import InputError, require_share
from foresail.model.registry import register
from foresail.traces.workload import Workload

_MEASURES: Final = {
    "cv": "deviation / mean",
    "mad": "median absolute deviation / median",
    "iqr": "interquartile range / median",
}
_SERIES: Final = {"averaged": "mean of a period", "sampled": "one second of a period"}
_LOWEST_D: Final = -3.0
_GRID: Final = np.linspace(_LOWEST_D, 1.0, 401)
_BIN: Final = 0.05
_LAST_BIN: Final = 2.0
_HEAT_BINS: Final = 100
_HIGHEST_SHARE: Final = 1.5


@dataclass(frozen=True, slots=True)
class CpuVolatilityParameters:
    """Parameters of the analysis ``cpu_volatility``."""

    scheduling_classes: tuple[str, ...] = ("2", "3")
    """Values of the feature ``scheduling_class`` that services have; without the feature all jobs
    are taken."""
    coverage: float = 0.95
    """Share of the trace that a long-running task must have been measured."""
    levels: tuple[float, ...] = (0.1, 0.2, 0.5, 1.0)
    """For which x the share of periods is given that deviate by more than x."""

    def __post_init__(self) -> None:
        require_share(self, "coverage")
        if not self.scheduling_classes:
            raise InputError("no classes", field="scheduling_classes", expected="at least one")


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
    left = filtered(workload, parameters.scheduling_classes, parameters.coverage)
    if not left.periods.height:
        return _nothing_left(left)
    return _finding(left, with_requests(left.periods, workload), parameters)


def _nothing_left(left: Filtered) -> str:
    counted = "; ".join(f"{kept.name}: {kept.tasks} tasks" for kept in left.counts)
    return f"no task is left after the filters ({counted})"


def _finding(left: Filtered, periods: pl.DataFrame, parameters: CpuVolatilityParameters) -> Answer:
    tasks = volatility_per_task(periods)
    deviations = periods.select(deviation().alias("d")).drop_nulls()["d"].to_numpy()
    distances = tasks["distance"].drop_nulls().to_numpy()
    scalars = _scalars(tasks, distances)
    scalars |= {
        f"share_of_periods_deviating_over_{level:g}": share_of(np.abs(deviations) > level)
        for level in parameters.levels
    }
    asked = periods.filter(pl.col("request").is_not_null() & pl.col("sampled").is_not_null())
    if asked.height:
        above = (asked["sampled"] > asked["request"]).to_numpy()
        scalars["share_of_samples_above_request"] = share_of(above)
    tables = {
        "filters": pl.DataFrame(
            [(kept.name, kept.jobs, kept.tasks, kept.periods) for kept in left.counts],
            ["kept", "jobs", "tasks", "periods"],
            orient="row",
        ),
        **{f"variation_{measure}": _variation_curves(tasks, measure) for measure in _MEASURES},
        "distances": _histogram(distances),
        "deviations": _deviation_curve(deviations),
    }
    if asked.height:
        tables["heat"] = _heat(asked)
    verdict = _verdict(scalars)
    return Answer(verdict, scalars, tables, _plots(tables, scalars), _notes(left))


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


def _verdict(scalars: dict[str, float]) -> str:
    return (
        f"Over {scalars['tasks']:.0f} long-running tasks the seconds vary by a median of "
        f"{scalars['cv_sampled_median']:.2f} and the means of periods by "
        f"{scalars['cv_averaged_median']:.2f}; a second is off its period's mean by "
        f"{scalars['distance_median']:.0%} (median task)."
    )


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


def _deviation_curve(deviations: Floats) -> pl.DataFrame:
    """Share of all periods with d at most each value of a grid; what is lower is in the first."""
    at_most = np.searchsorted(np.sort(deviations), _GRID, side="right")
    return pl.DataFrame({"d": _GRID, "share": at_most / max(deviations.size, 1)})


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
            "line",
            f"variation_{measure}",
            "variation",
            "share",
            f"{_MEASURES[measure]} over a task's periods",
            "share of tasks up to this",
            f"Median task: {scalars[f'{measure}_averaged_median']:.2f} for means of periods, "
            f"{scalars[f'{measure}_sampled_median']:.2f} for single seconds.",
            series="series",
            y_kind="share",
        )
        for measure in _MEASURES
    )
    distances = Plot(
        "bars",
        "distances",
        "distance_from",
        "share",
        "mean |d| of a task, d = (mean - second) / mean",
        "share of tasks",
        "How far single seconds are from the mean of their period, task by task.",
        y_kind="share",
    )
    deviations = Plot(
        "line",
        "deviations",
        "d",
        "share",
        "d = (mean - second) / mean; negative: the second exceeds the mean",
        "share of periods up to this",
        "Distribution of the deviation over all periods.",
        y_kind="share",
    )
    heat = Plot(
        "heat",
        "heat",
        "averaged_share",
        "sampled_share",
        "mean of the period / request",
        "one second / request",
        "Periods by mean and by sampled second, both as a share of the request.",
        shade="log10_periods",
    )
    return (*curves, distances, deviations, *((heat,) if "heat" in tables else ()))


def _notes(left: Filtered) -> tuple[str, ...]:
    return (
        *left.skipped,
        "A job counts as sampled if one of its tasks that are left has a sample other than 0.",
        "Measures are undefined, and left out, for a mean (median) of 0 or under two values.",
        f"The last bin of distances holds all from {_LAST_BIN - _BIN:g} on, the last cells of the "
        f"heat map all above {_HIGHEST_SHARE:g}.",
    )
