"""Carbon of jobs that wait for green hours (the thesis' outlook), and intensity over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from foresail.cloud.prices_reading import Reference, Row, table_rows
from foresail.cloud.waiting.jobs import TraceJobs, writable
from foresail.kernels.compile import part, unlocked_kernel
from foresail.model.distribution import Floats
from foresail.model.errors import InputError, require_positive


@part
def emitted_by(intensity: Floats, sums: Floats, steps: float) -> float:
    """Intensity summed over the time from 0, which is counted in steps; it repeats at its end.

    ``sums[i]`` is the sum of the first ``i`` steps.
    """
    count = intensity.size
    rounds = math.floor(steps / count)
    rest = steps - rounds * count
    whole = min(int(rest), count - 1)
    return float(rounds * sums[count] + sums[whole] + (rest - whole) * intensity[whole])


@unlocked_kernel
def emitted_between(
    intensity: Floats, sums: Floats, start: Floats, end: Floats, emitted: Floats
) -> None:
    """Fill in ``emitted``: intensity summed from each start to its end (in steps)."""
    for run in range(start.size):
        before = emitted_by(intensity, sums, start[run])
        emitted[run] = emitted_by(intensity, sums, end[run]) - before


@part
def _mean_emission(intensity: Floats, sums: Floats, start: float, runtimes: Floats) -> float:
    """Emission of a run from ``start``, averaged over equally likely runtimes (all in steps)."""
    before = emitted_by(intensity, sums, start)
    total = 0.0
    for k in range(runtimes.size):
        total += emitted_by(intensity, sums, start + runtimes[k]) - before
    return total / runtimes.size


@unlocked_kernel
def greenest_starts(
    intensity: Floats,
    sums: Floats,
    submit: Floats,
    runtimes: Floats,
    patience: Floats,
    delay_value: Floats,
    start: Floats,
) -> None:
    """Fill in ``start``: least emission plus ``delay_value`` a step of delay (times in steps).

    ``runtimes`` has a row of equally likely runtimes for each job. The sum is piecewise linear in
    the start, with corners where it or an end meets a change of intensity: one of them is best, or
    the latest start. Of equals, the earliest is taken, and what rounding could make up is equal.
    """
    for job in range(submit.size):
        now, last = submit[job], submit[job] + patience[job]
        best, best_start = _mean_emission(intensity, sums, now, runtimes[job]), now
        # Emissions are differences of sums from time 0 on, and no more exact than those.
        slack = 1e-14 * abs(emitted_by(intensity, sums, last)) + 1e-12 * abs(best)
        for corner in range(-1, runtimes.shape[1]):
            offset = 0.0 if corner < 0 else runtimes[job, corner]
            edge = math.floor(now + offset) + 1.0
            at = now
            while at < last:
                at = min(max(edge - offset, now), last)
                cost = _mean_emission(intensity, sums, at, runtimes[job])
                cost += delay_value[job] * (at - now)
                if cost < best - slack or (cost == best and at < best_start):
                    best, best_start = cost, at
                edge += 1.0
        start[job] = best_start


@dataclass(frozen=True)
class CarbonIntensity:
    """Grams of CO2 per kWh in equal steps from second 0 on; after the last it begins again."""

    grams_per_kwh: Floats
    """One value per step."""
    step_seconds: float = 3600.0
    """Length of a step."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "grams_per_kwh", writable(self.grams_per_kwh))
        values = self.grams_per_kwh
        if values.ndim != 1 or values.size == 0 or not np.all(values >= 0.0):
            raise InputError("out of range", field="grams_per_kwh", expected="values, 0 or more")
        require_positive(self, "step_seconds")

    @cached_property
    def sums(self) -> Floats:
        """Sums of the first values."""
        return np.concatenate(([0.0], np.cumsum(self.grams_per_kwh)))

    def grams(self, start_seconds: ArrayLike, runtime_seconds: ArrayLike) -> Floats:
        """Grams that one kW emits in each run."""
        starts, ends = np.broadcast_arrays(
            np.asarray(start_seconds, dtype=np.float64),
            np.asarray(start_seconds, dtype=np.float64) + np.asarray(runtime_seconds),
        )
        total = np.empty(starts.size)
        emitted_between(
            self.grams_per_kwh,
            self.sums,
            writable(starts.ravel() / self.step_seconds),
            writable(ends.ravel() / self.step_seconds),
            total,
        )
        return total.reshape(starts.shape) * self.step_seconds / 3600.0


@dataclass(frozen=True, slots=True)
class GreenMetrics:
    """Result of waiting for green hours."""

    grams: float
    grams_at_once: float
    """Emitted by all jobs, and if none had waited."""
    mean_wait_seconds: float
    """Over all jobs."""
    waiting_jobs: float
    """Share of jobs that waited."""

    @property
    def saved(self) -> float:
        """Share of the emission that waiting saved."""
        return 1.0 - self.grams / self.grams_at_once if self.grams_at_once else 0.0


