"""Savings of waiting for green hours on a log, for several patiences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.cloud.over_time import block_draws, block_seconds, interval, work_until
from foresail.cloud.waiting.carbon import GreenMetrics, IntensitySeries, green_metrics, green_starts
from foresail.cloud.waiting.jobs import TraceJobs, writable
from foresail.model.distribution import Floats
from foresail.model.errors import InputError

_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class GreenCertainty:
    """Intervals (95 %) from weeks of the log drawn anew."""

    saved: tuple[float, float]
    """Share of the emission that waiting saved."""
    mean_wait_seconds: tuple[float, float]
    """Over all jobs."""


@dataclass(frozen=True, slots=True)
class GreenPoint:
    """One patience."""

    patience_seconds: float
    """The longest delay of a job."""
    believed: GreenMetrics
    """Outcome with runtimes as they were believed."""
    known: GreenMetrics
    """The same with known runtimes."""
    most_cores: int
    """Cores in use at once at most, as believed."""
    certainty: GreenCertainty | None
    """Certainty of the outcome of believed runtimes; None for logs of fewer than five days."""

    @property
    def kilograms_saved(self) -> float:
        """CO2 that is not emitted, as believed."""
        return (self.believed.grams_at_once - self.believed.grams) / 1000.0

    @property
    def realised(self) -> float | None:
        """Share of what known runtimes save that believed ones do; None where they save nothing."""
        return self.believed.saved / self.known.saved if self.known.saved > 0.0 else None


@dataclass(frozen=True, eq=False)
class GreenCourse:
    """Hours of the clock: how green each was, and how much ran; arrays of shape (hours,)."""

    edges_seconds: Floats
    """Begin of each hour and end of the last, from the log's origin; shape (hours + 1,)."""
    hour_of_day: Floats
    """0 to 23, UTC where the log's date is known, else of the log's days."""
    grams_per_kwh: Floats
    """Mean intensity."""
    cores_at_once: Floats
    cores_waiting: Floats
    """Mean cores in use if all start at once, and if they wait up to the longest patience."""

    def by_hour_of_day(self, column: Floats) -> Floats:
        """Means of a column, shape (24,); nan for hours that the log has not."""
        weights = np.diff(self.edges_seconds)
        hours = self.hour_of_day.astype(np.int64)
        total = np.bincount(hours, weights * column, minlength=24)
        length = np.bincount(hours, weights, minlength=24)
        mean: Floats = np.divide(total, length, out=np.full(24, np.nan), where=length > 0.0)
        return mean


@dataclass(frozen=True, eq=False)
class GreenAnswer:
    """All that was found."""

    points: tuple[GreenPoint, ...]
    """By rising patience, beginning with none."""
    jobs: int
    """Number of jobs."""
    core_hours: float
    """Work, the same for every patience."""
    gpu_hours: float
    """The same of gpus; 0 where no job asks for one."""
    kilowatts_per_core: float
    kilowatts_per_gpu: float
    """Power drawn by a busy core and by a busy gpu."""
    hour_grams: float
    """CO2 that an hour's delay of a job must save."""
    most_cores_at_once: int
    """Cores in use at once at most if no job waits."""
    unbelieved_jobs: float
    """Share of jobs of which nothing is believed: they start at once."""
    blocks: int
    block_seconds: float
    """Blocks that were drawn anew: their number, and the length of each; 0 for too short a log."""
    course: GreenCourse
    """Use over time, with no patience and the longest."""


