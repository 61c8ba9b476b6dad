"""Cost and waits of a waiting policy on a log (spec section 8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.waiting.jobs import FixedMachines, in_shares
from foresail.cloud.waiting.kernels.placing import CORES, GPUS
from foresail.cloud.waiting.kernels.waiting import (
    AFTER_TRIAL,
    FIXED,
    RENT,
    TRIED,
    WORK_OF,
    Outcomes,
    Shapes,
    TraceColumns,
)
from foresail.cloud.waiting.kernels.waiting_choice import WaitingRules
from foresail.cloud.waiting.simulating import Simulated, WaitingPolicy
from foresail.kernels.compile import unlocked_kernel
from foresail.model.distribution import Floats
from foresail.model.errors import InputError

JOBS: Final = 0
WAIT: Final = 1
WAITED: Final = 2
ON_DEMAND_COST: Final = 3
RENTED_COST: Final = 4
TRIAL_COST: Final = 5
WORK: Final = 6
FIXED_WORK: Final = 7
RENTED_JOBS: Final = 8
EXPIRED_JOBS: Final = 9
DELAY_COST: Final = 10
FIXED_CORE_SECONDS: Final = 11
FIXED_GPU_SECONDS: Final = 12
TOTALS: Final = 13
"""Jobs; seconds waited, and jobs that waited; cost if all were rented; cost of rented runs and of
trials; the work, and that on fixed machines; jobs rented to the end, and after a wait; what the
delays were worth; and use of the fixed machines' cores and gpus (thousandths)."""

_HOUR: Final = 3600.0


@unlocked_kernel
def add_up(
    first: int,
    last: int,
    trial_price: float,
    rules: WaitingRules,
    jobs: TraceColumns,
    shapes: Shapes,
    outcomes: Outcomes,
    totals: NDArray[np.float64],
) -> None:
    """Fill in ``totals`` for the jobs from ``first`` to before ``last``.

    ``trial_price`` is the price of a machine for a trial relative to the on-demand price, which a
    trial pays again after its machine was taken back.
    """
    for total in range(TOTALS):
        totals[total] = 0.0
    for job in range(first, last):
        shape = jobs.shape[job]
        runtime = jobs.runtime[job]
        place = outcomes.place[job]
        hourly = shapes.asked[shape, RENT] / _HOUR
        work = runtime * shapes.asked[shape, WORK_OF]
        wait = outcomes.start[job] - jobs.submit[job]
        totals[JOBS] += 1.0
        totals[WAIT] += wait
        totals[WAITED] += wait > 0.0
        if jobs.delay.size > 0:
            totals[DELAY_COST] += jobs.delay[job] * wait / _HOUR
        totals[ON_DEMAND_COST] += runtime * hourly
        totals[WORK] += work
        if place >= TRIED:
            tried = min(runtime, rules.speculation_seconds)
            lost = jobs.lost[job] if jobs.lost.size > 0 else 0.0
            if lost > 0.0:
                totals[TRIAL_COST] += (lost * trial_price + tried) * hourly
            else:
                totals[TRIAL_COST] += tried * trial_price * hourly
        if place == TRIED:
            totals[RENTED_JOBS] += 1.0
        elif place % AFTER_TRIAL == FIXED:
            totals[FIXED_WORK] += work
            totals[FIXED_CORE_SECONDS] += runtime * shapes.asked[shape, CORES]
            totals[FIXED_GPU_SECONDS] += runtime * shapes.asked[shape, GPUS]
        else:
            totals[RENTED_JOBS] += 1.0
            totals[EXPIRED_JOBS] += place % AFTER_TRIAL == 2
            totals[RENTED_COST] += runtime * hourly


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
    totals = np.empty(TOTALS)
    of_trace = columns, simulated.shapes, simulated.outcomes
    add_up(first, last, trial_price, policy.rules, *of_trace, totals)
    jobs, work = totals[JOBS], max(totals[WORK], 1e-300)
    return WaitingMetrics(
        jobs=last - first,
        period_seconds=period,
        mean_wait_seconds=float(totals[WAIT] / jobs),
        waiting_jobs=float(totals[WAITED] / jobs),
        fixed_cost=fixed.count * fixed.price_per_hour * period / 3600.0,
        rented_cost=float(totals[RENTED_COST]),
        trial_cost=float(totals[TRIAL_COST]),
        on_demand_cost=float(totals[ON_DEMAND_COST]),
        rented_jobs=float(totals[RENTED_JOBS] / jobs),
        expired_jobs=float(totals[EXPIRED_JOBS] / jobs),
        rented_work=float(1.0 - totals[FIXED_WORK] / work),
        fixed_utilisation=_used(totals, fixed, period),
        delay_cost=float(totals[DELAY_COST]),
    )


def _used(totals: Floats, fixed: FixedMachines, period_seconds: float) -> float:
    """Share of the fixed machines that was in use: of their cores or gpus, whichever is more."""
    cores, gpus = fixed.total_cores * period_seconds, fixed.total_gpus * period_seconds
    return max(
        float(totals[FIXED_CORE_SECONDS] / cores) if cores else 0.0,
        float(totals[FIXED_GPU_SECONDS] / in_shares(gpus)) if gpus else 0.0,
    )
