"""Conservative backfilling: every waiting job holds a reservation (Mu'alem and Feitelson 2001)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from foresail.model.registry import register
from foresail.schedulers._queueing import Orders, QueueScheduler
from foresail.schedulers.kernels.reserving import conservative_pass


@dataclass(frozen=True, slots=True)
class ConservativeParameters:
    """Parameters of ``conservative``."""

    queue: str = "fcfs"
    """Order in which jobs get and improve their reservations."""
    plan: str = "predicted"
    """Runtime to plan with: an expression over job fields."""
    age_limit_seconds: float = math.inf
    """Jobs that have waited this long come first, in order of arrival."""


@register("scheduler", "conservative", parameters=ConservativeParameters)
class Conservative(QueueScheduler):
    """Reserves for every job; ends move reservations forward, never back.

    They move in queue order whenever a job has ended or been cancelled, or a node has come. A
    submission moves none: it gets the earliest start that delays nobody.
    """

    def __init__(self, parameters: ConservativeParameters) -> None:
        orders = Orders(
            parameters.queue, plan=parameters.plan, age_limit_seconds=parameters.age_limit_seconds
        )
        super().__init__(conservative_pass, orders, keeps_plan=True)
