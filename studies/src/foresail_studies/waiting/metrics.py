"""Cost and waits of a waiting policy on a log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.cloud.waiting.jobs import FixedMachines, in_shares
from foresail.cloud.waiting.kernels.placing import CORES, GPUS
from foresail.cloud.waiting.kernels.waiting import (
    AFTER_TRIAL,
    EXPIRED,
    FIXED,
    RENT,
    RENTED,
    TRIED,
    WORK_OF,
)
from foresail.cloud.waiting.simulating import Simulated, WaitingPolicy
from foresail.model.distribution import Floats
from foresail.model.errors import InputError

_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class WaitingMetrics:
    """The result of a waiting policy on a trace."""

    jobs: int
    """How many were counted."""
    period_seconds: float
    """From their first to their last submission: for so long fixed machines are paid."""
    mean_wait_seconds: float
    """From submission to the start of the last run, over all jobs."""
    waiting_jobs: float
    """Share of jobs that waited at all."""
    fixed_cost: float
    rented_cost: float
    trial_cost: float
    """Money for fixed machines, for rented ones, and for runs that were only tried there."""
    on_demand_cost: float
    """Money if every job had been rented a machine at once."""
    rented_jobs: float
    expired_jobs: float
    """Shares of jobs that ended on rented machines, and that were rented one after their wait timed
    out."""
    rented_work: float
    """Share of core-seconds that did not run on fixed machines; where jobs ask for gpus, a job's
    seconds count by the on-demand price of what it would be rented."""
    fixed_utilisation: float
    """Share of the fixed machines' cores that the jobs used, or of their gpus where that is more
    (trials not counted)."""
    delay_cost: float
    """What the delays were worth, by the jobs' own values."""

    @property
    def total_cost(self) -> float:
        """All that is paid to owners of machines."""
        return self.fixed_cost + self.rented_cost + self.trial_cost

    @property
    def price(self) -> float:
        """Effective price of the work; 1 is that of renting for every job."""
        return self.total_cost / self.on_demand_cost

    @property
    def opportunity_cost(self) -> float:
        """Price times mean wait (s)."""
        return self.price * self.mean_wait_seconds

    @property
    def rented_to_fixed(self) -> float:
        """Money for rented machines as a share of that for fixed ones."""
        return (self.rented_cost + self.trial_cost) / self.fixed_cost


def measured(
    simulated: Simulated,
    fixed: FixedMachines,
    policy: WaitingPolicy,
    trial_price: float = 1.0,
    trim: float = 0.0,
) -> WaitingMetrics:
    """The metrics of a simulation.

    ``trial_price`` is that of a machine for a trial, relative to the same on demand; ``trim`` the
    share of jobs that is left out at the beginning, and at the end.

    Raises ``InputError`` if no two jobs of different submission times are left.
    """
    columns = simulated.columns
    count = columns.submit.size
    first = int(trim * count)
    last = count - first
    if last - first < 2 or columns.submit[last - 1] <= columns.submit[first]:
        raise InputError("too few jobs to measure", value=count, expected="some at two times")
    period = float(columns.submit[last - 1] - columns.submit[first])
    part = slice(first, last)
    shape, runtime = columns.shape[part], columns.runtime[part]
    asked = simulated.shapes.asked
    place = simulated.place[part]
    wait = simulated.start_seconds[part] - columns.submit[part]
    ended = np.where(place == TRIED, RENTED, place % AFTER_TRIAL)
    on_fixed = ended == FIXED
    work, full_price = runtime * asked[shape, WORK_OF], runtime * asked[shape, RENT] / _HOUR
    trials = trial_costs(simulated, policy, trial_price)[part]
    gpus = float(in_shares(fixed.count * fixed.gpus))
    delay_cost = float(columns.delay[part] @ wait) / _HOUR if columns.delay.size else 0.0
    return WaitingMetrics(
        jobs=last - first,
        period_seconds=period,
        mean_wait_seconds=float(wait.mean()),
        waiting_jobs=float((wait > 0.0).mean()),
        fixed_cost=fixed.count * fixed.price_per_hour * period / _HOUR,
        rented_cost=float(full_price[~on_fixed & (place != TRIED)].sum()),
        trial_cost=float(trials.sum()),
        on_demand_cost=float(full_price.sum()),
        rented_jobs=float((~on_fixed).mean()),
        expired_jobs=float((ended == EXPIRED).mean()),
        rented_work=1.0 - float(work[on_fixed].sum()) / max(float(work.sum()), 1e-300),
        fixed_utilisation=max(
            _used(runtime[on_fixed], asked[shape[on_fixed], kind], capacity * period)
            for kind, capacity in ((CORES, fixed.total_cores), (GPUS, gpus))
        ),
        delay_cost=delay_cost,
    )


def trial_costs(simulated: Simulated, policy: WaitingPolicy, trial_price: float) -> Floats:
    """Money for the trial of each job, 0 where it was not tried; shape (jobs,).

    A trial whose machine was taken back is paid once more, on demand.
    """
    columns = simulated.columns
    tried = np.minimum(columns.runtime, policy.speculation_seconds)
    paid = tried * trial_price
    if columns.lost.size:
        paid = np.where(columns.lost > 0.0, columns.lost * trial_price + tried, paid)
    hourly = simulated.shapes.asked[columns.shape, RENT] / _HOUR
    return np.where(simulated.place >= TRIED, paid * hourly, 0.0)


def _used(seconds: Floats, each: Floats, capacity: float) -> float:
    """Share of the fixed machines that was in use; 0 where there is nothing of that kind."""
    return float(seconds @ each) / capacity if capacity else 0.0
