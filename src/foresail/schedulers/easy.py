"""EASY backfilling under any order: the classic, EASY-SJBF, whole-queue orders, more reservations.

Sources: paper 004, sections 2.2 and 2.3 (EASY, EASY-SJBF); the age guard and several reservations
are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from foresail.model.limits import require_at_least
from foresail.model.registry import register
from foresail.schedulers._queueing import Orders, QueueScheduler
from foresail.schedulers.kernels.easy import easy_pass
from foresail.schedulers.kernels.reserving import reserving_pass


@dataclass(frozen=True, slots=True)
class EasyParameters:
    """Parameters of ``easy``."""

    order: str | None = None
    """Order in which jobs are tried for backfilling: a named order or an expression over job
    fields; the queue's own order if not given. ``shortest`` makes EASY-SJBF."""
    queue: str = "fcfs"
    """Order of the queue, whose first job gets the reservation."""
    plan: str = "predicted"
    """Runtime to plan with: an expression over job fields, such as ``q75`` or ``requested``."""
    reservations: int = 1
    """How many blocked jobs at the front of the queue no job may delay; 0 reserves for none."""
    age_limit_seconds: float = math.inf
    """Jobs that have waited this long come first, in order of arrival."""


@register("scheduler", "easy", parameters=EasyParameters)
class Easy(QueueScheduler):
    """Starts in order; later jobs may overtake if they do not delay the first that waits."""

    def __init__(self, parameters: EasyParameters) -> None:
        require_at_least(parameters, 0, "reservations")
        one_pass = easy_pass if parameters.reservations == 1 else reserving_pass
        orders = Orders(
            queue=parameters.queue,
            candidates=parameters.order,
            plan=parameters.plan,
            age_limit_seconds=parameters.age_limit_seconds,
        )
        reservations = parameters.reservations
        super().__init__(one_pass, orders, reservations, most_reserved=reservations)
