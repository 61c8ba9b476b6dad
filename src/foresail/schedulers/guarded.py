"""Shortest likely first, and never much later than EASY: bold where it can be, careful where due.

Beyond paper 004: the whole queue is ordered instead of the backfill phase alone; a job that would
tell about many alike ones goes early (``probe``); what EASY would have done with the same jobs says
when one goes first. The reasons are in ``docs/decisions/0012-guard-by-reference.md``.

The order is that of the mean runtime over the rate at which waiting is expected to add to the
slowdown: of jobs that run one after another, and of whose runtimes only distributions are known, it
makes the expected sum least (M. H. Rothkopf, Scheduling with random service times, Management
Science 12(9), 1966). The root makes seconds of it. Where a runtime is known, it is the shortest
first; one that is short or very long comes later than by its median.
"""

from __future__ import annotations

from dataclasses import dataclass

from foresail.kernels.signatures import Shares
from foresail.model.cluster import Cluster
from foresail.model.limits import require
from foresail.model.registry import register
from foresail.schedulers._queueing import Orders, QueueScheduler
from foresail.schedulers._reference import EasyReference
from foresail.schedulers.kernels.guarded import guarded_pass


@dataclass(frozen=True, slots=True)
class GuardedParameters:
    """Parameters of ``guarded_backfilling``.

    The shares are of the longest wait, as far as known, of the same jobs under EASY, whose schedule
    is worked out alongside.
    """

    queue: str = "sqrt(max(predicted, 10) / urgency) / probe"
    """Order of the queue: a named order or an expression over job fields."""
    likely: str = "q50"
    """Runtime that a backfill candidate is tried with."""
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
        orders = Orders(queue=parameters.queue, plan=parameters.plan, likely=parameters.likely)
        shares = Shares(parameters.patience, parameters.bound)
        super().__init__(guarded_pass, orders, most_reserved=1, shares=shares)

    def reference(self, cluster: Cluster) -> EasyReference:
        """What EASY would have done with the same jobs, as it becomes known."""
        shares = self.compiled().shares
        assert shares is not None
        return EasyReference(cluster, shares)
