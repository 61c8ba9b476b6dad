"""What each further nine of availability costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from foresail.cloud.transient.methods import Method
from foresail.cloud.transient.offers import Offers
from foresail.cloud.transient.plan import CapacityPlan
from foresail.cloud.transient.planning import UnreachableError, plan

TARGETS: Final = (0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999, 0.99995, 0.99999, 0.999999)
"""One to six nines."""


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
    plans = []
    for target in sorted(targets):
        try:
            plans.append(plan(offers, capacity, target, method=method, extra_nines=extra_nines))
        except UnreachableError:
            break
    return plans
