"""Columns of jobs that analyses share, their times by the clock on the wall, and distributions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
import polars as pl

from foresail.analysis.finding import Plot
from foresail.model.distribution import Booleans, Floats, Integers
from foresail.traces.workload import Workload

DAY_BEGINS: Final = 7
DAY_ENDS: Final = 19
"""Hours between which the study finds users at work (dissertation, section 3.3)."""

HOURS: Final = 24
_HOUR_SECONDS: Final = 3600.0


@dataclass(frozen=True)
class LocalTimes:
    """Submission of each job by the clock on the wall."""

    hours: Integers
    """Whole hours since a midnight, one a job; hour of the day is this modulo 24."""
    is_local: bool
    """True if the clock is that of the place: origin and time zone are known."""
    said: str
    """Name of the clock, in a sentence."""

    @property
    def hour_of_day(self) -> Integers:
        """0 to 23, one a job."""
        return self.hours % HOURS

    @property
    def by_night(self) -> Booleans:
        """Mask of the jobs that were submitted outside the hours from 7 to 19."""
        hour = self.hour_of_day
        return (hour < DAY_BEGINS) | (hour >= DAY_ENDS)

    @property
    def whole_days(self) -> range:
        """Days of which every hour lies between those of the first and the last submission."""
        if not self.hours.size:
            return range(0)
        first, last = int(self.hours.min()), int(self.hours.max())
        return range(-(-first // HOURS), (last + 1) // HOURS)


def local_times(workload: Workload) -> LocalTimes:
    """The wall clock of every submission; the log's own clock where it does not say when it began.

    A time zone that is unknown (or no name of one) leaves Coordinated Universal Time.
    """
    submit = workload.jobs["submit_seconds"]
    origin, zone = workload.meta.origin_unix_seconds, workload.meta.time_zone
    if origin is None:
        hours = np.floor(submit.to_numpy() / _HOUR_SECONDS).astype(np.int64)
        said = "The log does not say when it began: hours count from its second zero."
        return LocalTimes(hours, is_local=False, said=said)
    local = None if zone is None else _hours_in(submit + origin, zone)
    if local is not None:
        return LocalTimes(local, is_local=True, said=f"Hours are those of {zone}.")
    hours = np.floor((submit.to_numpy() + origin) / _HOUR_SECONDS).astype(np.int64)
    said = "The log does not name its time zone: hours are as in UTC."
    return LocalTimes(hours, is_local=False, said=said)


def per_hour(times: LocalTimes, weights: Floats) -> Floats:
    """Sums of the jobs' weights by (whole day, hour of the day); an hour without jobs has 0."""
    days = times.whole_days
    cells = times.hours - days.start * HOURS
    inside = (cells >= 0) & (cells < len(days) * HOURS)
    size = len(days) * HOURS
    sums = np.bincount(cells[inside], weights=weights[inside], minlength=size)
    return np.asarray(sums[:size], dtype=np.float64).reshape(len(days), HOURS)


def quartiles_by_hour(counts: Floats) -> pl.DataFrame:
    """A row per hour of the day: quartiles over the days (linear interpolation), mean, maximum.

    Counts have the shape (days, 24), with at least one day.
    """
    low, median, high = np.quantile(counts, (0.25, 0.5, 0.75), axis=0)
    return pl.DataFrame(
        {
            "hour": np.arange(HOURS, dtype=np.float64),
            "median": median,
            "low": low,
            "high": high,
            "mean": counts.mean(axis=0),
            "maximum": counts.max(axis=0),
        }
    )


