"""Rhythm of submissions: gaps between them, numbers and sizes by hour, representative months."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import polars as pl

from foresail.analysis import columns
from foresail.analysis.finding import Answer, Plot, study
from foresail.model.distribution import Floats, Integers
from foresail.model.registry import register
from foresail.model.words import count, duration, number, percent
from foresail.traces.workload import Workload

_TERMS: Final = 20
_SWITCH: Final = 1.0
"""Below it the alternating series needs many terms and the transformed one few."""


def distance_to_exponential(gaps: Floats) -> float:
    """Largest distance between the gaps' distribution and the exponential one of the same mean.

    D = max over the sorted gaps of max(i/n - F, F - (i-1)/n). There is at least one gap of at least
    0 (any unit), and their mean is positive.
    """
    ordered = np.sort(gaps)
    count = ordered.size
    expected = -np.expm1(-ordered / ordered.mean())
    rank = np.arange(1, count + 1)
    return float(np.max(np.maximum(rank / count - expected, expected - (rank - 1) / count)))


def asymptotic_p_value(distance: float, count: int) -> float:
    """Probability that a sample of ``count`` is at least so far from its own distribution.

    Kolmogorov's limit for large samples of a continuous distribution that is fully known. Where
    the mean was estimated from the same sample (Lilliefors) true probabilities are smaller.
    """
    at = math.sqrt(count) * distance
    if at <= 0:
        return 1.0
    if at < _SWITCH:
        base = -(math.pi**2) / (8 * at * at)
        inner = sum(math.exp(base * (2 * k - 1) ** 2) for k in range(1, _TERMS))
        return 1.0 - math.sqrt(2 * math.pi) / at * inner
    signs = (1.0 if k % 2 else -1.0 for k in range(1, _TERMS))
    terms = (math.exp(-2 * (k * at) ** 2) for k in range(1, _TERMS))
    return 2 * sum(sign * term for sign, term in zip(signs, terms, strict=True))


_LEAST_SAID: Final = 0.0001
_FEWEST: Final = 30
"""Gaps that show how finely a log's clock counts."""


@register("analysis", "interarrivals")
@study("How far apart are submissions?", "3.4")
def interarrivals(workload: Workload) -> Answer | str:
    """Cumulative shares of the gaps between submissions, against the exponential distribution.

    Park's dissertation, figure 3.5. Gaps between consecutive submissions, zeros
    included.
    """
    gaps = np.diff(columns.submissions(workload))
    resolution = _resolution(gaps)
    if not gaps.size:
        return "There is no second job."
    if not gaps.any():
        return "All jobs were submitted at once."
    distance = distance_to_exponential(gaps)
    chance = asymptotic_p_value(distance, gaps.size)
    short = float((gaps < 1).mean())
    scalars = {
        "mean_seconds": float(gaps.mean()),
        "p50_seconds": float(np.median(gaps)),
        "p90_seconds": float(np.quantile(gaps, 0.9)),
        "longest_seconds": float(gaps.max()),
        "coefficient_of_variation": columns.variation(gaps),
        "kolmogorov_smirnov_distance": distance,
        "kolmogorov_smirnov_p_value": chance,
    }
    half = duration(scalars["p50_seconds"])
    said = f"half of the jobs follow within {half}"
    if resolution <= 1:
        scalars["share_below_1_second"] = short
        said = f"{percent(short)} of the jobs follow within a second, half within {half}"
    odds = f"= {number(chance)}" if chance >= _LEAST_SAID else "< 0.0001"
    verdict = (
        f"{said[0].upper()}{said[1:]}; against a Poisson process D = {number(distance)} (p {odds})."
    )
    notes = [
        "D: Kolmogorov-Smirnov distance to the exponential distribution of the same mean. The "
        "mean is estimated from the same gaps (Lilliefors) and ties exaggerate D, so p is only "
        "indicative."
    ]
    if resolution == 1:
        notes.append("Times are whole seconds: “within a second” is in the same second.")
    elif resolution > 1:
        notes.append(
            f"Times are multiples of {duration(resolution)}: what is shorter cannot be seen."
        )
    plot = columns.cumulative_plot(
        "gaps",
        "gap_seconds",
        "time to the next submission (log scale)",
        "share of submissions",
        verdict,
        x_kind="duration",
    )
    return Answer(
        verdict,
        scalars,
        {"gaps": columns.cumulative_shares(gaps, "gap_seconds")},
        (plot,),
        tuple(notes),
    )


def _resolution(gaps: Floats) -> float:
    """Seconds that all gaps are multiples of: 0 unless they are whole, 1 where they are too few."""
    if not (gaps == np.floor(gaps)).all():
        return 0.0
    if np.count_nonzero(gaps) < _FEWEST:
        return 1.0
    return float(np.gcd.reduce(gaps.astype(np.int64)))


_NO_WHOLE_DAY: Final = "The log holds no whole day from midnight to midnight."


