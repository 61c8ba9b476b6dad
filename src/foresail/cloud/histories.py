"""Price and availability histories of transient machines: how much of the time one is to be had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.model.arrays import Booleans, Floats
from foresail.model.errors import InputError

_HOUR_SECONDS: Final = 3600.0


@dataclass(frozen=True, eq=False)
class MarketHistory:
    """What one market (an instance type in a zone) offered over time, as steps.

    Exactly one of ``prices`` and ``units`` is given.

    Raises
    ------
    InputError
        If times do not ascend, a price is not above 0, units are not within 0 and those requested,
        or arrays differ in length.
    """

    market: str
    """Its name, such as ``us-east-1a/c3.xlarge``; different for every market."""
    instance_type: str
    zone: str
    """The parts of the name."""
    times_seconds: Floats
    """When each step begins, ascending, in seconds from the history's origin; shape (steps,)."""
    end_seconds: float
    """When the last step ends."""
    prices: Floats | None = None
    """Price per hour in each step, above 0."""
    units: Floats | None = None
    """Instances that could be had (or were kept) in each step, 0 or more."""
    requested_units: float = 1.0
    """How many instances were asked for, where ``units`` is given."""
    on_demand_per_hour: float | None = None
    """What the type costs on demand: the usual bid."""
    origin_unix_seconds: float | None = None
    """Unix time of second zero."""

    def __post_init__(self) -> None:
        _check(self)

    @property
    def span_seconds(self) -> float:
        """Length of the history."""
        return self.end_seconds - float(self.times_seconds[0])

    def step_seconds(self) -> Floats:
        """How long each step holds; shape (steps,)."""
        return np.diff(self.times_seconds, append=self.end_seconds)

    def up(self, bid_per_hour: float | None = None) -> Booleans:
        """Whether a machine is to be had in each step; shape (steps,).

        With prices: the price is at most the bid, by default the price on demand. With units: as
        many as were requested.

        Raises
        ------
        InputError
            If there are prices but neither a bid nor a price on demand, or the bid is not above 0.
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

    def share_up(self) -> Floats:
        """Share of the requested that is up in each step, 0 or 1 with prices; shape (steps,)."""
        if self.units is not None:
            return np.minimum(self.units / self.requested_units, 1.0)
        return self.up().astype(np.float64)


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

    Raises
    ------
    InputError
        If the history has no prices.
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
    """How long machines lived, each from when it could be had until it was revoked."""

    hours: Floats
    """Length of each life; shape (lives,)."""
    revoked: Booleans
    """Whether it ended with a revocation; False: the history ended first."""


def lifetimes(history: MarketHistory) -> Lifetimes:
    """Lives of machines that are asked for whenever there are none: the stretches of being up."""
    up = history.up()
    change = np.flatnonzero(np.diff(up, prepend=False, append=False))
    edges = np.append(history.times_seconds, history.end_seconds)
    begin, end = change[0::2], change[1::2]
    return Lifetimes((edges[end] - edges[begin]) / _HOUR_SECONDS, end < up.size)
