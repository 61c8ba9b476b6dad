"""Price and availability histories of transient machines, of one market and on one time axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import numpy as np

from foresail.model.distribution import Booleans, Floats
from foresail.model.errors import InputError

_HOUR_SECONDS: Final = 3600.0


@dataclass(frozen=True, eq=False)
class MarketHistory:
    """Offers of one market (an instance type in a zone) over time, as steps.

    Exactly one of ``prices`` and ``units`` is given.

    Raises ``InputError`` if times do not ascend, a price is not above 0, units are not within 0 and
    those requested, or arrays differ in length.
    """

    market: str
    """Its name, such as ``us-east-1a/c3.xlarge``; different for every market."""
    instance_type: str
    zone: str
    """The parts of the name."""
    times_seconds: Floats
    """Begin of each step, ascending, in seconds from the history's origin; shape (steps,)."""
    end_seconds: float
    """End of the last step."""
    prices: Floats | None = None
    """Price per hour in each step, above 0."""
    units: Floats | None = None
    """Instances that could be had (or were kept) in each step, 0 or more."""
    requested_units: float = 1.0
    """Number of instances asked for, where ``units`` is given."""
    on_demand_per_hour: float | None = None
    """Price of the type on demand: the usual bid."""
    origin_unix_seconds: float | None = None
    """Unix time of second zero."""

    def __post_init__(self) -> None:
        _check(self)

    @property
    def span_seconds(self) -> float:
        """Length of the history."""
        return self.end_seconds - float(self.times_seconds[0])

    def step_seconds(self) -> Floats:
        """Length of each step; shape (steps,)."""
        return np.diff(self.times_seconds, append=self.end_seconds)

    def up(self, bid_per_hour: float | None = None) -> Booleans:
        """Say in which steps a machine is to be had; shape (steps,).

        With prices: the price is at most the bid, by default the price on demand. With units: as
        many as were requested.

        Raises ``InputError`` if there are prices but neither a bid nor a price on demand, or the
        bid is not above 0.
        """
        if self.prices is None:
            assert self.units is not None
            return self.units >= self.requested_units
        bid = self.on_demand_per_hour if bid_per_hour is None else bid_per_hour
        if bid is None or not bid > 0.0:
            raise InputError(
                "no bid to compare prices with",
                source=self.market,
                field="bid_per_hour",
                value=bid,
                expected="a price above 0, or a history with the price on demand",
            )
        return self.prices <= bid


def _check(history: MarketHistory) -> None:
    values = history.prices if history.units is None else history.units
    field = "prices" if history.units is None else "units"
    if values is None or (history.prices is not None and history.units is not None):
        raise InputError("either prices or units", source=history.market, expected="one of them")
    times = history.times_seconds
    if not times.size or values.shape != times.shape:
        raise InputError(
            "not one value per time",
            source=history.market,
            field=field,
            value=f"{values.size} values, {times.size} times",
            expected="at least one, and as many values as times",
        )
    late = np.flatnonzero(~(np.diff(times, append=history.end_seconds) > 0.0))
    if late.size:
        raise InputError(
            "times do not ascend",
            source=history.market,
            field="times_seconds",
            value=float(times[late[0]]),
            expected="every step to begin after the one before, the last before the end",
        )
    if history.units is None:
        bad = ~(np.isfinite(values) & (values > 0.0))
        expected = "a number above 0"
    else:
        bad = ~((values >= 0.0) & (values <= history.requested_units))
        expected = f"0 to {history.requested_units:g}, so that availability is 0 to 1"
    if bad.any():
        raise InputError(
            "a value that cannot be",
            source=history.market,
            field=field,
            value=float(values[np.argmax(bad)]),
            expected=expected,
        )


def mean_price_while_up(history: MarketHistory) -> float:
    """Time average of the price per hour while it was at most that on demand; nan if it never was.

    Raises ``InputError`` if the history has no prices.
    """
    if history.prices is None:
        raise InputError(
            "a history of units has no prices",
            source=history.market,
            expected="a history of prices",
        )
    seconds = history.step_seconds() * history.up()
    held = float(seconds.sum())
    return float(seconds @ history.prices) / held if held > 0.0 else float("nan")


