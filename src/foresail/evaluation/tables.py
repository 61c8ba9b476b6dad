"""Tables of evaluations: over time, by user, by expert, and coverage of stated ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
import polars as pl

from foresail.analysis.prediction_errors import ErrorShares, error_histogram, error_shares
from foresail.evaluation.replaying import Evaluation, evaluate
from foresail.metrics.statistics import WEEK_SECONDS
from foresail.model.distribution import Floats
from foresail.model.errors import InputError
from foresail.model.short_form import PlugIn
from foresail.traces.measured import quantity, task_keys
from foresail.traces.workload import Workload

STATED: Final[Mapping[int, tuple[str, str]]] = MappingProxyType(
    {50: ("q25", "q75"), 80: ("q10", "q90"), 90: ("q05", "q95"), 95: ("q025", "q975")}
)
"""The stated ranges: per cent, and the quantiles at their ends."""


def coverage_over_time(
    evaluation: Evaluation, stretch_seconds: float = WEEK_SECONDS
) -> pl.DataFrame:
    """Tabulate the coverage of stated ranges over time since the first submission.

    Returns
    -------
    DataFrame
        A row per stretch (a week) with jobs: ``stretch`` (1 is the first), ``jobs``, and for every
        stated per cent ``covered_90`` (share of the truths inside, ends included) and
        ``relative_width_90`` (median width over the median prediction, null if that is 0).
    """
    begin = pl.col("submit_seconds").min()
    stretch = ((pl.col("submit_seconds") - begin) / stretch_seconds).floor().cast(pl.Int64) + 1
    grouped = evaluation.jobs.with_columns(stretch=stretch).group_by("stretch")
    return grouped.agg(pl.len().alias("jobs"), *_columns()).sort("stretch")


def coverage_by_user(evaluation: Evaluation, most: int = 10) -> pl.DataFrame:
    """Tabulate the coverage of stated ranges for the users with most jobs, these first.

    The columns are those of ``coverage_over_time``, with ``user`` instead of ``stretch``. Jobs
    without a user are left out.
    """
    return (
        evaluation.jobs.filter(pl.col("user").is_not_null())
        .group_by("user")
        .agg(pl.len().alias("jobs"), *_columns())
        .sort("jobs", "user", descending=[True, False])
        .head(most)
    )


def _columns() -> list[pl.Expr]:
    middle = pl.col("predicted").median()
    covered = [
        pl.col("actual").is_between(low, high).mean().alias(f"covered_{stated}")
        for stated, (low, high) in STATED.items()
    ]
    widths = [
        pl.when(middle > 0)
        .then((pl.col(high) - pl.col(low)).median() / middle)
        .alias(f"relative_width_{stated}")
        for stated, (low, high) in STATED.items()
    ]
    return covered + widths


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
    """The baseline, and the runtimes derived from estimates of the cpu time.

    Divided by: the estimated average cpus, the real average, the request, and the cpus used in the
    first measured period (left out where there is no usage table).

    ``baseline`` is this predictor's evaluation on the runtime; the others learn as it did.

    Raises ``InputError`` if cpu use is not known of any job whose runtime is above zero.
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
            "no job for which all derived runtimes are predicted", source=workload.meta.source
        )
    return tuple(
        Derived(
            name,
            error_shares(values[comparable], actual[comparable]),
            error_histogram(values[comparable], actual[comparable]),
        )
        for name, values in derived.items()
    )


def _initial_cpus(workload: Workload) -> Floats:
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


def _by_job(workload: Workload, evaluation: Evaluation) -> Floats:
    """The estimate of each job, NaN where there is none."""
    return _joined(workload, evaluation.jobs.select("job_id", value="predicted"))


def _joined(workload: Workload, values: pl.DataFrame) -> Floats:
    joined = workload.jobs.select("job_id").join(
        values, on="job_id", how="left", maintain_order="left"
    )
    return joined["value"].fill_null(np.nan).to_numpy().astype(np.float64)


_STATED_LEVELS: Final = tuple(round(0.05 * step, 2) for step in range(1, 20))

_ERROR: Final = (pl.col("predicted") - pl.col("actual")).abs()
_ACTUAL: Final = pl.col("actual").sum()
_KNOWN: Final = pl.col("actual") > 0
_WITHIN: Final = (
    (pl.col("predicted") >= 0.5 * pl.col("actual"))
    & (pl.col("predicted") <= 2.0 * pl.col("actual"))
).filter(_KNOWN)


