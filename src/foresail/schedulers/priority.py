"""Strict priority of jobs with deadlines over the others, which make room for them."""

from __future__ import annotations

from operator import attrgetter
from typing import Literal

from foresail.model.cluster import Cluster
from foresail.model.decision import Decision, Preempt, Start
from foresail.model.job import Job
from foresail.model.reason import Reason
from foresail.model.registry import NoParameters, register
from foresail.model.view import ClusterView
from foresail.schedulers._making_room import make_room, start_in_order
from foresail.schedulers._placing import FreeRoom, NodesByPreference


@register("scheduler", "priority")
class Priority:
    """Jobs with deadlines first, stopping the youngest others for them; no runtimes are asked for.

    The baseline ``Prio`` of 3Sigma, whose rules its source leaves open (spec 3sigma-distsched
    section 6.2): jobs with deadlines in order of submission, on preferred nodes if they fit there,
    else on any, skipping those that do not fit; where one does not fit, the youngest running jobs
    without a deadline are stopped until it would; then the others in order of submission on what
    is left. It never waits for preferred nodes and gives no job up.
    """

    ignores_time: Literal[True] = True

    def __init__(self, parameters: NoParameters) -> None:
        del parameters
        self._places = NodesByPreference(Cluster(()))

    def decide(self, view: ClusterView) -> Decision:
        """Start what fits, in strict order; stop others for jobs with a deadline."""
        if self._places.cluster is not view.cluster:
            self._places = NodesByPreference(view.cluster)
        room = FreeRoom(view, self._places)
        victims = [each for each in view.running if not _has_deadline(each.job)]
        victims.sort(key=attrgetter("start_order"))
        starts: list[Start] = []
        stopped: list[Preempt] = []
        reasons: dict[str, Reason] = {}
        jobs = sorted((each.job for each in view.pending), key=_has_deadline, reverse=True)
        for job in start_in_order(jobs, room, starts, reasons):
            if _has_deadline(job):
                stopped += make_room(job, room, victims)
        return Decision(tuple(starts), tuple(stopped), reasons=reasons)


def _has_deadline(job: Job) -> bool:
    return job.deadline_seconds is not None
