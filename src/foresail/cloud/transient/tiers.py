"""Services of several tiers: up only while every tier has its capacity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from foresail.cloud.histories import JointHistory
from foresail.cloud.transient.availability import allowed_shortfall
from foresail.cloud.transient.estimating import has_capacity
from foresail.cloud.transient.offers import Offers
from foresail.cloud.transient.plan import VERSION, CapacityPlan, rented_of
from foresail.cloud.transient.planning import TARGETS, needed_units, plan, reached
from foresail.model.distribution import Integers
from foresail.model.errors import InputError

_MOST_STATES: Final = 2_000_000


@dataclass(frozen=True, slots=True)
class Tier:
    """One tier of a service: its name, and the capacity that it needs."""

    name: str
    capacity: float


@dataclass(frozen=True, slots=True)
class TieredPlan:
    """A plan for every tier, and how often all of them have their capacity.

    ``independent_availability`` takes the tiers for independent of each other, as if none shared a
    type; ``availability`` knows that tiers with machines of the same type lose them together.
    """

    tiers: tuple[Tier, ...]
    plans: tuple[CapacityPlan, ...]
    availability: float
    independent_availability: float

    @property
    def price_per_hour(self) -> float:
        """Price of all tiers."""
        return sum(each.price_per_hour for each in self.plans)

    @property
    def on_demand_share(self) -> float | None:
        """Price over that of the same capacities on demand; None where no price is known."""
        known = [each.on_demand_price_per_hour for each in self.plans]
        dear = sum(each for each in known if each is not None)
        return None if None in known or not dear else self.price_per_hour / dear

    @property
    def surplus_share(self) -> float:
        """Capacity beyond what all tiers need when all machines are up, over what they need."""
        return (
            sum(each.total_capacity for each in self.plans)
            / sum(each.capacity for each in self.plans)
            - 1.0
        )

    def to_record(self) -> dict[str, Any]:
        """Plain values, ready for JSON: the record of each tier's plan, and what holds for all."""
        return {
            "kind": "tiered-capacity-plan",
            "version": VERSION,
            "availability": self.availability,
            "independent_availability": self.independent_availability,
            "price_per_hour": self.price_per_hour,
            "on_demand_share": self.on_demand_share,
            "tiers": [
                {"name": tier.name, "plan": each.to_record()}
                for tier, each in zip(self.tiers, self.plans, strict=True)
            ],
        }


def plan_tiers(
    offers: Offers, tiers: Sequence[Tier], availability: float, *, extra_nines: float = 0.0
) -> TieredPlan:
    """Plan every tier by itself, each for the root of the target.

    ``availability`` is the share of time that all tiers must have their capacity; the others are as
    for ``foresail.cloud.transient.planning.plan``.

    Raises ``InputError`` as ``plan``, or if there is no tier, a name comes twice, or the tiers'
    machines are of so many types that the odds cannot be counted out.
    """
    called = [tier.name for tier in tiers]
    if not called or len(set(called)) < len(called):
        raise InputError(
            "not a service of tiers",
            field="tiers",
            value=", ".join(called),
            expected="at least one tier, all with different names",
        )
    target = tier_target(availability, len(tiers))
    plans = tuple(plan(offers, tier.capacity, target, extra_nines=extra_nines) for tier in tiers)
    names = [each.name for each in offers.types]
    counts = [rented_of(each, names) for each in plans]
    needed = [needed_units(offers, tier.capacity) for tier in tiers]
    return TieredPlan(
        tiers=tuple(tiers),
        plans=plans,
        availability=shared_pool_availability(offers, counts, needed),
        independent_availability=independent_availability(plans),
    )


def realised_availability(history: JointHistory, planned: TieredPlan) -> float:
    """Share of a stretch of history in which all tiers would have had their capacity."""
    together = np.all([has_capacity(history, each) for each in planned.plans], axis=0)
    return float(history.seconds @ together) / history.total_seconds


def tier_frontier(
    offers: Offers,
    tiers: Sequence[Tier],
    targets: Sequence[float] = TARGETS,
    *,
    extra_nines: float = 0.0,
) -> list[tuple[float, TieredPlan]]:
    """Each target of all tiers that can be reached, ascending, and its plan.

    Arguments as for ``plan_tiers``.
    """
    return reached(
        targets, lambda target: (target, plan_tiers(offers, tiers, target, extra_nines=extra_nines))
    )


def tier_target(availability: float, tiers: int) -> float:
    """Availability that each of so many independent tiers needs for all to reach a target."""
    short = allowed_shortfall(availability)
    return float(1.0 - -np.expm1(np.log1p(-short) / tiers))


def independent_availability(plans: Sequence[CapacityPlan]) -> float:
    """Share of time that all tiers have their capacity if none shares anything with another."""
    return float(np.exp(np.sum(np.log1p([-each.availability_shortfall for each in plans]))))


def shared_pool_availability(
    offers: Offers, counts: Sequence[Integers], needed: Sequence[int]
) -> float:
    """Share of time that all tiers have their capacity; types go down in all of them.

    Exact: the odds of all combinations of the tiers' capacities, those beyond the needed together.

    For each tier, ``counts`` are machines of each type and ``needed`` is its capacity in units.

    Raises ``InputError`` if there are too many combinations.
    """
    limits = np.array(needed, dtype=np.int64)
    steps = np.stack(counts, axis=1) * offers.units[:, np.newaxis]
    used = np.flatnonzero(steps.any(axis=1))
    total = 0.0
    for weight, up in zip(offers.weights, offers.up, strict=True):
        capacities = np.zeros((1, limits.size), dtype=np.int64)
        odds = np.ones(1)
        for i in used:
            moved = np.minimum(capacities + steps[i], limits)
            both = np.concatenate((capacities, moved))
            capacities, place = np.unique(both, axis=0, return_inverse=True)
            parts = np.concatenate(((1.0 - up[i]) * odds, up[i] * odds))
            odds = np.zeros(capacities.shape[0])
            np.add.at(odds, place.ravel(), parts)
            if odds.size > _MOST_STATES:
                raise InputError(
                    f"more than {_MOST_STATES:,} combinations of the tiers' capacities",
                    field="tiers",
                    value=limits.size,
                    expected="fewer tiers, or capacities in coarser steps",
                )
        total += weight * float(odds[(capacities == limits).all(axis=1)].sum())
    return total
