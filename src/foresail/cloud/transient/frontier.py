"""What each further nine of availability costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from foresail.cloud.transient.availability import allowed_shortfall
from foresail.cloud.transient.methods import Method
from foresail.cloud.transient.offers import Offers
from foresail.cloud.transient.plan import CapacityPlan
from foresail.cloud.transient.planning import UnreachableError, plan

TARGETS: Final = (0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999, 0.99995, 0.99999, 0.999999)
"""One to six nines."""
_SLACK: Final = 1e-12

Plan = TypeVar("Plan")


def frontier(
    offers: Offers,
    capacity: float,
    targets: Sequence[float] = TARGETS,
    *,
    method: Method = Method.BEST,
    extra_nines: float = 0.0,
) -> list[CapacityPlan]:
    """A plan for each target that can be reached, ascending; the rest are left out.

    Arguments as for ``foresail.cloud.transient.planning.plan``.
    """
    plans = reached(
        targets,
        lambda target: plan(offers, capacity, target, method=method, extra_nines=extra_nines),
    )
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

    What looks one machine ahead may find a cheaper pool when more is asked of it. Published rules
    are left as they are.
    """
    if planned.method != Method.BEST:
        return planned
    allowed = allowed_shortfall(planned.target, planned.extra_nines) * (1.0 + _SLACK)
    enough = [each for each in others if each.availability_shortfall <= allowed]
    best = min([planned, *enough], key=lambda each: each.price_per_hour)
    return replace(best, target=planned.target)