def _hours_in(unix_seconds: pl.Series, zone: str) -> Integers | None:
    stamps = (unix_seconds * 1000.0).cast(pl.Int64).cast(pl.Datetime("ms", "UTC"))
    try:
        local = stamps.dt.convert_time_zone(zone).dt.replace_time_zone(None)
    except pl.exceptions.PolarsError:
        return None
    return (local.dt.epoch("s") // int(_HOUR_SECONDS)).to_numpy()


OUTCOMES: Final = ("successful", "failed", "aborted", "timed out")
UNSUCCESSFUL: Final = ("failed", "aborted")

NOT_STATED: Final = "The log does not distinguish unsuccessful jobs from successful ones."

DEFINITION: Final = (
    "Unsuccessful: failed or cancelled. Timed out: failed or cancelled after at least the "
    "requested time; counted by itself, as the study does."
)


def outcomes(workload: Workload) -> pl.Series | None:
    """The outcome of every job (null where unknown or partial), if the log distinguishes them.

    None if no outcome is known, or all are recorded as completed: such logs do not record failures.

    Logs do not say why a job was killed. One that was cancelled or failed after it had run for at
    least its requested time counts as timed out (dissertation, section 3.5).
    """
    status = pl.col("status")
    killed = status.is_in(["failed", "cancelled"])
    at_limit = (pl.col("runtime_seconds") >= pl.col("requested_seconds")).fill_null(value=False)
    outcome = (
        pl.when(killed & at_limit)
        .then(pl.lit("timed out"))
        .when(status == "completed")
        .then(pl.lit("successful"))
        .when(status == "failed")
        .then(pl.lit("failed"))
        .when(status == "cancelled")
        .then(pl.lit("aborted"))
    )
    found = workload.jobs.select(outcome.alias("outcome")).to_series()
    names = found.drop_nulls().unique().to_list()
    return found if set(names) - {"successful"} else None


def runtimes(workload: Workload) -> Floats:
    """Seconds that each job ran; 0 is a runtime, unknown is NaN."""
    return _array(workload, pl.col("runtime_seconds"))


def cpus(workload: Workload) -> Floats:
    """Cpus that each job asked for (tasks x cpus per task); NaN where unknown or 0."""
    return _positive(workload, pl.col("tasks") * pl.col("cpus_per_task"))


def memory_bytes(workload: Workload) -> Floats:
    """Bytes that each job asked for, all tasks together; NaN where unknown or 0."""
    return _positive(workload, pl.col("tasks") * pl.col("memory_bytes_per_task"))


def gpus(workload: Workload) -> Floats:
    """Gpus that each job asked for; NaN where unknown or 0."""
    return _positive(workload, pl.col("tasks") * pl.col("gpus_per_task"))


def tasks(workload: Workload) -> Floats:
    """Tasks of each job; NaN where unknown or 0."""
    return _positive(workload, pl.col("tasks"))


def submissions(workload: Workload) -> Floats:
    """Seconds of submission, ascending, without unknown ones."""
    submit = _array(workload, pl.col("submit_seconds"))
    return np.sort(submit[np.isfinite(submit)])


def _array(workload: Workload, quantity: pl.Expr) -> Floats:
    values = workload.jobs.select(quantity.cast(pl.Float64)).to_series().to_numpy(writable=True)
    values[~np.isfinite(values)] = np.nan
    return values


def _positive(workload: Workload, quantity: pl.Expr) -> Floats:
    values = _array(workload, quantity)
    values[~(values > 0)] = np.nan
    return values


MOST_POINTS: Final = 1000
"""Rows of a table of cumulative shares; a sample with more distinct values is thinned to them."""

_TAIL_POINTS: Final = 100


@dataclass(frozen=True, slots=True)
class TukeyBox:
    """Quartiles (linear interpolation), the furthest values within 1.5 IQR of them, the rest."""

    lower_whisker: float
    quartile_1: float
    median: float
    quartile_3: float
    upper_whisker: float
    outliers: tuple[float, ...]


def known(values: Floats) -> Floats:
    """The finite values."""
    return values[np.isfinite(values)]


def cumulative_shares(values: Floats, name: str = "value") -> pl.DataFrame:
    """The empirical distribution function of finite values, as columns ``name`` and ``share``.

    One row per distinct value with the share of the sample that is at most it. Of more than
    ``MOST_POINTS`` distinct values those are kept that lie evenly in the share, evenly in the
    logarithm of the value, and evenly in the logarithm of the share beyond (the upper tail); every
    row that is kept is exact.
    """
    distinct, counts = np.unique(values, return_counts=True)
    share = np.cumsum(counts) / max(values.size, 1)
    if distinct.size > MOST_POINTS:
        rows = _informative(distinct, share)
        distinct, share = distinct[rows], share[rows]
    return pl.DataFrame({name: distinct, "share": share})


def cumulative_plot(
    table: str,
    column: str,
    x_label: str,
    y_label: str,
    said: str,
    *,
    series: str | None = None,
    x_kind: Literal["number", "duration"] = "number",
    log_x: bool = True,
) -> Plot:
    """The picture of a table of ``cumulative_shares`` of a column; else as ``Plot`` has it.

    ``said`` is the finding in a sentence.
    """
    plot = Plot("steps", table, column, "share", x_label, y_label, said, series, y_kind="share")
    return replace(plot, x_kind=x_kind, log_x=log_x)


def _informative(distinct: Floats, share: Floats) -> Integers:
    evenly = (MOST_POINTS - _TAIL_POINTS) // 2 - 2
    last = distinct.size - 1
    positive = distinct[distinct > 0]
    wanted = [
        np.array([0, last]),
        np.searchsorted(share, np.linspace(0.0, 1.0, evenly)),
        np.searchsorted(share, 1.0 - np.geomspace(1.0 - share[0], 1.0 - share[-2], _TAIL_POINTS)),
    ]
    if positive.size:
        wanted.append(np.searchsorted(distinct, np.geomspace(positive[0], positive[-1], evenly)))
    return np.unique(np.minimum(np.concatenate(wanted), last)).astype(np.int64)


def variation(values: Floats) -> float:
    """Coefficient of variation: population standard deviation over mean; NaN for a mean of 0."""
    mean = float(values.mean())
    return float(values.std()) / mean if mean else float("nan")


def tukey_box(values: Floats) -> TukeyBox:
    """Tukey's box of at least one value."""
    lower, median, upper = (float(q) for q in np.quantile(values, (0.25, 0.5, 0.75)))
    reach = 1.5 * (upper - lower)
    inside = (values >= lower - reach) & (values <= upper + reach)
    return TukeyBox(
        lower_whisker=float(values[inside].min()),
        quartile_1=lower,
        median=median,
        quartile_3=upper,
        upper_whisker=float(values[inside].max()),
        outliers=tuple(float(value) for value in np.sort(values[~inside])),
    )
