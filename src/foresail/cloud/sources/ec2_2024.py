"""A few published EC2 prices of April 2024: on demand and average spot."""

from __future__ import annotations

from datetime import date
from typing import Final

from foresail.cloud.prices import GIB, InstanceType, Offer, PriceCatalogue, Transient
from foresail.cloud.prices_reading import PublishedPrices
from foresail.model.registry import register

_NAME: Final = "ec2-2024"
_PRICES: Final = (
    ("m5.large", 2, 8.0, 0.0960, 0.03840),
    ("m5.xlarge", 4, 16.0, 0.1920, 0.07104),
    ("m5.2xlarge", 8, 32.0, 0.3840, 0.14976),
    ("m5.4xlarge", 16, 64.0, 0.7680, 0.30720),
    ("m5.8xlarge", 32, 128.0, 1.5360, 0.62976),
    ("m5.16xlarge", 64, 256.0, 3.0720, 1.16736),
    ("c5.large", 2, 4.0, 0.0850, 0.03910),
    ("c5.xlarge", 4, 8.0, 0.1700, 0.07820),
    ("c5.2xlarge", 8, 16.0, 0.3400, 0.14280),
    ("c5.4xlarge", 16, 32.0, 0.6800, 0.29920),
    ("r5.large", 2, 16.0, 0.1260, 0.06300),
    ("r5.xlarge", 4, 32.0, 0.2520, 0.10584),
    ("r5.2xlarge", 8, 64.0, 0.5040, 0.23688),
    ("r5.4xlarge", 16, 128.0, 1.0080, 0.49392),
    ("r5.8xlarge", 32, 256.0, 2.0160, 0.84672),
    ("r5.16xlarge", 64, 512.0, 4.0320, 1.57248),
)
"""Name, cores, GiB; on demand, and spot on average."""


@register("price_source", _NAME)
class Ec2Prices2024(PublishedPrices):
    """Sixteen general, compute and memory types in us-east-1 in April 2024, in USD."""

    PRICES = PriceCatalogue(
        name=_NAME,
        valid_on=date(2024, 4, 30),
        currency="USD",
        offers=tuple(
            Offer(
                InstanceType(name, "aws", "us-east-1", cores, gib * GIB),
                on_demand,
                transient=Transient(spot),
            )
            for name, cores, gib, on_demand, spot in _PRICES
        ),
        source="prices published by AWS, April 2024",
    )
