"""Which types of machines were up together, and at what price: histories on one time axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.histories import MarketHistory
from foresail.model.errors import InputError


@dataclass(frozen=True)
class JointHistory:
    """Up and down of several types over the same stretch of time."""

    names: tuple[str, ...]
    """Of the types."""
    begin: float
    """Where the stretch begins (seconds)."""
    seconds: NDArray[np.float64]
    """Shape (intervals,): how long each interval lasts, above 0."""
    up: NDArray[np.bool_]
    """Shape (intervals, types), of truth values."""
    prices: NDArray[np.float64]
    """Shape (intervals, types): price per hour of a machine; NaN where it is not known."""

    def __post_init__(self) -> None:
        shape = (self.seconds.size, len(self.names))
        if self.up.shape != shape or self.prices.shape != shape:
            raise ValueError("up and prices must have a row per interval and a column per type")
        if not np.all(self.seconds > 0.0):
            raise ValueError("intervals must last")

    @property
    def total_seconds(self) -> float:
        """How long all of it is."""
        return float(self.seconds.sum())

    @property
    def end(self) -> float:
        """Where the stretch ends (seconds)."""
        return self.begin + self.total_seconds

    @property
    def availability(self) -> NDArray[np.float64]:
        """Shape (types,): share of the time that each was up."""
        return np.asarray(self.seconds @ self.up / self.total_seconds)

    def mean_prices(self) -> NDArray[np.float64]:
        """Shape (types,): mean over the time that the price was known and the machine up.

        NaN for a type that never was.
        """
        known = np.isfinite(self.prices) & self.up
        weights = self.seconds[:, np.newaxis] * known
        total = weights.sum(axis=0)
        paid = (weights * np.where(known, self.prices, 0.0)).sum(axis=0)
        return np.asarray(np.divide(paid, total, out=np.full(total.size, np.nan), where=total > 0))

    def correlations(self) -> NDArray[np.float64]:
        """Shape (types, types): pairwise correlation of being up (spec section 11, item 34).

        NaN with a type that was always up, or never.
        """
        share = self.seconds / self.total_seconds
        centred = self.up - self.availability
        covariance = (centred * share[:, np.newaxis]).T @ centred
        spread = np.sqrt(
            np.where(self.up.any(axis=0) & ~self.up.all(axis=0), np.diag(covariance), np.nan)
        )
        return np.asarray(covariance / np.outer(spread, spread))

    def of(self, names: Sequence[str]) -> JointHistory:
        """The history of some of the types, in this order."""
        places = [self.names.index(name) for name in names]
        up, prices = self.up[:, places], self.prices[:, places]
        return replace(self, names=tuple(names), up=up, prices=prices)

    def between(self, begin: float, end: float) -> JointHistory:
        """The part of the history in a stretch of time, cut at its ends.

        Raises
        ------
        InputError
            If none of the history lies there.
        """
        edges = self.begin + np.concatenate(([0.0], np.cumsum(self.seconds)))
        left, right = np.maximum(edges[:-1], begin), np.minimum(edges[1:], end)
        kept = right > left
        if not kept.any():
            raise InputError(
                "the history says nothing of this time",
                value=f"{begin:g} to {end:g} s",
                expected=f"between {self.begin:g} and {self.end:g} s",
            )
        return JointHistory(
            self.names,
            float(left[kept][0]),
            (right - left)[kept],
            self.up[kept],
            self.prices[kept],
        )


def correlated_pairs(history: JointHistory) -> list[tuple[str, str, float]]:
    """How the types of a history go together, pair by pair, the most first.

    Pairs of which one was always up, or never, are left out.
    """
    found = history.correlations()
    pairs = [
        (history.names[one], history.names[other], float(found[one, other]))
        for one, other in combinations(range(len(history.names)), 2)
        if np.isfinite(found[one, other])
    ]
    return sorted(pairs, key=lambda pair: -pair[2])


def joined(histories: Sequence[MarketHistory], bid_per_hour: float | None = None) -> JointHistory:
    """Single markets on one time axis with all their steps, over the time that all of them cover.

    Parameters
    ----------
    histories
        At least one; all with an origin, or none.
    bid_per_hour
        As for ``MarketHistory.up``.

    Raises
    ------
    InputError
        If there is none, only some have an origin, or they have no time in common.
    """
    if not histories:
        raise InputError("no market to look at", expected="at least one history")
    origins = [each.origin_unix_seconds for each in histories]
    known = [origin for origin in origins if origin is not None]
    if known and len(known) < len(origins):
        raise InputError("only some histories say when they begin", expected="all, or none")
    offsets = known or [0.0] * len(histories)
    times = [each.times_seconds + offset for each, offset in zip(histories, offsets, strict=True)]
    ends = [each.end_seconds + offset for each, offset in zip(histories, offsets, strict=True)]
    begin, end = max(float(each[0]) for each in times), min(ends)
    if begin >= end:
        raise InputError(
            "the histories have no time in common",
            value=", ".join(each.market for each in histories[:5]),
            expected="series that overlap",
        )
    states = [(each.up(bid_per_hour), _prices(each)) for each in histories]
    edges = [at[1:][_changes(*state)] for at, state in zip(times, states, strict=True)]
    inner = np.unique(np.concatenate(edges))
    starts = np.concatenate(([begin], inner[(inner > begin) & (inner < end)]))
    holds = [np.searchsorted(each, starts, side="right") - 1 for each in times]
    return JointHistory(
        tuple(each.market for each in histories),
        begin,
        np.diff(np.concatenate((starts, [end]))),
        np.column_stack([up[at] for (up, _), at in zip(states, holds, strict=True)]),
        np.column_stack([prices[at] for (_, prices), at in zip(states, holds, strict=True)]),
    )


def _prices(history: MarketHistory) -> NDArray[np.float64]:
    return np.full(history.times_seconds.size, np.nan) if history.prices is None else history.prices


def _changes(up: NDArray[np.bool_], prices: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Shape (steps − 1,): whether a step differs from the one before."""
    same = (prices[1:] == prices[:-1]) | (np.isnan(prices[1:]) & np.isnan(prices[:-1]))
    return np.asarray((up[1:] != up[:-1]) | ~same)
