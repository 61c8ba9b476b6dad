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
from foresail.schedulers._making_room import make_room, no_room, start
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
        self._places: NodesByPreference | None = None

    def decide(self, view: ClusterView) -> Decision:
        """Start what fits, in strict order; stop others for jobs with a deadline."""
        room = FreeRoom(view, self._places_of(view.cluster))
        victims = [each for each in view.running if not _has_deadline(each.job)]
        victims.sort(key=attrgetter("start_order"))
        starts: list[Start] = []
        stopped: list[Preempt] = []
        reasons: dict[str, Reason] = {}
        patient: list[Job] = []
        for pending in view.pending:
            job = pending.job
            if not _has_deadline(job):
                patient.append(job)
            elif not start(job, room, starts):
                reasons[job.job_id] = no_room(job.cpus, max(room.cpus, 0.0))
                stopped += make_room(job, room, victims)
        for job in patient:
            if not start(job, room, starts):
                reasons[job.job_id] = no_room(job.cpus, max(room.cpus, 0.0))
        return Decision(tuple(starts), tuple(stopped), reasons=reasons)

    def _places_of(self, cluster: Cluster) -> NodesByPreference:
        if self._places is None or self._places.cluster is not cluster:
            self._places = NodesByPreference(cluster)
        return self._places


def _has_deadline(job: Job) -> bool:
    return job.deadline_seconds is not None
