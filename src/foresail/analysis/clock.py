"""The time of day and the day on which jobs were submitted, where they were submitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.traces.workload import Workload

DAY_BEGINS: Final = 7
DAY_ENDS: Final = 19
"""Hours between which the study finds users at work (dissertation, section 3.3)."""

HOURS: Final = 24
_HOUR_SECONDS: Final = 3600.0


@dataclass(frozen=True)
class LocalTimes:
    """When each job was submitted by the clock on the wall."""

    hours: NDArray[np.int64]
    """Whole hours since a midnight, one a job; hour of the day is this modulo 24."""
    is_local: bool
    """Whether it is the clock of the place: origin and time zone are known."""
    said: str
    """Which clock it is, in a sentence."""

    @property
    def hour_of_day(self) -> NDArray[np.int64]:
        """0 to 23, one a job."""
        return self.hours % HOURS

    @property
    def by_night(self) -> NDArray[np.bool_]:
        """Whether each job was submitted outside the hours from 7 to 19."""
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


def per_hour(times: LocalTimes, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of the jobs' weights by (whole day, hour of the day); an hour without jobs has 0."""
    days = times.whole_days
    cells = times.hours - days.start * HOURS
    inside = (cells >= 0) & (cells < len(days) * HOURS)
    size = len(days) * HOURS
    sums = np.bincount(cells[inside], weights=weights[inside], minlength=size)
    return np.asarray(sums[:size], dtype=np.float64).reshape(len(days), HOURS)


def quartiles_by_hour(counts: NDArray[np.float64]) -> pl.DataFrame:
    """A row per hour of the day: quartiles over the days (linear interpolation), mean, maximum.

    Counts have the shape (days, 24), with at least one day (spec section 10, W3; golden value G20).
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


def _hours_in(unix_seconds: pl.Series, zone: str) -> NDArray[np.int64] | None:
    stamps = (unix_seconds * 1000.0).cast(pl.Int64).cast(pl.Datetime("ms", "UTC"))
    try:
        local = stamps.dt.convert_time_zone(zone).dt.replace_time_zone(None)
    except pl.exceptions.PolarsError:
        return None
    return (local.dt.epoch("s") // int(_HOUR_SECONDS)).to_numpy()
