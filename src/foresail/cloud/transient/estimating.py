"""Availability of types by what their markets did lately, and how far that holds afterwards."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.cloud.histories import JointHistory
from foresail.cloud.transient.offers import MachineKind, Offers, TransientType, fitted_shocks
from foresail.cloud.transient.plan import CapacityPlan, rented_of
from foresail.cloud.transient.planning import UnreachableError
from foresail.model.distribution import Booleans, Floats
from foresail.model.errors import InputError

_HOUR: Final = 3600.0


def estimated_offers(
    history: JointHistory, kinds: Mapping[str, MachineKind], *, doubt_hours: float = 0.0
) -> Offers:
    """Types as a stretch of history shows them, each by itself.

    A market that was never up is left out, as there is no price to pay for it.

    Raises ``InputError`` if a market's kind is not given or has no price, the hours are negative,
    or no market was up.

    Parameters
    ----------
    history
        The window to learn from.
    kinds
        By market.
    doubt_hours
        Hours put to what was seen, half of them up and half down: no type is then taken for certain
        because it was not seen to fail. The thesis has 0.
    """
    if not 0.0 <= doubt_hours < math.inf:
        raise InputError(
            "no number of hours", field="doubt_hours", value=doubt_hours, expected="0 or more"
        )
    doubt = doubt_hours * _HOUR
    up = (history.availability * history.total_seconds + 0.5 * doubt) / (
        history.total_seconds + doubt
    )
    prices = history.mean_prices()
    kept = [i for i in range(len(history.names)) if history.up[:, i].any()]
    types = []
    for i in kept:
        name = history.names[i]
        kind = kinds.get(name)
        if kind is None:
            raise InputError("nothing is known of the machines", field="kinds", value=name)
        price = float(prices[i]) if math.isfinite(prices[i]) else kind.price_per_hour
        if price is None:
            raise InputError(
                "a market has no price",
                source=name,
                field="price_per_hour",
                expected="a history with prices, or the price",
            )
        on_demand = kind.on_demand_per_hour
        types.append(
            TransientType(
                name,
                kind.capacity,
                float(up[i]),
                price / kind.capacity,
                None if on_demand is None else on_demand / kind.capacity,
            )
        )
    if not types:
        raise InputError(
            "no market was up", value=", ".join(history.names[:5]), expected="a longer window"
        )
    return Offers(tuple(types))


def correlated_offers(
    history: JointHistory, kinds: Mapping[str, MachineKind], *, doubt_hours: float = 0.0
) -> Offers:
    """Estimate as ``estimated_offers``, with the shocks under which the types fail together."""
    apart = estimated_offers(history, kinds, doubt_hours=doubt_hours)
    part = history.only([each.name for each in apart.types])
    return Offers(apart.types, fitted_shocks(part, doubt_hours=doubt_hours))


@dataclass(frozen=True, slots=True)
class Realised:
    """Outcome of a plan."""

    begin: float
    end: float
    """The time it was held to (seconds)."""
    plan: CapacityPlan | None
    """Made of what came before; None where no pool was available enough."""
    availability: float
    """Share of the time in which the capacity was really there; NaN without a plan."""
    price_per_hour: float
    """Really paid in the mean, for machines that were up; the planned prices where the history has
    none. NaN without a plan."""


def realised(history: JointHistory, planned: CapacityPlan) -> Realised:
    """Availability and cost that a plan would have had in a stretch of history."""
    enough = has_capacity(history, planned)
    counts = rented_of(planned, history.names)
    availability = float(history.seconds @ enough) / history.total_seconds
    known = np.isfinite(history.prices)
    by_plan = {each.type.name: each.type.price_per_hour for each in planned.rented}
    prices = np.where(known, history.prices, [by_plan.get(each, 0.0) for each in history.names])
    paid = np.where(history.up, prices, 0.0) @ counts
    return Realised(
        history.begin,
        history.end,
        planned,
        availability,
        float(history.seconds @ paid) / history.total_seconds,
    )


def has_capacity(history: JointHistory, planned: CapacityPlan) -> Booleans:
    """Say when a plan's machines had its capacity, shape (intervals,)."""
    capacity = history.up @ _capacities(history, planned)
    return np.asarray(capacity >= planned.capacity * (1.0 - 1e-12))