def _over(above: pl.Expr, below: pl.Expr) -> pl.Expr:
    """A ratio, unknown where nothing is below."""
    return pl.when(below > 0).then(above / below)


def reliability(evaluation: Evaluation) -> pl.DataFrame:
    """Stated against observed: how often the truth was at or below each stated quantile.

    Columns: ``stated`` (level), ``observed`` (share of the jobs), and ``jobs`` whose truth lay
    between the level before and this one.
    """
    level = np.sort(evaluation.jobs["level"].to_numpy())
    reached = np.searchsorted(level, _STATED_LEVELS, side="right")
    return pl.DataFrame(
        {
            "stated": _STATED_LEVELS,
            "observed": reached / max(level.size, 1),
            "jobs": np.diff(reached, prepend=0),
        }
    )


def learning_curve(evaluation: Evaluation, stretch_seconds: float = WEEK_SECONDS) -> pl.DataFrame:
    """Tabulate the quality of predictions over time since the first submission.

    Returns
    -------
    DataFrame
        A row per stretch (a week) with jobs: ``stretch`` (1 is the first), ``jobs``,
        ``within_factor_two``, ``nmae``, ``relative_crps``, and ``relative_width`` (median width of
        the 80 % interval over the median prediction); null where not defined.
    """
    begin = pl.col("submit_seconds").min()
    stretch = ((pl.col("submit_seconds") - begin) / stretch_seconds).floor().cast(pl.Int64) + 1
    return (
        evaluation.jobs.with_columns(stretch=stretch)
        .group_by("stretch")
        .agg(
            jobs=pl.len(),
            within_factor_two=_WITHIN.mean(),
            nmae=_over(_ERROR.sum(), _ACTUAL),
            relative_crps=_over(pl.col("crps").sum(), _ACTUAL),
            relative_width=_over(
                (pl.col("q90") - pl.col("q10")).median(), pl.col("predicted").median()
            ),
        )
        .sort("stretch")
    )


def expert_wins(evaluation: Evaluation) -> pl.DataFrame:
    """Tabulate how often each expert was followed, most often first, and its quality then.

    Columns: ``expert`` (null: none had a history), ``jobs``, ``share``, ``within_factor_two``,
    ``nmae``. Empty for a predictor that has no experts.
    """
    jobs = evaluation.jobs if evaluation.experts else evaluation.jobs.head(0)
    return (
        jobs.group_by("expert")
        .agg(jobs=pl.len(), within_factor_two=_WITHIN.mean(), nmae=_over(_ERROR.sum(), _ACTUAL))
        .with_columns(share=pl.col("jobs") / max(jobs.height, 1))
        .select("expert", "jobs", "share", "within_factor_two", "nmae")
        .sort("jobs", "expert", descending=[True, False], nulls_last=True)
    )


def worst_users(evaluation: Evaluation, most: int = 10) -> pl.DataFrame:
    """The users whose predictions were farthest off in sum, worst first.

    Columns: ``user`` (null: unknown), ``jobs``, ``absolute_error`` (summed, in the quantity's
    unit), ``share_of_error``, ``under`` (share predicted below the truth), ``within_factor_two``,
    ``median_actual``, ``median_predicted``.
    """
    error = pl.col("absolute_error")
    return (
        evaluation.jobs.group_by("user")
        .agg(
            jobs=pl.len(),
            absolute_error=_ERROR.sum(),
            under=(pl.col("predicted") < pl.col("actual")).mean(),
            within_factor_two=_WITHIN.mean(),
            median_actual=pl.col("actual").median(),
            median_predicted=pl.col("predicted").median(),
        )
        .with_columns(share_of_error=_over(error, error.sum()))
        .sort("absolute_error", "user", descending=[True, False], nulls_last=True)
        .head(most)
    )


def detail(evaluation: Evaluation) -> dict[str, pl.DataFrame]:
    """All tables of this module, the error histogram, and what ranges cover, by name."""
    return {
        "error_histogram": error_histogram(
            evaluation.jobs["predicted"].to_numpy(), evaluation.jobs["actual"].to_numpy()
        ),
        "reliability": reliability(evaluation),
        "learning_curve": learning_curve(evaluation),
        "experts": expert_wins(evaluation),
        "worst_users": worst_users(evaluation),
        "coverage_by_week": coverage_over_time(evaluation),
        "coverage_by_user": coverage_by_user(evaluation),
    }