@register("analysis", "hourly_submissions")
@study("When are jobs submitted?", "3.3")
def hourly_submissions(workload: Workload) -> Answer | str:
    """Jobs submitted per hour of the day: median and quartiles over the days.

    Park's dissertation, figure 3.3. Incomplete first and last days are dropped.
    """
    times = columns.local_times(workload)
    if not times.whole_days:
        return _NO_WHOLE_DAY
    table, scalars = _by_hour(times, np.ones(times.hours.size), "jobs")
    scalars["hours_are_local"] = float(times.is_local)
    verdict = (
        f"{number(scalars['mean_jobs_per_hour'])} jobs an hour on average and "
        f"{number(scalars['most_jobs_per_hour'])} in the busiest one; "
        f"{percent(scalars['share_by_day'])} come between 7 and 19 h, most at "
        f"{scalars['busiest_hour']:.0f} h."
    )
    plot = _plot("jobs submitted per hour", verdict)
    return Answer(verdict, scalars, {"hours": table}, (plot,), _notes(times))


@register("analysis", "hourly_tasks")
@study("How many tasks are to be placed?", "3.3")
def hourly_tasks(workload: Workload) -> Answer | str:
    """Tasks submitted per hour of the day: median and quartiles over the days.

    Park's dissertation, figure 3.4. Incomplete first and last days are dropped.
    """
    times = columns.local_times(workload)
    tasks = columns.tasks(workload)
    if not np.isfinite(tasks).any():
        return "No job says how many tasks it has."
    if not times.whole_days:
        return _NO_WHOLE_DAY
    table, scalars = _by_hour(times, np.nan_to_num(tasks), "tasks")
    most = scalars["most_tasks_per_hour"]
    apart = f", one every {duration(3600 / most)}" if most else ""
    verdict = (
        f"{number(scalars['mean_tasks_per_hour'])} tasks an hour on average and "
        f"{number(most)} in the busiest one{apart}."
    )
    plot = _plot("tasks submitted per hour", verdict)
    notes = _notes(times, "Logs in the Standard Workload Format count every processor as a task.")
    return Answer(verdict, scalars, {"hours": table}, (plot,), notes)


def _by_hour(
    times: columns.LocalTimes, amounts: Floats, what: str
) -> tuple[pl.DataFrame, dict[str, float]]:
    """Quartiles by hour; rates, the share by day and the busiest hour, of what is counted."""
    counts = columns.per_hour(times, amounts)
    table = columns.quartiles_by_hour(counts)
    by_hour = counts.sum(axis=0)
    total = float(by_hour.sum())
    scalars = {
        f"mean_{what}_per_hour": float(counts.mean()),
        f"most_{what}_per_hour": float(counts.max()),
        f"busiest_median_{what}_per_hour": float(table["median"].to_numpy().max()),
        f"quietest_median_{what}_per_hour": float(table["median"].to_numpy().min()),
        "busiest_hour": float(by_hour.argmax()),
        "share_by_day": float(by_hour[columns.DAY_BEGINS : columns.DAY_ENDS].sum()) / total
        if total
        else 0.0,
        "whole_days": float(counts.shape[0]),
    }
    return table, scalars


def _plot(label: str, said: str) -> Plot:
    return Plot(
        kind="band",
        table="hours",
        x="hour",
        y="median",
        x_label="hour of the day",
        y_label=label,
        alternative=said,
        x_kind="hour",
    )


def _notes(times: columns.LocalTimes, *more: str) -> tuple[str, ...]:
    days = count(len(times.whole_days), "whole day")
    return ("Line: median over the days; band: quartiles.", *more, times.said, f"{days}.")


_HOUR_SECONDS: Final = 3600.0


