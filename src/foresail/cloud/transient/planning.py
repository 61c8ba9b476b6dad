"""Plans for a requirement, or the reason why there is none; and what each nine costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias, TypeVar

import numpy as np

from foresail.cloud.transient.availability import (
    allowed_shortfall,
    best_shortfall,
    shortfall,
    shortfall_after,
)
from foresail.cloud.transient.offers import Offers
from foresail.cloud.transient.plan import CapacityPlan, TransientRental
from foresail.model.distribution import Floats, Integers
from foresail.model.errors import InputError

_LEAST_SHORTFALL: Final = 1e-300
_LEAST_GAIN: Final = 1e-9
"""Relative: what rounding could make up is no gain."""


Gain: TypeAlias = Callable[[Floats], Floats]
"""Worth of shortfalls, such as their nines: what a machine adds is set against its price."""


def chosen(
    offers: Offers, needed: int, allowed: float, gain: Gain, *, dearest: float = math.inf
) -> Integers | None:
    """Machines of each type, added one by one until the shortfall is small enough, then pruned.

    Parameters
    ----------
    offers
        What can be rented; some pool of it is good enough.
    needed
        Capacity in units, at least 1.
    allowed
        Shortfall that is good enough.
    gain
        By what the next machine is chosen.
    dearest
        Price per hour at which to give up.

    Returns
    -------
    numpy.ndarray or None
        Shape (types,); None where it was given up.
    """
    nothing = np.zeros(len(offers.types), dtype=np.int64)
    counts = completed(offers, nothing, needed, allowed, gain, dearest=dearest)
    return None if counts is None else pruned(offers, counts, needed, allowed)


def completed(
    offers: Offers,
    begun: Integers,
    needed: int,
    allowed: float,
    gain: Gain,
    *,
    dearest: float = math.inf,
) -> Integers | None:
    """Choose as ``chosen``, but not pruned, and from machines that are there already.

    The gain is measured at what the pool has, until that is enough. Measured at the capacity that
    the pool would have with the machine, one type would be stacked on itself and the gains would
    end.
    """
    counts = begun.copy()
    if not counts.any():
        counts[_best(offers, gain(offers.weights @ (1.0 - offers.up)), counts)] += 1
    while True:
        size = int(counts @ offers.units)
        short = shortfall(offers, counts, min(size, needed))
        if size >= needed and short <= allowed:
            return counts
        if float(counts @ offers.prices) > dearest:
            return None
        if short == 0.0:
            counts[_cheapest_certain(offers)] += 1
            continue
        after = _after(offers, counts, min(size, needed), 1)
        gains = gain(after) - gain(np.array([short]))[0]
        gains[short - after <= _LEAST_GAIN * short] = 0.0
        counts[_best(offers, gains, counts)] += 1


def pruned(offers: Offers, counts: Integers, needed: int, allowed: float) -> Integers:
    """Drop the machines that are not needed, the dearest first, one at a time."""
    kept = counts.copy()
    dearest_first = np.argsort(-offers.prices, kind="stable")
    while True:
        short = _after(offers, kept, needed, -1)
        spare = dearest_first[(short <= allowed)[dearest_first] & (kept > 0)[dearest_first]]
        if not spare.size:
            return kept
        kept[spare[0]] -= 1


def _best(offers: Offers, gains: Floats, counts: Integers) -> int:
    """The type with the lowest price per gain; without gain, one of the rarest in the pool."""
    prices = offers.prices
    if not np.any(gains > 0.0):
        return int(np.lexsort((prices, counts))[0])
    ratio = np.full(gains.size, math.inf)
    np.divide(prices, gains, out=ratio, where=gains > 0.0)
    return int(np.lexsort((prices, ratio))[0])


def _cheapest_certain(offers: Offers) -> int:
    """The cheapest capacity that is never down: nothing else is to be gained by such a pool."""
    certain = np.all(offers.up == 1.0, axis=0)
    return int(np.argmin(np.where(certain, offers.prices / offers.units, math.inf)))


def _after(offers: Offers, counts: Integers, needed: int, change: int) -> Floats:
    """Shape (types,): the shortfall once this type has so many machines more."""
    shorts = [shortfall_after(offers.units, counts, up, needed, change) for up in offers.up]
    return np.asarray(offers.weights @ np.stack(shorts))


def gained_nines(short: Floats) -> Floats:
    """Nines of availability."""
    return np.asarray(-np.log10(np.maximum(short, _LEAST_SHORTFALL)))


def gained_share(short: Floats) -> Floats:
    """Availability as it is."""
    return 1.0 - short


GAINS: Final = (gained_nines, gained_share)


_SCALES: Final = tuple(step * 10**power for power in range(6) for step in (1, 2, 5))
_MOST_CHOSEN: Final = 500_000
_MOST_REFINED: Final = 20_000
"""Types times units of capacity: up to here pools are chosen, and refined."""
_MOST_TRIALS: Final = 300


def best_of_scales(
    offers: Offers, needed: int, allowed: float, dearest: float = math.inf
) -> Integers | None:
    """The cheapest pool by the marginal criteria at several scales, refined where that is quick.

    Arguments and result as for ``chosen``.
    """
    pools = [
        pruned(offers, scale * counts, needed, allowed)
        for scale, part in _parts(needed, len(offers.types))
        for counts in _small_pools(offers, part, allowed, dearest / scale)
    ]
    return min(pools, key=lambda counts: float(counts @ offers.prices), default=None)


def refined(offers: Offers, counts: Integers, needed: int, allowed: float) -> Integers:
    """A pool that is no dearer: types are taken out, all or half of them, and chosen anew.

    Goes on with the first that is cheaper, until none is.

    ``counts`` is a pool that is available enough, shape (types,); the others are as for
    ``chosen``.
    """
    best, price = counts, float(counts @ offers.prices)
    trials = _trials(best)
    for _ in range(_MOST_TRIALS):
        begun = next(trials, None)
        if begun is None:
            break
        for gain in GAINS:
            found = completed(offers, begun, needed, allowed, gain, dearest=1.5 * price)
            if found is None:
                continue
            found = pruned(offers, found, needed, allowed)
            if float(found @ offers.prices) < price * (1.0 - _LEAST_GAIN):
                best, price = found, float(found @ offers.prices)
                trials = _trials(best)
                break
    return best


def _parts(needed: int, types: int) -> Iterator[tuple[int, int]]:
    """Scales, and what part of the needed each leaves; one for each part that is quick enough."""
    last = 0
    for scale in _SCALES:
        part = math.ceil(needed / scale)
        if part != last and (part * types <= _MOST_CHOSEN or part == 1):
            yield scale, part
        last = part


def _small_pools(offers: Offers, needed: int, allowed: float, dearest: float) -> Iterator[Integers]:
    found = [chosen(offers, needed, allowed, each, dearest=dearest) for each in GAINS]
    pools = [counts for counts in found if counts is not None]
    if not pools:
        return
    best = min(pools, key=lambda counts: float(counts @ offers.prices))
    small = needed * len(offers.types) <= _MOST_REFINED
    yield refined(offers, best, needed, allowed) if small else best


def _trials(counts: Integers) -> Iterator[Integers]:
    """The pool without some type, then with half of it, then with one machine less."""
    for kept in (np.zeros_like(counts), counts // 2, np.maximum(counts - 1, 0)):
        for i in np.flatnonzero(counts):
            begun = counts.copy()
            begun[i] = kept[i]
            yield begun


_HOPELESS: Final = 2.0
"""A pool that costs so many times the price on demand is given up; pruning may halve one."""
_MOST_NEEDED: Final = 1_000_000
_MOST_MACHINES: Final = 200
"""Machines of mean size that make up a capacity: one that takes more is planned in parts."""
_SLACK: Final = 1e-12
_MOST_DIGITS: Final = 15


PoolRule: TypeAlias = Callable[[Offers, int, float, float], Integers | None]
"""Machines of each type by offers, needed units, allowed shortfall, and the price per hour at
which to give up."""


class UnreachableError(InputError):
    """A target that no pool of these types can reach; ``best`` is the availability that one can."""

    def __init__(self, target: float, allowed: float, offers: Offers) -> None:
        best = best_shortfall(offers)
        self.best = 1.0 - best
        number = len(offers.types)
        pool = f"pool of these {number} types" if number > 1 else "number of this one type"
        super().__init__(
            f"no {pool} is available so often; the best reachable is {availability_text(best)}",
            field="availability",
            value=target if math.isclose(allowed, 1.0 - target) else availability_text(allowed),
            expected="a lower target, fewer extra nines, or more types",
        )


def plan(
    offers: Offers,
    capacity: float,
    availability: float,
    *,
    extra_nines: float = 0.0,
    choose: PoolRule = best_of_scales,
) -> CapacityPlan:
    """Plan what to rent so that a capacity is there with some availability.

    Source: Ambati's thesis, chapter 3. A capacity of hundreds of machines is planned as several
    times a part of it: that pool is just as available, and the parts make up at most 1 % more than
    the capacity.

    Raises ``UnreachableError`` if no pool of these types is so available; ``InputError`` if
    capacity or availability cannot be.

    Parameters
    ----------
    offers
        What can be rented.
    capacity
        Above 0, in the unit of the types' capacity.
    availability
        Share of time that it must be there, above 0 and below 1.
    extra_nines
        To plan for more than is asked, since what was measured is kept less well.
    choose
        How a pool is chosen.
    """
    needed = needed_units(offers, capacity)
    allowed = allowed_shortfall(availability, extra_nines) * (1.0 + _SLACK)
    if best_shortfall(offers) > allowed:
        raise UnreachableError(availability, allowed, offers)
    price = offers.on_demand_price_per_unit_hour
    on_demand = None if price is None else price * capacity
    dearest = math.inf if on_demand is None else _HOPELESS * on_demand
    times = math.ceil(needed / (_MOST_MACHINES * float(offers.units.mean())))
    part = math.ceil(needed / times)
    pool = choose(offers, part, allowed, dearest / times)
    if pool is None:  # every type by itself enough: dear, and surely available enough
        pool = np.ceil(part / offers.units).astype(np.int64)
    best = times * pool
    return CapacityPlan(
        capacity=capacity,
        target=availability,
        extra_nines=extra_nines,
        availability_shortfall=shortfall(offers, best, needed),
        rented=tuple(
            TransientRental(each, int(count))
            for each, count in zip(offers.types, best, strict=True)
            if count
        ),
        model="independent" if offers.shocks is None else f"{offers.weights.size} states",
        on_demand_price_per_hour=on_demand,
    )


def needed_units(offers: Offers, capacity: float) -> int:
    """A capacity as the least number of units that make it up.

    Raises ``InputError`` if it is not above 0, or far more than the types' unit lets one count.
    """
    if not 0.0 < capacity < math.inf:
        raise InputError(
            "no capacity to plan for", field="capacity", value=capacity, expected="above 0"
        )
    needed = offers.units_for(capacity)
    if needed > _MOST_NEEDED:
        raise InputError(
            f"too much to count in steps of {float(offers.unit):g}",
            field="capacity",
            value=capacity,
            expected=f"at most {float(_MOST_NEEDED * offers.unit):g}, or capacities of types "
            "rounded to a coarser step",
        )
    return needed


def availability_text(short: float) -> str:
    """An availability with enough digits to differ from 1: ``0.999939``.

    What would take more digits than a float has is written by what is missing.
    """
    if short <= 0.0:
        return "1"
    digits = max(2, math.ceil(-math.log10(short)) + 2)
    return f"{1.0 - short:.{digits}f}" if digits <= _MOST_DIGITS else f"all but {short:.2g}"


TARGETS: Final = (0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999, 0.99995, 0.99999, 0.999999)
"""One to six nines."""

Plan = TypeVar("Plan")


def frontier(
    offers: Offers, capacity: float, targets: Sequence[float] = TARGETS, *, extra_nines: float = 0.0
) -> list[CapacityPlan]:
    """A plan for each target that can be reached, ascending; the rest are left out.

    Arguments as for ``plan``.
    """
    plans = reached(targets, lambda target: plan(offers, capacity, target, extra_nines=extra_nines))
    for place in range(len(plans) - 2, -1, -1):
        plans[place] = cheaper(plans[place], plans[place + 1 : place + 2])
    return plans


def reached(targets: Iterable[float], plan_for: Callable[[float], Plan]) -> list[Plan]:
    """The plans for targets, ascending, up to the first that cannot be reached."""
    plans: list[Plan] = []
    for target in sorted(targets):
        try:
            plans.append(plan_for(target))
        except UnreachableError:
            break
    return plans


def cheaper(planned: CapacityPlan, others: Sequence[CapacityPlan]) -> CapacityPlan:
    """A plan, or the cheapest of others that are available as often as it must be.

    What looks one machine ahead may find a cheaper pool when more is asked of it.
    """
    allowed = allowed_shortfall(planned.target, planned.extra_nines) * (1.0 + _SLACK)
    enough = [each for each in others if each.availability_shortfall <= allowed]
    best = min([planned, *enough], key=lambda each: each.price_per_hour)
    return replace(best, target=planned.target)