def green_starts(
    jobs: TraceJobs,
    carbon: CarbonIntensity,
    believed_runtimes: Floats,
    patience_seconds: ArrayLike,
    grams_per_hour: ArrayLike = 0.0,
) -> Floats:
    """Start of each job (s) that emits least, as far as is believed of its runtime.

    Of the jobs only submit times count. ``believed_runtimes`` has a row of equally likely runtimes
    (s) for each job: quantiles of its belief, or one estimate. ``patience_seconds`` is the longest
    delay, of all or by job; ``grams_per_hour`` what an hour's delay must save, per kW of the job.

    Raises ``InputError`` if an argument is negative or not one for each job.
    """
    count = len(jobs)
    runtimes = np.asarray(believed_runtimes, dtype=np.float64)
    runtimes = runtimes[:, None] if runtimes.ndim == 1 else runtimes
    if runtimes.shape[0] != count:
        raise InputError(
            "not one row for each job", field="believed_runtimes", value=runtimes.shape[0]
        )
    step = carbon.step_seconds
    patience = np.broadcast_to(np.asarray(patience_seconds, dtype=np.float64), (count,))
    value = np.broadcast_to(np.asarray(grams_per_hour, dtype=np.float64), (count,))
    if not (np.all(patience >= 0.0) and np.all(np.isfinite(patience)) and np.all(value >= 0.0)):
        raise InputError("out of range", field="patience_seconds", expected="finite, 0 or more")
    # Once round, nothing greener is to come; and counted from the round's begin, sums are exact.
    once_round = float(carbon.grams_per_kwh.size)
    patience = np.minimum(patience, once_round * step)
    start = np.empty(count)
    submit = jobs.submit_seconds / step
    begin = np.floor(submit / once_round) * once_round
    submit = submit - begin
    greenest_starts(
        carbon.grams_per_kwh,
        carbon.sums,
        submit,
        writable(runtimes / step),
        writable(patience / step),
        writable(value),  # grams per kWh and step, for an hour's delay in steps
        start,
    )
    # A job that starts at once does so exactly, whatever division and multiplication made of it.
    at_once = jobs.submit_seconds
    return np.where(start > submit, np.maximum((start + begin) * step, at_once), at_once)


def green_metrics(grams: Floats, grams_at_once: Floats, wait_seconds: Floats) -> GreenMetrics:
    """The jobs together, from what each emits, would have at once, and waits; shape (jobs,)."""
    return GreenMetrics(
        grams=float(grams.sum()),
        grams_at_once=float(grams_at_once.sum()),
        mean_wait_seconds=float(wait_seconds.mean()),
        waiting_jobs=float(np.mean(wait_seconds > 0.0)),
    )


VALUE: Final = "grams_per_kwh"
CLOCKS: Final = ("time", "unix_seconds", "hours")
"""Columns that say when a value begins to hold: ISO date, Unix seconds, hours of the log."""
_LAYOUT: Final = f"columns {VALUE} and one of {', '.join(CLOCKS)}"
_EVEN: Final = 0.01
"""Share of a step by which one may be longer or shorter than the others."""
_HOUR: Final = 3600.0


class Repeat(StrEnum):
    """Period of a series that is repeated where it is shorter than the log."""

    DAILY = "daily"
    WEEKLY = "weekly"

    @property
    def seconds(self) -> float:
        """Length of the day or week, of which the series must have a whole number."""
        return 86400.0 if self is Repeat.DAILY else 7 * 86400.0


