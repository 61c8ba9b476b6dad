"""What a waiting policy cost, in money and in waiting (spec section 8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foresail.cloud.waiting.jobs import FixedMachines, in_shares
from foresail.cloud.waiting.kernels import waiting_totals as totals_of
from foresail.cloud.waiting.policies import WaitingPolicy
from foresail.cloud.waiting.simulating import Simulated
from foresail.model.arrays import Floats
from foresail.model.errors import InputError


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
    tried_jobs: float
    expired_jobs: float
    """Shares of jobs that ended on rented machines, that were tried there, and that were rented one
    after a wait in vain."""
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

    Raises
    ------
    InputError
        If no two jobs of different submission times are left.
    """
    columns = simulated.columns
    count = columns.submit.size
    first = int(trim * count)
    last = count - first
    if last - first < 2 or columns.submit[last - 1] <= columns.submit[first]:
        raise InputError("too few jobs to measure", value=count, expected="some at two times")
    period = float(columns.submit[last - 1] - columns.submit[first])
    totals = added_up(simulated, policy, first, last, trial_price)
    jobs, work = totals[totals_of.JOBS], max(totals[totals_of.WORK], 1e-300)
    return WaitingMetrics(
        jobs=last - first,
        period_seconds=period,
        mean_wait_seconds=float(totals[totals_of.WAIT] / jobs),
        waiting_jobs=float(totals[totals_of.WAITED] / jobs),
        fixed_cost=fixed.count * fixed.price_per_hour * period / 3600.0,
        rented_cost=float(totals[totals_of.RENTED_COST]),
        trial_cost=float(totals[totals_of.TRIAL_COST]),
        on_demand_cost=float(totals[totals_of.ON_DEMAND_COST]),
        rented_jobs=float(totals[totals_of.RENTED_JOBS] / jobs),
        tried_jobs=float(totals[totals_of.TRIED_JOBS] / jobs),
        expired_jobs=float(totals[totals_of.EXPIRED_JOBS] / jobs),
        rented_work=float(1.0 - totals[totals_of.FIXED_WORK] / work),
        fixed_utilisation=_used(totals, fixed, period),
        delay_cost=float(totals[totals_of.DELAY_COST]),
    )


def added_up(
    simulated: Simulated, policy: WaitingPolicy, first: int, last: int, trial_price: float = 1.0
) -> Floats:
    """What the jobs from a first to before a last come to, as ``kernels.waiting_totals`` has it."""
    totals = np.empty(totals_of.TOTALS)
    columns, shapes, outcomes = simulated.columns, simulated.shapes, simulated.outcomes
    totals_of.add_up(first, last, trial_price, policy.rules, columns, shapes, outcomes, totals)
    return totals


def _used(totals: Floats, fixed: FixedMachines, period_seconds: float) -> float:
    """Share of the fixed machines that was in use: of their cores or gpus, whichever is more."""
    cores, gpus = fixed.total_cores * period_seconds, fixed.total_gpus * period_seconds
    return max(
        float(totals[totals_of.FIXED_CORE_SECONDS] / cores) if cores else 0.0,
        float(totals[totals_of.FIXED_GPU_SECONDS] / in_shares(gpus)) if gpus else 0.0,
    )