def rolled(
    history: JointHistory,
    planned: Callable[[JointHistory], CapacityPlan],
    *,
    window_seconds: float | None,
    step_seconds: float,
    first_seconds: float,
) -> list[Realised]:
    """Plan again and again of a trailing window, and see what became of each plan.

    Raises ``InputError`` as ``planned``, or if the first plan begins beyond the history.

    Parameters
    ----------
    history
        All of it.
    planned
        Makes a plan of a window.
    window_seconds
        How far back each plan looks; None: an oracle, which looks at the time that it plans for.
    step_seconds
        How long each plan is held to.
    first_seconds
        Where the first plan begins, after the beginning of the history: the same for windows that
        are to be compared.
    """
    begin = history.begin + first_seconds
    found = []
    while begin < history.end - 0.5 * step_seconds:
        end = min(begin + step_seconds, history.end)
        ahead = history.between(begin, end)
        seen = ahead if window_seconds is None else history.between(begin - window_seconds, begin)
        try:
            found.append(realised(ahead, planned(seen)))
        except UnreachableError:
            found.append(Realised(begin, end, None, math.nan, math.nan))
        begin = end
    if not found:
        raise InputError(
            "the history ends before the first plan",
            field="first_seconds",
            value=first_seconds,
            expected=f"less than {history.total_seconds:g}",
        )
    return found


def mean_availability(found: Sequence[Realised]) -> float:
    """Share of the time with a plan in which its capacity was there; NaN if there was no plan."""
    planned = [each for each in found if each.plan is not None]
    seconds = np.array([each.end - each.begin for each in planned])
    if not seconds.size:
        return math.nan
    return float(seconds @ np.array([each.availability for each in planned]) / seconds.sum())


def shuffled_availability(
    history: JointHistory, planned: CapacityPlan, *, draws: int, random: np.random.Generator
) -> Floats:
    """Availability that the plan would have had if the markets had not moved together.

    Each market's history is turned by a time of its own, which keeps how often and how long it was
    down and takes away with whom. Against ``realised`` it shows what independence costs.

    Returns
    -------
    numpy.ndarray
        Shape (draws,): availability of the capacity.
    """
    capacities = _capacities(history, planned)
    edges = np.concatenate(([0.0], np.cumsum(history.seconds)))
    total = edges[-1]
    used = np.flatnonzero(capacities)
    changes = [np.flatnonzero(history.up[:, i] != np.roll(history.up[:, i], 1)) for i in used]
    found = np.empty(draws)
    for draw in range(draws):
        turns = random.uniform(0.0, total, used.size)
        steps = [np.array([0.0])]
        for place, turn in zip(changes, turns, strict=True):
            steps.append((edges[place] + turn) % total)
        at = np.unique(np.concatenate(steps))
        middle = 0.5 * (at + np.append(at[1:], total))
        capacity = np.zeros(at.size)
        for i, turn in zip(used, turns, strict=True):
            place = np.searchsorted(edges, (middle - turn) % total, side="right") - 1
            capacity += capacities[i] * history.up[np.minimum(place, history.seconds.size - 1), i]
        enough = capacity >= planned.capacity * (1.0 - 1e-12)
        found[draw] = float(np.diff(np.append(at, total)) @ enough) / total
    return found


def _capacities(history: JointHistory, planned: CapacityPlan) -> Floats:
    """Capacity that a plan rents of each type of a history; shape (types,)."""
    capacity = {each.type.name: each.capacity for each in planned.rented}
    for name in sorted(capacity.keys() - set(history.names)):
        raise InputError("the history does not have a market of the plan", field="type", value=name)
    return np.array([capacity.get(name, 0.0) for name in history.names])
