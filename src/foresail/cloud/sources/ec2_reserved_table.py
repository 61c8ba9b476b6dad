"""Tables of EC2 prices on demand and for twelve kinds of reservation, per type and region."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from typing import Final

from foresail.cloud.prices import GIB, InstanceType, Offer, PriceCatalogue, Reserved
from foresail.cloud.prices_reading import PlainSource, Reference, Row, table_rows
from foresail.model.example import Example
from foresail.model.registry import register

_PLAN: Final = re.compile(r"yrTerm([13])(Standard|Convertible)\.(\w+)")
_NOT_SOLD: Final = "not sold on demand"
_DATED: Final = re.compile(r"(\d{4})-(\d{2})")
_PUBLISHED: Final = date(2017, 11, 1)
_EXAMPLE: Final = """\
instance_type,family,vcpu,memory_gib,gpu,region,ondemand_usd_h,yrTerm1Standard.noUpfront
m1.small,General purpose,1,1.7,0,us-east-1,0.044,0.028
m1.large,General purpose,2,7.5,0,us-east-1,0.175,
"""


@register("price_source", "ec2-reserved-table")
class Ec2ReservedTable(PlainSource):
    """On-demand and reserved prices of EC2, one row per type and region.

    Columns instance_type, vcpu, memory_gib, region, ondemand_usd_h and one for each kind of
    reservation, such as ``yrTerm1Standard.noUpfront``. A virtual processor counts as a core. The
    day of the prices is taken from the file's name (``…-2017-11.csv``), else it is November 2017.
    Rows without a price on demand are left out.
    """

    @staticmethod
    def examples() -> tuple[Example, ...]:
        """Small files of the layout."""
        return (Example.of_text("reserved-2017-11.csv", _EXAMPLE),)

    def recognises(self, reference: Reference) -> bool:
        """The columns of this layout."""
        return {"instance_type", "vcpu", "ondemand_usd_h"} <= set(reference.columns)

    def catalogue(self, reference: Reference) -> PriceCatalogue:
        """The prices of all regions."""
        return dated_catalogue(reference, _PUBLISHED, _offers)


def dated_catalogue(
    reference: Reference,
    otherwise: date,
    offers: Callable[[Reference, Counter[str]], Iterator[Offer]],
) -> PriceCatalogue:
    """A file's offers in USD, of the first of the month that its name ends with, if it does.

    ``offers`` counts the rows that it leaves out.
    """
    repairs: Counter[str] = Counter()
    found = _DATED.search(reference.path.name)
    return PriceCatalogue(
        name=reference.path.name.partition(".")[0],
        valid_on=date(int(found[1]), int(found[2]), 1) if found else otherwise,
        currency="USD",
        offers=tuple(offers(reference, repairs)),
        source=reference.text,
        repairs=repairs,
    )


def _offers(reference: Reference, repairs: Counter[str]) -> Iterator[Offer]:
    for row in table_rows(reference):
        if not row.optional("ondemand_usd_h"):
            repairs[_NOT_SOLD] += 1
            continue
        yield row.record(_offer)


def _offer(row: Row) -> Offer:
    instance = InstanceType(
        row.text("instance_type"),
        "aws",
        row.text("region"),
        row.number("vcpu"),
        row.number("memory_gib") * GIB,
        row.optional("gpu") or 0.0,
    )
    return Offer(instance, row.number("ondemand_usd_h"), tuple(_reserved(row)))


def _reserved(row: Row) -> Iterator[Reserved]:
    for name in row.values:
        plan = _PLAN.fullmatch(name)
        price = row.price(name) if plan else None
        if plan and price is not None:
            yield Reserved(int(plan[1]), price, f"{plan[2].lower()} {plan[3]}")