@dataclass(frozen=True)
class IntensitySeries:
    """Intensity from a moment on."""

    source: Path
    clock: str
    """The file, and which of ``CLOCKS`` it has."""
    first_seconds: float
    """Begin, in seconds from the log's origin; before 0 where it began before the log."""
    carbon: CarbonIntensity
    """Its values."""
    repeats: bool
    """True if it goes round, before its beginning and after its end."""
    origin_unix_seconds: float | None
    """Unix time of the log's origin, where it is known."""

    @property
    def end_seconds(self) -> float:
        """End of its last step, in seconds from the log's origin."""
        return self.first_seconds + self.carbon.grams_per_kwh.size * self.carbon.step_seconds

    def demand_covered(self, first_seconds: float, last_seconds: float) -> None:
        """Refuse a time (s from the log's origin) that is not within a series that ends."""
        if self.repeats or (
            self.first_seconds <= first_seconds and last_seconds <= self.end_seconds
        ):
            return
        apart = last_seconds <= self.first_seconds or self.end_seconds <= first_seconds
        whole = [each for each in Repeat if self._lasts_whole(each)]
        again = f", or --repeat {whole[-1]}" if whole else ""
        raise InputError(
            "does not overlap the log" if apart else "does not last as long as the jobs may run",
            source=self.source,
            field=self.clock,
            value=f"{self._said(self.first_seconds)} to {self._said(self.end_seconds)}",
            expected=f"{self._said(first_seconds)} to {self._said(last_seconds)}{again}",
        )

    def _lasts_whole(self, repeat: Repeat) -> bool:
        times = (self.end_seconds - self.first_seconds) / repeat.seconds
        return round(times) >= 1 and abs(times - round(times)) < _EVEN / 24.0

    def _said(self, seconds: float) -> str:
        """A moment as the file writes it."""
        if self.clock == "hours":
            return f"{seconds / _HOUR:.6g}"
        unix = seconds + (self.origin_unix_seconds or 0.0)
        if self.clock == "unix_seconds":
            return f"{unix:.0f}"
        return (
            datetime.fromtimestamp(unix, UTC).isoformat(timespec="minutes").removesuffix("+00:00")
        )


def read_intensity(
    path: Path, origin_unix_seconds: float | None, repeat: Repeat | None
) -> IntensitySeries:
    """The series in a table with commas: ``grams_per_kwh``, and a column of ``CLOCKS``.

    A value holds until the next row's time; the last as long as the others do. Dates without a
    zone are UTC.

    Only ``hours`` can do without the Unix time of the log's origin. A series that is to ``repeat``
    must have a whole number of that.

    Raises ``InputError`` if the file cannot be read, lacks a column, or a value is missing or
    negative; if times do not rise in equal steps; if the log has no date; if the series has not
    whole days or weeks to repeat. It names file, line, field and value.
    """
    if not path.is_file():
        raise InputError("there is no such file", source=path)
    rows = list(table_rows(Reference(str(path))))
    if len(rows) < 2:
        raise InputError("too few values", source=path, value=len(rows), expected="2 or more")
    clock = _clock(path, rows)
    if clock != "hours" and origin_unix_seconds is None:
        raise InputError(
            "the log does not say when it began",
            source=path,
            field=clock,
            expected="a column hours instead, from the log's origin",
        )
    for row in rows:
        row.demand_known((VALUE, clock))
    values = np.array([_grams(row) for row in rows])
    moments = np.array([_moment(row, clock) for row in rows])
    origin = 0.0 if clock == "hours" else origin_unix_seconds or 0.0
    step = _step(rows, clock, moments)
    carbon = CarbonIntensity(values, step)
    first = float(moments[0]) - origin
    series = IntensitySeries(path, clock, first, carbon, repeat is not None, origin_unix_seconds)
    if repeat is not None and not series._lasts_whole(repeat):
        raise InputError(
            f"cannot repeat {repeat}",
            source=path,
            field=clock,
            value=f"{values.size * step / _HOUR:.6g} hours",
            expected=f"a multiple of {repeat.seconds / _HOUR:g} hours",
        )
    return series


def _clock(path: Path, rows: Sequence[Row]) -> str:
    named = {name for row in rows for name in row.values}
    found = [name for name in CLOCKS if name in named]
    if len(found) != 1 or VALUE not in named:
        has = ", ".join(sorted(named))
        raise InputError("not a series of intensities", source=path, value=has, expected=_LAYOUT)
    return found[0]


def _grams(row: Row) -> float:
    value = row.number(VALUE)
    if not 0.0 <= value < math.inf:
        raise row.error("not an intensity", VALUE, value, "grams of CO2 per kWh, 0 or more")
    return value


def _moment(row: Row, clock: str) -> float:
    """Seconds: of Unix time, or for hours from the log's origin."""
    if clock != "time":
        value = row.number(clock)
        if not math.isfinite(value):
            raise row.error("not a time", clock, value, "a number")
        return value * (_HOUR if clock == "hours" else 1.0)
    text = row.text(clock)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise row.error("not a time", clock, text, "a date such as 2024-03-31T14:00") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _step(rows: Sequence[Row], clock: str, moments: Floats) -> float:
    """Seconds between rows: the same for all."""
    steps = np.diff(moments)
    usual = float(np.median(steps[steps > 0.0])) if (steps > 0.0).any() else 0.0
    for row, step in zip(rows[1:], steps.tolist(), strict=True):
        if not step > 0.0:
            raise row.error("not in order", clock, row.text(clock), "later than the row before")
        if abs(step - usual) > _EVEN * usual:
            raise row.error(
                "not one step after the row before",
                clock,
                row.text(clock),
                f"{usual:g} s later, as most rows are",
            )
    return float(moments[-1] - moments[0]) / (moments.size - 1)