@register("analysis", "size_by_hour")
@study("Do large jobs come by night?", "3.3")
def size_by_hour(workload: Workload) -> Answer | str:
    """Mean size, runtime and work of the jobs submitted in each hour of the day.

    Park's dissertation, section 3.3. Night is before 7 and from 19 h on. Means by
    hour over the jobs of known size and runtime.
    """
    cpus, runtimes = columns.cpus(workload), columns.runtimes(workload)
    usable = np.isfinite(cpus) & np.isfinite(runtimes)
    if not usable.any():
        return "No job's cpus and runtime are both known."
    times = columns.local_times(workload)
    night = times.by_night[usable]
    if night.all() or not night.any():
        when = "night" if night.all() else "day"
        return f"All jobs were submitted by {when}."
    hour, cpus, runtimes = times.hour_of_day[usable], cpus[usable], runtimes[usable]
    work = cpus * runtimes
    jobs = np.bincount(hour, minlength=columns.HOURS)
    table = pl.DataFrame(
        {
            "hour": np.arange(columns.HOURS, dtype=np.float64),
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


def _means(hour: Integers, values: Floats, jobs: Integers) -> Floats:
    sums = np.bincount(hour, weights=values, minlength=columns.HOURS)
    return np.asarray(np.divide(sums, jobs, out=np.full(columns.HOURS, np.nan), where=jobs > 0))


def _correlation(left: Floats, right: Floats) -> float | None:
    if left.size < 2 or left.std() == 0 or right.std() == 0:
        return None
    return float(np.corrcoef(left, right)[0, 1])


MONTH_SECONDS: Final = 29 * 86400.0
"""Length of the Google trace (seconds), whose representativeness the study asks about."""


@register("analysis", "representative_months")
@study("Is a month representative?", "3.7")
def representative_months(workload: Workload) -> Answer | str:
    """Means of 29-day windows over the mean of the whole log: gaps, runtimes and sizes.

    Park's dissertation, figure 3.11. Windows count from the first
    submission; the last, partial one is dropped. A gap belongs to the window in which it ends.
    Ratios of each window; a window without jobs has none.
    """
    submit = workload.jobs["submit_seconds"].to_numpy()
    windows = int((submit[-1] - submit[0]) // MONTH_SECONDS) if submit.size else 0
    if windows < 2:
        return "The log is shorter than two months of 29 days."
    window = ((submit - submit[0]) // MONTH_SECONDS).astype(np.int64)
    gaps = np.concatenate(([np.nan], np.diff(submit)))
    scalars = {"months": float(windows)}
    rows: list[pl.DataFrame] = []
    boxes: list[dict[str, Any]] = []
    for quantity, values in (
        ("inter-arrival", gaps),
        ("runtime", columns.runtimes(workload)),
        ("cpus", columns.cpus(workload)),
    ):
        ratios = _ratios(values, window, windows)
        if ratios is None:
            continue
        rows.append(
            pl.DataFrame(
                {
                    "month": np.arange(1.0, windows + 1),
                    "quantity": [f"mean {quantity}"] * windows,
                    "ratio": ratios,
                }
            )
        )
        box = columns.tukey_box(columns.known(ratios))
        boxes.append({"quantity": f"mean {quantity}", **_row(box)})
        name = quantity.replace("-", "_")
        scalars |= {
            f"least_{name}_ratio": float(columns.known(ratios).min()),
            f"most_{name}_ratio": float(columns.known(ratios).max()),
            f"outliers_{name}": float(len(box.outliers)),
        }
    said = ", ".join(
        f"{words} {number(scalars[f'least_{name}_ratio'])}–"
        f"{number(scalars[f'most_{name}_ratio'])} times"
        for name, words in (("inter_arrival", "gaps"), ("runtime", "runtimes"))
        if f"least_{name}_ratio" in scalars
    )
    verdict = f"Months have mean {said} those of the whole log."
    by_month = Plot(
        kind="line",
        table="months",
        x="month",
        y="ratio",
        x_label="month of 29 days",
        y_label="month ÷ whole log (log scale)",
        alternative=verdict,
        series="quantity",
        log_y=True,
    )
    box_plot = Plot(
        kind="box",
        table="boxes",
        x="quantity",
        y="median",
        x_label="what is averaged",
        y_label="month ÷ whole log (log scale)",
        alternative="Half of the months lie between "
        + ", ".join(
            f"{number(box['quartile_1'])} and {number(box['quartile_3'])} times ({box['quantity']})"
            for box in boxes
        )
        + ".",
        x_kind="category",
        log_y=True,
    )
    return Answer(
        verdict,
        scalars,
        {
            "months": pl.concat(rows).with_columns(pl.col("ratio").fill_nan(None)),
            "boxes": pl.DataFrame(boxes),
        },
        (by_month, box_plot),
        (
            f"{count(windows, 'whole month')}.",
            "Boxes: quartiles; whiskers: the furthest months within 1.5 times their distance.",
        ),
    )


def _ratios(values: Floats, window: Integers, windows: int) -> Floats | None:
    """Mean of each window over the mean of all; NaN for an empty one, None if there is no mean."""
    usable = np.isfinite(values)
    whole = float(values[usable].mean()) if usable.any() else 0.0
    if whole <= 0:
        return None
    size = windows + 1
    window = np.minimum(window, windows)
    sums = np.bincount(window[usable], weights=values[usable], minlength=size)[:windows]
    jobs = np.bincount(window[usable], minlength=size)[:windows]
    means = np.divide(sums, jobs, out=np.full(windows, np.nan), where=jobs > 0)
    return means / whole if np.isfinite(means).any() else None


def _row(box: columns.TukeyBox) -> dict[str, Any]:
    return {
        "lower_whisker": box.lower_whisker,
        "quartile_1": box.quartile_1,
        "median": box.median,
        "quartile_3": box.quartile_3,
        "upper_whisker": box.upper_whisker,
        "outliers": " ".join(f"{value:.6g}" for value in box.outliers),
    }
