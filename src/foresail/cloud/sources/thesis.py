"""The constants of the thesis on cloud-enabled schedulers (paper 003; spec section 1)."""

from __future__ import annotations

from datetime import date
from typing import Final

from foresail.cloud.prices import (
    GIB,
    Customised,
    InstanceType,
    Offer,
    PriceCatalogue,
    Reserved,
    ScheduledReserved,
    SpotBlock,
    SustainedUse,
    Transient,
)
from foresail.cloud.prices_reading import PublishedPrices
from foresail.model.registry import register

_NAME: Final = "thesis"
_CORE_WITH_4_GIB: Final = 0.0481
_GOOGLE_CORE, _GOOGLE_GIB = 0.031611, 0.004237
_CORE_SHARE: Final = _GOOGLE_CORE / (_GOOGLE_CORE + 4.0 * _GOOGLE_GIB)
_SIZES: Final = (1, 2, 4, 8, 16, 32, 64)
_RESERVED: Final = ((1, 0.60), (3, 0.40))
_TRANSIENT: Final = 0.30
"""The middle of the published 20 to 40 %."""
_MEAN_LIFETIME_HOURS: Final = 24.0
"""Ours: the thesis does not give its lifetimes; this is that of the worked examples."""
_BLOCKS: Final = tuple(0.55 + 0.03 * hours for hours in range(6))
_PEAK, _OFF_PEAK = 0.95, 0.90


def _offer(cores: int) -> Offer:
    price = _CORE_WITH_4_GIB * cores
    return Offer(
        InstanceType(f"standard-{cores}", "any", "any", cores, 4.0 * GIB * cores),
        price,
        tuple(Reserved(years, relative * price) for years, relative in _RESERVED),
        Transient(_TRANSIENT * price, mean_lifetime_hours=_MEAN_LIFETIME_HOURS),
        SpotBlock(tuple(relative * price for relative in _BLOCKS)),
        ScheduledReserved(_PEAK * price, _OFF_PEAK * price),
    )


@register("price_source", _NAME)
class ThesisPrices(PublishedPrices):
    """Seven machines of 1 to 64 cores with 4 GiB each, at the published relative prices of 2018.

    Every option of every provider is in it; which a provider sells is chosen where one plans.
    """

    PRICES = PriceCatalogue(
        name=_NAME,
        valid_on=date(2018, 12, 31),
        currency="USD",
        offers=tuple(_offer(cores) for cores in _SIZES),
        source="paper 003, table 2.1 and sections 5.5 and 6",
        sustained_use=SustainedUse(),
        customised=Customised(
            _CORE_WITH_4_GIB * _CORE_SHARE, _CORE_WITH_4_GIB * (1.0 - _CORE_SHARE) / 4.0, 1.05
        ),
    )
