"""A few published EC2 prices of November 2017: on demand and reserved."""

from __future__ import annotations

from datetime import date
from typing import Final

from foresail.cloud.prices import GIB, InstanceType, Offer, PriceCatalogue, Reserved
from foresail.cloud.prices_reading import PublishedPrices
from foresail.model.registry import register

_NAME: Final = "ec2-2017"
_PRICES: Final = (
    ("m4.large", 2, 8.0, 0.100, 0.062, 0.043),
    ("m4.xlarge", 4, 16.0, 0.200, 0.124, 0.086),
    ("m4.2xlarge", 8, 32.0, 0.400, 0.248, 0.173),
    ("m4.4xlarge", 16, 64.0, 0.800, 0.496, 0.346),
    ("m4.16xlarge", 64, 256.0, 3.200, 1.982, 1.382),
    ("c5.large", 2, 4.0, 0.085, 0.054, 0.036),
    ("c5.xlarge", 4, 8.0, 0.170, 0.107, 0.071),
    ("c5.4xlarge", 16, 32.0, 0.680, 0.428, 0.285),
    ("c5.18xlarge", 72, 144.0, 3.060, 1.928, 1.282),
    ("r4.large", 2, 15.25, 0.133, 0.084, 0.057),
    ("r4.4xlarge", 16, 122.0, 1.064, 0.672, 0.458),
    ("r4.16xlarge", 64, 488.0, 4.256, 2.688, 1.832),
)
"""Name, cores, GiB; on demand, and reserved for 1 and 3 years (standard, nothing upfront)."""


@register("price_source", _NAME)
class Ec2Prices2017(PublishedPrices):
    """Twelve general, compute and memory types in us-east-1 in November 2017, in USD."""

    PRICES = PriceCatalogue(
        name=_NAME,
        valid_on=date(2017, 11, 30),
        currency="USD",
        offers=tuple(
            Offer(
                InstanceType(name, "aws", "us-east-1", cores, gib * GIB),
                on_demand,
                (Reserved(1, year, "noUpfront"), Reserved(3, years, "noUpfront")),
            )
            for name, cores, gib, on_demand, year, years in _PRICES
        ),
        source="prices published by AWS, November 2017",
    )
