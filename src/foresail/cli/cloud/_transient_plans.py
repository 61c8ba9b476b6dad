"""Plans to rent by: for a capacity, for tiers, or as one was made before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from foresail.cloud.transient.methods import Method
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foresail.cli.cloud._transient_offers import OfferHistories
    from foresail.cloud.transient.offers import Offers
    from foresail.cloud.transient.tiers import Tier
    from foresail.reports.renting.tiers_page import TieredAnswer
    from foresail.reports.renting.transient_page import TransientAnswer


def answer_of(
    offers: Offers,
    capacity: float,
    availability: float,
    method: Method,
    extra_nines: float,
) -> TransientAnswer:
    """The cheapest plan for a capacity, and what each nine would cost."""
    from foresail.cloud.transient.frontier import cheaper, frontier
    from foresail.cloud.transient.planning import plan
    from foresail.reports.renting.transient_page import TransientAnswer

    planned = plan(offers, capacity, availability, method=method, extra_nines=extra_nines)
    along = frontier(offers, capacity, method=method, extra_nines=extra_nines)
    return TransientAnswer(offers, cheaper(planned, along), along)


def answer_of_plan(offers: Offers, path: Path, method: Method) -> TransientAnswer:
    """A plan as it was made, beside what each nine would cost now."""
    from foresail.cloud.transient.frontier import frontier
    from foresail.cloud.transient.offers import Offers
    from foresail.cloud.transient.reading import read_plan
    from foresail.reports.renting.transient_page import TransientAnswer

    planned = read_plan(path)
    along = frontier(offers, planned.capacity, method=method, extra_nines=planned.extra_nines)
    return TransientAnswer(Offers(tuple(each.type for each in planned.rented)), planned, along)


def tiered_answer(
    offers: Offers,
    tiers: Sequence[str],
    availability: float,
    method: Method,
    extra_nines: float,
    learned: OfferHistories | None,
) -> TieredAnswer:
    """Plans for tiers, each a text ``NAME=UNITS``; held to the histories where there are any."""
    from foresail.cloud.transient.tiers import plan_tiers, realised_availability, tier_frontier
    from foresail.reports.renting.tiers_page import TieredAnswer

    parts = [_tier(text) for text in tiers]
    planned = plan_tiers(offers, parts, availability, method=method, extra_nines=extra_nines)
    return TieredAnswer(
        offers,
        planned,
        availability,
        tier_frontier(offers, parts, method=method, extra_nines=extra_nines),
        None if learned is None else realised_availability(learned.history, planned),
    )


def _tier(text: str) -> Tier:
    from foresail.cloud.transient.tiers import Tier

    name, _, units = text.partition("=")
    try:
        return Tier(name.strip(), float(units))
    except ValueError:
        raise InputError(
            "no tier", field="--tier", value=text, expected="NAME=UNITS, such as web=20"
        ) from None
