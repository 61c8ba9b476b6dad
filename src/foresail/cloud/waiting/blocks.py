"""How sure the cost and the wait of a policy are: sums by week, and weeks drawn anew."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from foresail.cloud.waiting.jobs import FixedMachines
from foresail.cloud.waiting.kernels import waiting_totals as totals_of
from foresail.cloud.waiting.metrics import added_up
from foresail.cloud.waiting.policies import WaitingPolicy
from foresail.cloud.waiting.simulating import Simulated
from foresail.model.arrays import Floats

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
