"""Waiting for green hours: carbon in place of money (the thesis' outlook, chapter 8)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from foresail.cloud.waiting.jobs import TraceJobs, writable
from foresail.cloud.waiting.kernels.carbon import emitted_between, greenest_starts
from foresail.model.arrays import Floats
from foresail.model.errors import InputError
from foresail.model.limits import require_positive


@dataclass(frozen=True)
class CarbonIntensity:
    """Grams of CO2 per kWh in equal steps from second 0 on; after the last it begins again.

    Raises
    ------
    InputError
        If there are no values, one is negative, or the step is not above 0.
    """

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
        """What one kW emits in each run."""
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
    """What waiting for green hours led to."""

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
    """When each job starts (s) to emit least, as far as is believed of its runtime.

    Of the jobs only submit times count. ``believed_runtimes`` has a row of equally likely runtimes
    (s) for each job: quantiles of its belief, or one estimate. ``patience_seconds`` is the longest
    delay, of all or by job; ``grams_per_hour`` what an hour's delay must save, per kW of the job.

    Raises
    ------
    InputError
        If an argument is negative or not one for each job.
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
