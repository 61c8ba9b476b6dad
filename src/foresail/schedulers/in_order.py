"""List scheduling without backfilling, in any order and in four that the literature names."""

from __future__ import annotations

import math
from dataclasses import dataclass

from foresail.model.registry import NoParameters, register
from foresail.schedulers._queueing import Orders, QueueScheduler
from foresail.schedulers.kernels.easy import in_order_pass


@dataclass(frozen=True, slots=True)
class InOrderParameters:
    """Parameters of ``in_order``."""

    queue: str = "fcfs"
    """Order of the queue: a named order or an expression over job fields."""
    age_limit_seconds: float = math.inf
    """Jobs that have waited this long come first, in order of arrival."""


@register("scheduler", "in_order", parameters=InOrderParameters)
class InOrder(QueueScheduler):
    """Starts jobs in queue order only; a job that does not fit blocks those behind it."""

    backfills = False

    def __init__(self, parameters: InOrderParameters) -> None:
        orders = Orders(parameters.queue, age_limit_seconds=parameters.age_limit_seconds)
        super().__init__(in_order_pass, orders, most_reserved=0)


@register("scheduler", "fcfs")
class Fcfs(InOrder):
    """First come, first served: no job overtakes another."""

    def __init__(self, _: NoParameters) -> None:
        super().__init__(InOrderParameters(queue="fcfs"))


@register("scheduler", "sjf")
class ShortestFirst(InOrder):
    """Shortest predicted job first: a job that does not fit blocks those behind it."""

    def __init__(self, _: NoParameters) -> None:
        super().__init__(InOrderParameters(queue="shortest"))


@register("scheduler", "ljf")
class LongestFirst(InOrder):
    """Longest predicted job first: a job that does not fit blocks those behind it."""

    def __init__(self, _: NoParameters) -> None:
        super().__init__(InOrderParameters(queue="longest"))


@register("scheduler", "saf")
class SmallestAreaFirst(InOrder):
    """Smallest predicted area (cpus x seconds) first; one that does not fit blocks the rest."""

    def __init__(self, _: NoParameters) -> None:
        super().__init__(InOrderParameters(queue="smallest_area"))