def green_hours(
    jobs: TraceJobs,
    series: IntensitySeries,
    believed_runtimes: Floats,
    patiences_seconds: Sequence[float],
    kilowatts_per_core: float,
    hour_grams: float = 0.0,
    kilowatts_per_gpu: float = 0.0,
) -> GreenAnswer:
    """Start each job within each patience where it emits least; no job waits for capacity.

    Raises ``InputError`` if there are no jobs, the power or a patience is out of range, or the
    series does not last as long as jobs may run.

    Parameters
    ----------
    jobs
        The log.
    series
        Intensity, known in advance.
    believed_runtimes
        Seconds by job, shape (jobs,); whose is not finite starts at once.
    patiences_seconds
        Longest delays; 0 is added.
    kilowatts_per_core
        What a busy core draws.
    hour_grams
        CO2 that an hour's delay of a job must save.
    kilowatts_per_gpu
        What a busy gpu draws.
    """
    if not len(jobs):
        raise InputError("there are no jobs")
    if not 0.0 < kilowatts_per_core < np.inf:
        raise InputError(
            "out of range", field="watts", value=1000.0 * kilowatts_per_core, expected="above 0"
        )
    if not 0.0 <= kilowatts_per_gpu < np.inf:
        value = 1000.0 * kilowatts_per_gpu
        raise InputError("out of range", field="gpu watts", value=value, expected="0 or more")
    if not 0.0 <= hour_grams < np.inf:
        raise InputError("out of range", field="hour grams", value=hour_grams, expected="0 or more")
    patiences = sorted({0.0, *patiences_seconds})
    longest = patiences[-1]
    submit, runtime = jobs.submit_seconds, jobs.runtime_seconds
    series.demand_covered(float(submit[0]), float((submit + runtime).max()) + longest)
    shifted = TraceJobs(submit - series.first_seconds, runtime, jobs.cores)
    some = np.isfinite(believed_runtimes)
    believed = np.where(some, believed_runtimes, 0.0)
    if not series.repeats:
        # What a job is believed to emit after the series' end is unknown.
        believed = np.minimum(believed, series.end_seconds - submit - longest)

    power: Floats = jobs.cores.astype(np.float64) * kilowatts_per_core
    if jobs.gpus is not None:
        power = power + jobs.gpus * kilowatts_per_gpu
    grams_per_kilowatt = hour_grams / power

    def started(runtimes: Floats, patience: Floats) -> Floats:
        return green_starts(
            shifted, series.carbon, writable(runtimes), patience, grams_per_kilowatt
        )

    def emitted(starts: Floats) -> Floats:
        return series.carbon.grams(starts, runtime) * power

    at_once = emitted(shifted.submit_seconds)
    length = block_seconds(submit)
    blocks = _Blocks(submit, length, at_once) if length is not None else None
    points, starts = [], shifted.submit_seconds
    for patience in patiences:
        starts = started(believed, np.where(some, patience, 0.0))
        with_truth = started(runtime, np.full(len(jobs), patience))
        grams, wait = emitted(starts), starts - shifted.submit_seconds
        points.append(
            GreenPoint(
                patience,
                green_metrics(grams, at_once, wait),
                green_metrics(emitted(with_truth), at_once, with_truth - shifted.submit_seconds),
                most_cores(starts, jobs),
                None if blocks is None else blocks.certainty(grams, wait),
            )
        )
    return GreenAnswer(
        tuple(points),
        len(jobs),
        jobs.core_seconds / _HOUR,
        jobs.gpu_seconds / _HOUR,
        kilowatts_per_core,
        kilowatts_per_gpu,
        hour_grams,
        points[0].most_cores,
        1.0 - float(some.mean()),
        0 if blocks is None else blocks.count,
        length or 0.0,
        _course(jobs, series, starts + series.first_seconds),
    )


class _Blocks:
    """Blocks of submissions, and how often each comes in periods put together anew."""

    def __init__(self, submit_seconds: Floats, length: float, grams_at_once: Floats) -> None:
        since = submit_seconds - submit_seconds[0]
        self.count = max(int(np.ceil(since[-1] / length - 1e-9)), 1)
        self._of_job = np.minimum((since / length).astype(np.int64), self.count - 1)
        self._draws = block_draws(self.count)
        self._at_once = self._drawn(grams_at_once)
        self._jobs = self._drawn(np.ones(since.size))

    def certainty(self, grams: Floats, wait_seconds: Floats) -> GreenCertainty:
        """Intervals of the share saved and of the mean wait."""
        kept = np.divide(
            self._drawn(grams),
            self._at_once,
            out=np.ones_like(self._at_once),
            where=self._at_once > 0.0,
        )
        return GreenCertainty(
            interval(1.0 - kept), interval(self._drawn(wait_seconds) / np.maximum(self._jobs, 1.0))
        )

    def _drawn(self, values: Floats) -> Floats:
        """Sums of each period, shape (draws,)."""
        sums: Floats = self._draws @ np.bincount(self._of_job, values, self.count)
        return sums


def most_cores(start_seconds: Floats, jobs: TraceJobs) -> int:
    """Cores in use at once at most, when the jobs start then."""
    times = np.concatenate([start_seconds + jobs.runtime_seconds, start_seconds])
    change = np.concatenate([-jobs.cores, jobs.cores])
    # Ends come first among events at one time; a job of no length would end before it starts.
    lasting = np.tile(jobs.runtime_seconds > 0.0, 2)
    times, change = times[lasting], change[lasting]
    order = np.argsort(times, kind="stable")
    return int(np.cumsum(change[order]).max(initial=0))


def _course(jobs: TraceJobs, series: IntensitySeries, start_seconds: Floats) -> GreenCourse:
    clock = series.origin_unix_seconds or 0.0
    last = float((np.maximum(start_seconds, jobs.submit_seconds) + jobs.runtime_seconds).max())
    first_hour = np.floor((jobs.submit_seconds[0] + clock) / _HOUR)
    last_hour = max(np.ceil((last + clock) / _HOUR), first_hour + 1.0)
    edges = np.arange(first_hour, last_hour + 0.5) * _HOUR - clock
    hours = np.arange(first_hour, last_hour - 0.5) % 24.0
    if not series.repeats:
        edges = np.clip(edges, series.first_seconds, series.end_seconds)
    length = np.diff(edges)
    kept = length > 0.0
    edges = np.append(edges[:-1][kept], edges[1:][kept][-1])
    length, hours = length[kept], hours[kept]
    grams = series.carbon.grams(edges[:-1] - series.first_seconds, length)
    cores = jobs.cores.astype(np.float64)

    def used(begin: Floats) -> Floats:
        return np.diff(work_until(edges, begin, begin + jobs.runtime_seconds, cores)) / length

    return GreenCourse(
        edges, hours, grams * _HOUR / length, used(jobs.submit_seconds), used(start_seconds)
    )
