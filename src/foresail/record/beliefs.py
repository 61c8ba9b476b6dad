"""Beliefs about runtimes as the event log keeps them: some quantiles, and back."""

from __future__ import annotations

from typing import Final

from foresail.distributions.basic import Point
from foresail.distributions.quantiles import Quantiles
from foresail.model.distribution import Distribution
from foresail.record.records import Predicted

LEVELS: Final = (
    *(0.0, 0.005, 0.01, 0.025, 0.05),
    *(step / 20 for step in range(2, 19)),
    *(0.95, 0.975, 0.99, 0.995, 1.0),
)
"""Of the quantiles that are kept; 27."""

_NEARLY_ONE: Final = 0.9999
"""In place of 1 where a belief has no end."""

_TOLD: Final = (0.10, 0.50, 0.90)
"""Of the quantiles that a record holds to the last digit."""

_DIGITS: Final = 4


def in_short(value: float) -> float:
    """A number to four digits."""
    return float(f"{value:.{_DIGITS}g}")


def kept(belief: Distribution) -> tuple[float, ...]:
    """The belief's quantiles (seconds) at ``LEVELS``, to four digits; nothing for a point."""
    if belief.quantile(LEVELS[1]) == belief.quantile(_NEARLY_ONE):
        return ()
    values = [belief.quantile(level) for level in LEVELS]
    if values[-1] == float("inf"):
        values[-1] = belief.quantile(_NEARLY_ONE)
    return tuple(map(in_short, values))


def differ(one: Distribution, other: Distribution) -> bool:
    """Whether two beliefs are told apart by what is kept of them."""
    return one is not other and (one.mean(), kept(one)) != (other.mean(), kept(other))


def is_told(belief: Distribution, record: Predicted) -> bool:
    """Whether a record was made of this very belief, as far as its numbers tell."""
    told = (record.low_seconds, record.median_seconds, record.high_seconds)
    return belief.mean() == record.mean_seconds and told == tuple(map(belief.quantile, _TOLD))


def belief_of(record: Predicted) -> Distribution:
    """The belief that a record keeps: straight between its quantiles, or a point.

    Of a log that was written before quantiles were kept, the range alone.
    """
    if record.belief:
        return Quantiles(LEVELS, record.belief)
    if record.low_seconds < record.high_seconds:
        low, high = record.low_seconds, record.high_seconds
        return Quantiles((0.0, 0.1, 0.5, 0.9, 1.0), (low, low, record.median_seconds, high, high))
    return Point(record.mean_seconds)
