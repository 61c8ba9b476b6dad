"""A user's own prices as a table with commas."""

from __future__ import annotations

from typing import Final

from foresail.cloud.prices import PriceCatalogue
from foresail.cloud.prices_document import REQUIRED, catalogue_of_rows
from foresail.cloud.prices_reading import PlainSource, Reference, table_rows
from foresail.model.example import Example
from foresail.model.registry import register

_EXAMPLE: Final = """\
instance_type,cores,memory_gib,on_demand,reserved_1y,transient,availability,currency,date
c4,4,16,0.2,0.12,0.06,0.9,EUR,2026-03-01
c8,8,32,0.4,0.24,,,EUR,2026-03-01
"""


@register("price_source", "table")
class PriceTable(PlainSource):
    """A CSV with one row per instance type.

    Columns instance_type, cores, memory_gib, on_demand, currency and date; as needed provider,
    region, gpus, reserved_1y, reserved_3y, transient, availability, mean_lifetime_hours,
    lifetime_cap_hours, spot_block_1h to spot_block_6h, scheduled_peak, scheduled_off_peak. Prices
    are per hour of one instance; an empty field means that the option is not offered.
    """

    @staticmethod
    def examples() -> tuple[Example, ...]:
        """Small files of the layout."""
        return (Example.of_text("own.csv", _EXAMPLE),)

    def recognises(self, reference: Reference) -> bool:
        """The required columns, or most of them in a file ending in ``.csv``."""
        there = set(reference.columns)
        return set(REQUIRED) <= there or (
            "instance_type" in there and "on_demand" in there and ".csv" in reference.path.name
        )

    def catalogue(self, reference: Reference) -> PriceCatalogue:
        """The prices."""
        return catalogue_of_rows(reference.text, table_rows(reference))
