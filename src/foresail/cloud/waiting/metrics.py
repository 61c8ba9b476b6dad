"""Cost and waits of a waiting policy on a log (spec section 8), and by blocks of time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

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


_WEEK: Final = 7.0 * 86400.0
_DAY: Final = 86400.0
_FEWEST: Final = 5


@dataclass(frozen=True, slots=True, eq=False)
class BlockSums:
    """What a simulation comes to in each block of time; arrays of shape (blocks,)."""

    jobs: Floats
    wait_seconds: Floats
    """Submitted in the block, and what they waited in all."""
    cost: Floats
    on_demand_cost: Floats
    """Money for the block's time on fixed machines and for its jobs on rented ones; and money if
    all of its jobs had been rented one at once."""
    delay_cost: Floats
    """What the waits were worth by the jobs' own values; 0 where they have none."""

    def drawn(self, weights: Floats) -> tuple[Floats, Floats]:
        """Effective price and mean wait (s) of periods put together anew, shape (draws,).

        ``weights`` has how often each draw has each block, shape (draws, blocks): of blocks in one
        of which at least a job was submitted.
        """
        return (
            (weights @ self.cost) / (weights @ self.on_demand_cost),
            (weights @ self.wait_seconds) / (weights @ self.jobs),
        )

    def drawn_delay_cost(self, weights: Floats) -> Floats:
        """What a job's wait is worth on average, of the same periods; shape (draws,)."""
        mean: Floats = (weights @ self.delay_cost) / (weights @ self.jobs)
        return mean


def block_seconds(submit_seconds: Floats) -> float | None:
    """Return a week where submissions span five and are of five, else a day where so, else None.

    What is drawn anew from blocks few of which have jobs says nothing of other periods.
    """
    since = submit_seconds - submit_seconds[0]

    def are_enough(length: float) -> bool:
        with_jobs = np.unique(np.minimum(since, since[-1] * (1.0 - 1e-12)) // length)
        return bool(since[-1] >= _FEWEST * length and with_jobs.size >= _FEWEST)

    return next((length for length in (_WEEK, _DAY) if are_enough(length)), None)


def block_sums(
    simulated: Simulated,
    fixed: FixedMachines,
    policy: WaitingPolicy,
    length_seconds: float,
) -> BlockSums:
    """The sums of each block of submissions.

    The blocks add up to what ``metrics.measured`` has; trials cost as much as other rented
    machines. The last block may be shorter.
    """
    submit = simulated.columns.submit
    span = float(submit[-1] - submit[0])
    edges = submit[0] + np.append(np.arange(0.0, span, length_seconds), span)
    places = np.searchsorted(submit, edges)
    places[-1] = submit.size
    sums = np.stack([added_up(simulated, policy, *part) for part in pairwise(places.tolist())])
    owned = fixed.count * fixed.price_per_hour * np.diff(edges) / 3600.0
    return BlockSums(
        jobs=sums[:, totals_of.JOBS],
        wait_seconds=sums[:, totals_of.WAIT],
        cost=owned + sums[:, totals_of.RENTED_COST] + sums[:, totals_of.TRIAL_COST],
        on_demand_cost=sums[:, totals_of.ON_DEMAND_COST],
        delay_cost=sums[:, totals_of.DELAY_COST],
    )


def block_draws(blocks: int, draws: int, seed: int) -> Floats:
    """How often each draw of as many blocks, with replacement, has each; shape (draws, blocks)."""
    random = np.random.default_rng(seed)
    return random.multinomial(blocks, np.full(blocks, 1.0 / blocks), draws).astype(np.float64)
