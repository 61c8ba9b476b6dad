"""Policy of a cluster that decides itself: jobs are only expected to start, in its order."""

from __future__ import annotations

import math

from foresail.model.cluster import NamedPartitions
from foresail.model.decision import Decision, Placement, PlannedStart, Reason, ReasonCode
from foresail.model.protocols import Scheduler
from foresail.model.registry import NoParameters, register
from foresail.model.view import ClusterView, PendingJob
from foresail.model.words import PLACE_IN_QUEUE


@register("scheduler", "external")
class External(Scheduler):
    """Starts nothing: the cluster does, in order, backfilling by limits; a pass: O(waiting jobs).

    What fits, as long as all before it did, is expected to start now.
    """

    starts_nothing = True
    backfills = True

    def __init__(self, _: NoParameters) -> None:
        """Take no parameters."""

    def decide(self, view: ClusterView) -> Decision:
        """Expect in order what fits; any other job waits."""
        free, named = dict(view.free), NamedPartitions(view.cluster)
        reasons: dict[str, Reason] = {}
        plan = list[PlannedStart]()
        is_open = True
        queue = sorted(view.pending, key=lambda each: (_place(each), each.arrival))
        for ahead, pending in enumerate(queue):
            job = pending.job
            asked = named.asked(job.partition) or named.records
            records = [each for name in asked for each in named.records[name]]
            fits = [each for each in records if job.total.fits_in(free[each])]
            if is_open and fits:
                free[fits[0]] -= job.total
                plan.append(PlannedStart(job.job_id, view.now, Placement.whole(fits[0], job.tasks)))
            is_open = is_open and bool(fits)
            reasons[job.job_id] = Reason(ReasonCode.NOT_CHOSEN, {"ahead": float(ahead)})
        return Decision(plan=tuple(plan), reasons=reasons)

    def planned_seconds(self, pending: PendingJob) -> float:
        """Plan by limits, as such clusters do."""
        limit = pending.job.requested_seconds
        return pending.planned_seconds if limit is None else limit

    def place_in_queue(self, pending: PendingJob, now: float) -> float:  # noqa: ARG002
        """Place in the cluster's own queue; at its end where it has said none."""
        return _place(pending)


def _place(pending: PendingJob) -> float:
    return float(pending.job.attributes.get(PLACE_IN_QUEUE, math.inf))
