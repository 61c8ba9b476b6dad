"""The queue order that the literature calls FCFS, without backfilling."""

from __future__ import annotations

from foresail.model.registry import NoParameters, register
from foresail.schedulers.in_order import InOrder, InOrderParameters


@register("scheduler", "fcfs")
class Fcfs(InOrder):
    """First come, first served: no job overtakes another."""

    def __init__(self, _: NoParameters) -> None:
        super().__init__(InOrderParameters(queue="fcfs"))
