"""Passes over queues: in order, EASY, conservative, and backfilling guarded by EASY.

Sources: Reis' thesis, sections 2.2 and 2.3 (EASY, EASY-SJBF); Mu'alem and Feitelson 2001
(conservative). The age guard, several reservations and ``guarded_backfilling`` are ours.

``guarded_backfilling`` orders the whole queue instead of the backfill phase alone: a job that would
inform about many alike ones goes early (``probe``); what EASY would have done with the same jobs
says when one goes first. The reasons are in ``docs/decisions/0012-guard-by-reference.md``. The
order is that of the mean runtime over the rate at which waiting is expected to add to the slowdown:
of jobs that run one after another, and of whose runtimes only distributions are known, it makes the
expected sum least (M. H. Rothkopf, Scheduling with random service times, Management Science 12(9),
1966). The root makes seconds of it. Where a runtime is known, it is the shortest first; one that is
short or very long comes later than by its median.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from foresail.kernels.steps import Shares
from foresail.model.cluster import Cluster
from foresail.model.errors import require, require_at_least
from foresail.model.registry import NoParameters, register
from foresail.schedulers._queueing import QueueScheduler
from foresail.schedulers._reference import EasyReference
from foresail.schedulers.kernels import backfill
from foresail.schedulers.order_expression import Orders


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
        super().__init__(backfill.in_order_pass, orders, most_reserved=0)


@register("scheduler", "fcfs")
def first_come_first_served(_: NoParameters) -> InOrder:
    """First come, first served: no job overtakes another."""
    return InOrder(InOrderParameters())


@register("scheduler", "sjf")
def shortest_first(_: NoParameters) -> InOrder:
    """Shortest predicted job first: a job that does not fit blocks those behind it."""
    return InOrder(InOrderParameters("shortest"))


@register("scheduler", "ljf")
def longest_first(_: NoParameters) -> InOrder:
    """Longest predicted job first: a job that does not fit blocks those behind it."""
    return InOrder(InOrderParameters("longest"))


@register("scheduler", "saf")
def smallest_area_first(_: NoParameters) -> InOrder:
    """Smallest predicted area (cpus x seconds) first; one that does not fit blocks the rest."""
    return InOrder(InOrderParameters("smallest_area"))


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
    """Number of blocked jobs at the front of the queue that none may delay; 0 reserves for none."""
    age_limit_seconds: float = math.inf
    """Jobs that have waited this long come first, in order of arrival."""


@register("scheduler", "easy", parameters=EasyParameters)
class Easy(QueueScheduler):
    """Starts in order; later jobs may overtake if they do not delay the first that waits."""

    def __init__(self, parameters: EasyParameters) -> None:
        require_at_least(parameters, 0, "reservations")
        one_pass = backfill.easy_pass if parameters.reservations == 1 else backfill.reserving_pass
        orders = Orders(
            queue=parameters.queue,
            candidates=parameters.order,
            plan=parameters.plan,
            age_limit_seconds=parameters.age_limit_seconds,
        )
        reservations = parameters.reservations
        super().__init__(one_pass, orders, reservations, most_reserved=reservations)


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
    """Reserves for every job, moves reservations forward only; an event: O(waiting jobs).

    They move in queue order whenever a job has ended or been cancelled, or a node has come. A
    submission moves none: it gets the earliest start that delays nobody.
    """

    def __init__(self, parameters: ConservativeParameters) -> None:
        orders = Orders(
            parameters.queue, plan=parameters.plan, age_limit_seconds=parameters.age_limit_seconds
        )
        super().__init__(backfill.conservative_pass, orders, keeps_plan=True)


@dataclass(frozen=True, slots=True)
class GuardedParameters:
    """Parameters of ``guarded_backfilling``.

    The shares are of the longest wait, as far as known, of the same jobs under EASY, whose schedule
    is worked out alongside.
    """

    queue: str = "sqrt(max(predicted, 10) / urgency) / probe"
    """Order of the queue: a named order or an expression over job fields."""
    plan: str = "requested if requested < 1e12 else 2 * q90"
    """Runtime that running jobs and guarantees are planned with."""
    patience: float = 0.6
    """A job goes first once it has waited this share, and EASY would have come to it."""
    bound: float = 0.8
    """No start may, by planned runtimes, make the job that goes first next wait longer than this
    share (unless it must anyway, or is not due by then)."""


@register("scheduler", "guarded_backfilling", parameters=GuardedParameters)
class Guarded(QueueScheduler):
    """Shortest likely first, alike jobs after a probe, and first whom EASY would have started."""

    def __init__(self, parameters: GuardedParameters) -> None:
        for name in ("patience", "bound"):
            require(getattr(parameters, name) >= 0, parameters, name, "0 or more")
        orders = Orders(queue=parameters.queue, plan=parameters.plan)
        shares = Shares(parameters.patience, parameters.bound)
        super().__init__(backfill.guarded_pass, orders, 0.0, most_reserved=1, shares=shares)

    def reference(self, cluster: Cluster) -> EasyReference:
        """Return what EASY would have done with the same jobs, as it becomes known."""
        shares = self.compiled().shares
        assert shares is not None
        return EasyReference(cluster, shares)
