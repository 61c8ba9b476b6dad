"""How sure the advice is: weeks of the log drawn anew, the same for all settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from foresail.cloud.waiting.blocks import BlockSums, block_draws
from foresail.cloud.waiting.settings import WaitingSetting
from foresail.model.arrays import Floats

_DRAWS: Final = 1000
_SEED: Final = 1
_LEVELS: Final = (0.025, 0.975)


@dataclass(frozen=True, slots=True)
class AdviceCertainty:
    """What weeks drawn anew say of the advice."""

    block_seconds: float
    blocks: int
    """What was drawn, and how many the log has."""
    best_share: float
    """Share of draws in which no other setting costs less, waiting at its value included."""
    near_share: float
    """Share of draws in which none costs less by more than a hundredth."""
    saving: tuple[float, float] | None
    """95 % interval of today's price minus that of the advice; None without a today."""


class Draws(NamedTuple):
    """Of a setting in periods put together anew: price, mean wait, and what a job's is worth."""

    price: Floats
    wait_seconds: Floats
    delay_cost: Floats


def period_draws(blocks: int) -> Floats:
    """How often each block comes in each period put together anew; shape (draws, blocks)."""
    return block_draws(blocks, _DRAWS, _SEED)


def drawn(sums: BlockSums, hour_value: float | None) -> Draws:
    """Periods of as many blocks as the log has, alike for all settings; none that has no jobs.

    ``hour_value`` is what an hour of any job's waiting is worth; None: to each its own.
    """
    weights = period_draws(sums.jobs.size)
    weights = weights[weights @ sums.jobs > 0.0]
    prices, waits = sums.drawn(weights)
    if hour_value is None:
        return Draws(prices, waits, sums.drawn_delay_cost(weights))
    return Draws(prices, waits, hour_value * waits / 3600.0)


def interval(values: Floats) -> tuple[float, float]:
    """Where 95 % of the draws lie."""
    low, high = np.quantile(values, _LEVELS).tolist()
    return low, high


def shares_best(
    chosen: WaitingSetting, totals: Mapping[WaitingSetting, Floats]
) -> tuple[float, float]:
    """Shares of the draws in which a setting costs least of all, and within a hundredth of that.

    ``totals`` is what each setting costs in the draws, waiting at its value included.
    """
    least = np.min(list(totals.values()), axis=0)
    return (
        float(np.mean(totals[chosen] <= least + 1e-12)),
        float(np.mean(totals[chosen] <= 1.01 * least)),
    )
