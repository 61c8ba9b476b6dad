"""Published prices that come with the product: the thesis' constants and two tables of EC2."""

from __future__ import annotations

from datetime import date
from typing import Final

from foresail.cloud import prices
from foresail.cloud.prices_reading import PublishedPrices
from foresail.model.registry import register

_THESIS: Final = "thesis"
_CORE_WITH_4_GIB: Final = 0.0481
_GOOGLE_CORE, _GOOGLE_GIB = 0.031611, 0.004237
_CORE_SHARE: Final = _GOOGLE_CORE / (_GOOGLE_CORE + 4.0 * _GOOGLE_GIB)
_SIZES: Final = (1, 2, 4, 8, 16, 32, 64)
_RESERVED: Final = ((1, 0.60), (3, 0.40))
_TRANSIENT: Final = 0.30
"""The middle of the published 20 to 40 %."""
_MEAN_LIFETIME_HOURS: Final = 24.0
"""Ours: the thesis does not give its lifetimes; this is that of the worked examples."""


def _thesis_offer(cores: int) -> prices.Offer:
    price = _CORE_WITH_4_GIB * cores
    return prices.Offer(
        prices.InstanceType(f"standard-{cores}", "any", "any", cores, 4.0 * prices.GIB * cores),
        price,
        tuple(prices.Reserved(years, relative * price) for years, relative in _RESERVED),
        prices.Transient(_TRANSIENT * price, mean_lifetime_hours=_MEAN_LIFETIME_HOURS),
    )


@register("price_source", _THESIS)
class ThesisPrices(PublishedPrices):
    """Seven machines of 1 to 64 cores with 4 GiB each, at the published relative prices of 2018.

    Every option of every provider is in it; which a provider sells is chosen where one plans.
    """

    PRICES = prices.PriceCatalogue(
        name=_THESIS,
        valid_on=date(2018, 12, 31),
        currency="USD",
        offers=tuple(_thesis_offer(cores) for cores in _SIZES),
        source="Ambati's thesis, table 2.1 and sections 5.5 and 6",
        sustained_use=prices.SustainedUse(),
        customised=prices.Customised(
            _CORE_WITH_4_GIB * _CORE_SHARE, _CORE_WITH_4_GIB * (1.0 - _CORE_SHARE) / 4.0, 1.05
        ),
    )


_NAME_2017: Final = "ec2-2017"
_PRICES_2017: Final = (
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


def _of_ec2(name: str, cores: int, gib: float) -> prices.InstanceType:
    return prices.InstanceType(name, "aws", "us-east-1", cores, gib * prices.GIB)


@register("price_source", _NAME_2017)
class Ec2Prices2017(PublishedPrices):
    """Twelve general, compute and memory types in us-east-1 in November 2017, in USD."""

    PRICES = prices.PriceCatalogue(
        name=_NAME_2017,
        valid_on=date(2017, 11, 30),
        currency="USD",
        offers=tuple(
            prices.Offer(
                _of_ec2(name, cores, gib),
                on_demand,
                (prices.Reserved(1, year, "noUpfront"), prices.Reserved(3, years, "noUpfront")),
            )
            for name, cores, gib, on_demand, year, years in _PRICES_2017
        ),
        source="prices published by AWS, November 2017",
    )


_NAME_2024: Final = "ec2-2024"
_PRICES_2024: Final = (
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


@register("price_source", _NAME_2024)
class Ec2Prices2024(PublishedPrices):
    """Sixteen general, compute and memory types in us-east-1 in April 2024, in USD."""

    PRICES = prices.PriceCatalogue(
        name=_NAME_2024,
        valid_on=date(2024, 4, 30),
        currency="USD",
        offers=tuple(
            prices.Offer(_of_ec2(name, cores, gib), on_demand, transient=prices.Transient(spot))
            for name, cores, gib, on_demand, spot in _PRICES_2024
        ),
        source="prices published by AWS, April 2024",
    )
