"""Long jobs under a waiting policy: how many wait, and what trials of them cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foresail.cloud.waiting.kernels.waiting import FIXED, RENT, TRIED, TraceColumns
from foresail.cloud.waiting.simulating import Simulated, WaitingPolicy
from foresail.model.arrays import Floats


@dataclass(frozen=True, slots=True)
class LongJobs:
    """Numbers of long jobs, of those that meet full machines, and the cost of trying them."""

    trial_cost: float
    """For trials of long jobs, which were stopped."""
    long_jobs: float
    blocked_long_jobs: float
    """Shares of jobs that are long; and, of the long ones, that found no fixed machine free."""
    blocked_wait_seconds: float
    """Mean wait of the long jobs that found none."""


def long_jobs_of(simulated: Simulated, policy: WaitingPolicy, trial_price: float = 1.0) -> LongJobs:
    """The long jobs of a simulated policy.

    A job is long from the policy's threshold for short ones on, or if a trial does not end it.
    ``trial_price`` is that of a machine for a trial, relative to the same on demand.
    """
    columns = simulated.columns
    place = simulated.place
    hourly = simulated.shapes.asked[columns.shape, RENT] / 3600.0
    long = columns.runtime >= policy.short_seconds
    if policy.speculation_seconds > 0.0:
        long = columns.runtime > policy.speculation_seconds
    wait = simulated.start_seconds - columns.submit
    blocked = (place != FIXED) | (wait > 0.0)
    trials = np.where(place >= TRIED, _of_trials(columns, policy, trial_price), 0.0) * hourly
    some = blocked & long
    return LongJobs(
        trial_cost=float(trials[long].sum()),
        long_jobs=float(long.mean()),
        blocked_long_jobs=float(some.sum() / max(int(long.sum()), 1)),
        blocked_wait_seconds=float(wait[some].mean()) if np.any(some) else 0.0,
    )


def _of_trials(columns: TraceColumns, policy: WaitingPolicy, trial_price: float) -> Floats:
    """On-demand seconds that each job's trial is worth; a lost one is made again on demand."""
    tried = np.minimum(columns.runtime, policy.speculation_seconds)
    if columns.lost.size == 0:
        return tried * trial_price
    lost = columns.lost
    return np.where(lost > 0.0, lost * trial_price + tried, tried * trial_price)
