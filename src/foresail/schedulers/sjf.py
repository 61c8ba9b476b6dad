"""The queue order that the literature calls SJF, without backfilling."""

from __future__ import annotations

from foresail.model.registry import NoParameters, register
from foresail.schedulers.in_order import InOrder, InOrderParameters


@register("scheduler", "sjf")
class ShortestFirst(InOrder):
    """Shortest predicted job first: a job that does not fit blocks those behind it."""

    def __init__(self, _: NoParameters) -> None:
        super().__init__(InOrderParameters(queue="shortest"))
