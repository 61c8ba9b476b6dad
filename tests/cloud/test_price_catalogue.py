"""Catalogues: what they refuse, discounts, commitments, and what a core costs in them."""

from dataclasses import replace
from datetime import date

import pytest

from foresail.cloud.prices import (
    GIB,
    Commitment,
    Discount,
    InstanceType,
    Offer,
    Option,
    PriceCatalogue,
    Reserved,
    Transient,
)
from foresail.cloud.prices_reading import load_prices
from foresail.cloud.purchasing.resources import running_commitments
from foresail.cloud.purchasing.terms import (
    PROVIDERS,
    resource_prices,
    sold_by,
    terms_of,
)
from foresail.model.errors import InputError, UnknownNameError

SMALL = InstanceType("small", "toy", "here", 2, 8 * GIB)
LARGE = InstanceType("large", "toy", "here", 8, 32 * GIB)
TOY = PriceCatalogue(
    "toy",
    date(2026, 1, 1),
    "EUR",
    (
        Offer(SMALL, 0.10, (Reserved(1, 0.07), Reserved(1, 0.06), Reserved(3, 0.04))),
        Offer(LARGE, 0.40, (), Transient(0.12)),
    ),
)


@pytest.mark.parametrize("price", [0.0, -1.0, float("nan"), float("inf"), 1e300])
@pytest.mark.parametrize(
    "make",
    [
        lambda price: Offer(SMALL, price),
        lambda price: Reserved(1, price),
        lambda price: Transient(price),
    ],
)
def test_a_price_is_a_number_above_0(make, price):
    """Zero, negative, not a number, infinite, absurd: an error that names the value."""
    with pytest.raises(InputError, match=r"not a price.*above 0"):
        make(price)


@pytest.mark.parametrize("availability", [-0.01, 1.01, float("nan")])
def test_availability_is_a_share(availability):
    """Outside 0 to 1: an error that names the field."""
    with pytest.raises(InputError, match=r"'availability'.*0 to 1"):
        Transient(0.1, availability)


def test_a_type_is_there_once_in_a_region():
    """Two prices for one thing: an error that names it."""
    with pytest.raises(InputError, match=r"twice.*small in here"):
        replace(TOY, offers=TOY.offers + TOY.offers[:1])


def test_no_offers_and_a_commitment_to_an_unknown_type_are_errors():
    """A catalogue holds something, and commitments are to what it holds."""
    with pytest.raises(InputError, match="no prices"):
        replace(TOY, offers=())
    with pytest.raises(UnknownNameError, match="'small'"):
        replace(TOY, commitments=(Commitment("smal", 1),))


def test_the_cheapest_way_to_pay_of_a_term_is_found():
    """Two one-year plans: the cheaper; no plan: none."""
    assert TOY.find("small").reserved_for(1) == Reserved(1, 0.06)
    assert TOY.find("large").reserved_for(3) is None


def test_discounts_multiply_where_they_hold():
    """A tenth off everything large, and a fifth off transient machines."""
    own = replace(
        TOY, discounts=(Discount(0.1, "l*"), Discount(0.2, options=(Option.TRANSIENT,)))
    ).after_discounts()
    assert own.find("large").on_demand_per_hour == pytest.approx(0.36)
    assert own.find("large").transient.price_per_hour == pytest.approx(0.12 * 0.9 * 0.8)
    assert own.find("small") == TOY.find("small")
    assert own.after_discounts() == own


def test_what_is_committed_to():
    """What is committed to of each type, until its last day."""
    own = replace(
        TOY,
        discounts=(Discount(0.5),),
        commitments=(Commitment("small", 3, 0.05, until=date(2026, 6, 30)),),
    )
    assert running_commitments(own) == own.commitments
    assert not running_commitments(replace(own, valid_on=date(2026, 7, 1)))


def test_a_region_and_names_with_wildcards_are_picked():
    """``only`` keeps what fits, and says what there is if nothing does."""
    assert [offer.instance.name for offer in TOY.only("l*").offers] == ["large"]
    assert TOY.only("l*, s*").offers == TOY.only("[ls]*").offers
    with pytest.raises(UnknownNameError, match="here"):
        TOY.only(region="there")


def test_the_thesis_catalogue_has_its_relative_prices():
    """Table 2.1 comes back from the catalogue, and a core with 4 GiB costs 0.0481."""
    catalogue = load_prices("thesis")
    terms = terms_of(catalogue)
    assert terms.reserved == ((1, pytest.approx(0.6)), (3, pytest.approx(0.4)))
    assert terms.transient.price == pytest.approx(0.3)
    assert terms.sustained_tiers == (1.0, 0.8, 0.6, 0.4)
    price = resource_prices(catalogue)
    assert price.core_per_hour + 4 * price.gib_per_hour == pytest.approx(0.0481)


def test_types_of_several_ratios_tell_what_a_core_and_a_gib_cost():
    """Prices made from 0.03 per core and 0.005 per GiB give these back."""
    offers = tuple(
        Offer(InstanceType(f"t{at}", "toy", "", cores, gib * GIB), 0.03 * cores + 0.005 * gib)
        for at, (cores, gib) in enumerate([(2, 4), (2, 8), (4, 64)])
    )
    price = resource_prices(replace(TOY, offers=offers))
    assert (price.core_per_hour, price.gib_per_hour) == pytest.approx((0.03, 0.005))


def test_providers_sell_what_the_thesis_says():
    """Section 5.5: sets of options, and a day's life of Google's transient machines."""
    everything = terms_of(load_prices("thesis"))
    sold = {provider: sold_by(provider, everything) for provider in PROVIDERS}
    assert sold["microsoft"] == sold["amazon"]
    assert sold["google"].transient.revocation.cap_hours == 24.0
    assert sold["google"].sustained_tiers
    assert sold["google"].customised_markup is None
    assert sold["google-customised"].customised_markup == 1.05
    with pytest.raises(UnknownNameError, match="amazon"):
        sold_by("amazn", everything)
