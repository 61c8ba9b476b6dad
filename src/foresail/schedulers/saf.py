"""The queue order that the literature calls SAF, without backfilling."""

from __future__ import annotations

from foresail.model.registry import NoParameters, register
from foresail.schedulers.in_order import InOrder, InOrderParameters


@register("scheduler", "saf")
class SmallestAreaFirst(InOrder):
    """Smallest predicted area (cpus x seconds) first; one that does not fit blocks the rest."""

    def __init__(self, _: NoParameters) -> None:
        super().__init__(InOrderParameters(queue="smallest_area"))