@dataclass(frozen=True, eq=False)
class Lifetimes:
    """Lives of machines, each from when it could be had until it was revoked."""

    hours: Floats
    """Length of each life; shape (lives,)."""
    revoked: Booleans
    """True if it ended with a revocation; False: the history ended first."""


def lifetimes(history: MarketHistory) -> Lifetimes:
    """Lives of machines that are asked for whenever there are none: the stretches of being up."""
    up = history.up()
    change = np.flatnonzero(np.diff(up, prepend=False, append=False))
    edges = np.append(history.times_seconds, history.end_seconds)
    begin, end = change[0::2], change[1::2]
    return Lifetimes((edges[end] - edges[begin]) / _HOUR_SECONDS, end < up.size)


@dataclass(frozen=True)
class JointHistory:
    """Up and down of several types over the same stretch of time."""

    names: tuple[str, ...]
    """Names of the types."""
    begin: float
    """Begin of the stretch (seconds)."""
    seconds: Floats
    """Shape (intervals,): how long each interval lasts, above 0."""
    up: Booleans
    """Shape (intervals, types), of truth values."""
    prices: Floats
    """Shape (intervals, types): price per hour of a machine; NaN where it is not known."""

    def __post_init__(self) -> None:
        shape = (self.seconds.size, len(self.names))
        if self.up.shape != shape or self.prices.shape != shape:
            raise ValueError("up and prices must have a row per interval and a column per type")
        if not np.all(self.seconds > 0.0):
            raise ValueError("intervals must last")

    @property
    def total_seconds(self) -> float:
        """Length of all of it."""
        return float(self.seconds.sum())

    @property
    def end(self) -> float:
        """End of the stretch (seconds)."""
        return self.begin + self.total_seconds

    @property
    def availability(self) -> Floats:
        """Shape (types,): share of the time that each was up."""
        return np.asarray(self.seconds @ self.up / self.total_seconds)

    def mean_prices(self) -> Floats:
        """Shape (types,): mean over the time that the price was known and the machine up.

        NaN for a type that never was.
        """
        known = np.isfinite(self.prices) & self.up
        weights = self.seconds[:, np.newaxis] * known
        total = weights.sum(axis=0)
        paid = (weights * np.where(known, self.prices, 0.0)).sum(axis=0)
        return np.asarray(np.divide(paid, total, out=np.full(total.size, np.nan), where=total > 0))

    def correlations(self) -> Floats:
        """Shape (types, types): pairwise correlation of being up.

        NaN with a type that was always up, or never.
        """
        share = self.seconds / self.total_seconds
        centred = self.up - self.availability
        covariance = (centred * share[:, np.newaxis]).T @ centred
        spread = np.sqrt(
            np.where(self.up.any(axis=0) & ~self.up.all(axis=0), np.diag(covariance), np.nan)
        )
        return np.asarray(covariance / np.outer(spread, spread))

    def only(self, names: Sequence[str]) -> JointHistory:
        """The history of some of the types, in this order."""
        places = [self.names.index(name) for name in names]
        up, prices = self.up[:, places], self.prices[:, places]
        return replace(self, names=tuple(names), up=up, prices=prices)

    def between(self, begin: float, end: float) -> JointHistory:
        """The part of the history in a stretch of time, cut at its ends."""
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
            self.names, float(left[kept][0]), (right - left)[kept], self.up[kept], self.prices[kept]
        )


def correlated_pairs(history: JointHistory) -> list[tuple[str, str, float]]:
    """Correlations of the types of a history, pair by pair, the most first.

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

    Raises ``InputError`` if there is none, only some have an origin, or they have no time in
    common.

    Parameters
    ----------
    histories
        At least one; all with an origin, or none.
    bid_per_hour
        As for ``MarketHistory.up``.
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


def _prices(history: MarketHistory) -> Floats:
    return np.full(history.times_seconds.size, np.nan) if history.prices is None else history.prices


def _changes(up: Booleans, prices: Floats) -> Booleans:
    """Shape (steps − 1,): whether a step differs from the one before."""
    same = (prices[1:] == prices[:-1]) | (np.isnan(prices[1:]) & np.isnan(prices[:-1]))
    return np.asarray((up[1:] != up[:-1]) | ~same)
