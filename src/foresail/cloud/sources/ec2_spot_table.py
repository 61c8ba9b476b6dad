"""Tables of EC2 prices on demand and average spot prices, per type and region."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import date
from typing import Final

from foresail.cloud.prices import GIB, InstanceType, Offer, PriceCatalogue, Transient
from foresail.cloud.prices_reading import PlainSource, Reference, Row, table_rows
from foresail.cloud.sources.ec2_reserved_table import dated_catalogue
from foresail.model.example import Example
from foresail.model.registry import register

_PUBLISHED: Final = date(2024, 4, 1)
_EXAMPLE: Final = """\
instance-type,arch,memory,vCPU,GPU,region,ondemand,spot_avg
c5d.2xlarge,x86_64,16.0,8,0,af-south-1,0.52,0.13
c5d.4xlarge,x86_64,32.0,16,0,af-south-1,1.04,0.26
"""


@register("price_source", "ec2-spot-table")
class Ec2SpotTable(PlainSource):
    """On-demand and average spot prices: columns instance-type, vCPU, memory, ondemand, spot_avg.

    A virtual processor counts as a core. The day of the prices is taken from the file's name
    (``…-2024-04.csv``), else it is April 2024. Rows without a price on demand (0 in such files) and
    second rows of one type and region (another architecture) are left out and counted.
    """

    @staticmethod
    def examples() -> tuple[Example, ...]:
        """Small files of the layout."""
        return (Example.of_text("spot-2024-04.csv", _EXAMPLE),)

    def recognises(self, reference: Reference) -> bool:
        """The columns of this layout."""
        return {"instance-type", "vCPU", "ondemand", "spot_avg"} <= set(reference.columns)

    def catalogue(self, reference: Reference) -> PriceCatalogue:
        """The prices of all regions."""
        return dated_catalogue(reference, _PUBLISHED, _offers)


def _offers(reference: Reference, repairs: Counter[str]) -> Iterator[Offer]:
    seen: set[tuple[str, str]] = set()
    for row in table_rows(reference):
        key = (row.text("instance-type"), row.text("region"))
        if key in seen:
            repairs["second row of a type and region"] += 1
        elif not row.optional("ondemand"):
            repairs["not sold on demand"] += 1
        else:
            seen.add(key)
            yield row.record(_offer)


def _offer(row: Row) -> Offer:
    instance = InstanceType(
        row.text("instance-type"),
        "aws",
        row.text("region"),
        row.number("vCPU"),
        row.number("memory") * GIB,
        row.optional("GPU") or 0.0,
    )
    spot = row.price("spot_avg")
    transient = None if spot is None else Transient(spot)
    return Offer(instance, row.number("ondemand"), transient=transient)
