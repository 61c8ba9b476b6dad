"""Times known beforehand: when nodes go, and when jobs may begin at the earliest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from foresail.model.changing_nodes import without
from foresail.model.cluster import Cluster
from foresail.model.decision import Decision, Reason, ReasonCode, Start
from foresail.model.event import NodeRemoved
from foresail.model.free_resources import FreeResources
from foresail.model.job import Job
from foresail.model.view import PendingJob, Rejection, Reservation
from foresail.model.words import listed
from foresail.record.job_life import JobState
from foresail.record.state import State

_Rooms = list[tuple[float, FreeResources]]
"""Times at which nodes go, and all that stays then, and after those that went before."""


class Departures:
    """Nodes that are known to go, and which jobs they keep back.

    A job ends before, or may, if its requested time says so; without one it could run for ever.
    """

    def __init__(self, removals: Iterable[NodeRemoved]) -> None:
        known = (each for each in removals if each.known_from_seconds is not None)
        self._known = sorted(known, key=attrgetter("time"))
        self._kept_back: set[str] = set()
        self._of: tuple[Cluster, Mapping[str, float], _Rooms] | None = None
        self.eligible_seconds: dict[str, float] = {}
        """Times at which jobs that were kept back no longer were, by id."""

    @property
    def are_known(self) -> bool:
        """Return whether any node is known to go beforehand."""
        return bool(self._known)

    def leaving(self, now: float) -> Mapping[str, float]:
        """Return when nodes will go (seconds) that are known to go by now, by name."""
        leaving: dict[str, float] = {}
        for each in self._known:
            if (each.known_from_seconds or 0.0) <= now < each.time:
                leaving.setdefault(each.node, each.time)
        return leaving

    def shown(
        self, pending: Sequence[PendingJob], state: State, now: float
    ) -> tuple[Sequence[PendingJob], Mapping[str, Reason]]:
        """The jobs that may start somewhere now, and why others may not, by id."""
        leaving = self.leaving(now)
        rooms = self._rooms(state.cluster, leaving)
        may_start, reasons = [], {}
        for each in pending:
            job = each.job
            needed = [at for at, stays in rooms if not stays.could_hold(job)]
            at = next((each for each in needed if not job.ends_by(each, now)), None)
            if at is None or state.parts_of(job.job_id) is not None:
                may_start.append(each)
                if job.job_id in self._kept_back:
                    self.eligible_seconds[job.job_id] = now
                    self._kept_back.discard(job.job_id)
            else:
                gone = sorted(node for node, time in leaving.items() if time <= at)
                nodes = f"{listed(gone)}, known to go at {at:.0f} s"
                reasons[job.job_id] = Reason(ReasonCode.NODES_OUT, {"nodes": nodes})
                self._kept_back.add(job.job_id)
        return may_start if reasons else pending, reasons

    def allowed(
        self, decision: Decision, kept_back: Mapping[str, Reason], state: State, now: float
    ) -> Decision:
        """The decision without starts of what would still run where nodes have gone."""
        if kept_back:
            decision = replace(decision, reasons={**decision.reasons, **kept_back})
        leaving = self.leaving(now)
        if not leaving or not decision.starts:
            return decision
        rooms = [(at, stays.copy()) for at, stays in self._rooms(state.cluster, leaving)]
        for running in state.running.values():
            limit = running.job.requested_seconds
            end = math.inf if limit is None else running.start_seconds + limit
            for at, stays in rooms:
                if end > at and not _on_any(running.placement.tasks_by_node, leaving, at):
                    stays.take(running.held, running.placement)
        starts = tuple(each for each in decision.starts if _stays(each, state, rooms, leaving, now))
        return decision if len(starts) == len(decision.starts) else replace(decision, starts=starts)

    def _rooms(self, cluster: Cluster, leaving: Mapping[str, float]) -> _Rooms:
        if self._of is None or self._of[0] is not cluster or self._of[1] != leaving:
            rooms = []
            for at in sorted({*leaving.values()}):
                gone = {node for node, time in leaving.items() if time <= at}
                rooms.append((at, FreeResources(without(cluster, gone))))
            self._of = cluster, leaving, rooms
        return self._of[2]


def _stays(
    start: Start, state: State, rooms: _Rooms, leaving: Mapping[str, float], now: float
) -> bool:
    """Take what a start needs to its end; False, and nothing taken, where there is no room."""
    pending = state.startable.get(start.job_id)
    if pending is None:
        return True
    held = pending.job.held(start.stage, start.tasks)
    crossed = [(at, stays) for at, stays in rooms if not pending.job.ends_by(at, now)]
    for at, stays in crossed:
        if _on_any(start.placement.tasks_by_node, leaving, at):
            return False
        if not stays.has_room(held, start.placement):
            return False
    for _, stays in crossed:
        stays.take(held, start.placement)
    return True


def _on_any(places: Sequence[tuple[str, int]], leaving: Mapping[str, float], at: float) -> bool:
    return any(leaving.get(node, math.inf) <= at for node, _ in places)


def earliest_begin(
    job: Job, state: State, promised: Mapping[str, Reservation | Rejection], now: float
) -> float:
    """Return when all jobs that a job waits for may have ended (seconds); else ``now``.

    One with a reservation ends with that; one that runs ends when it is expected to; any other
    runs as long as is planned, from when those that it waits for have ended itself.
    """
    ends: dict[str, float] = {}
    asked: set[str] = set()
    stack = _unended(job, state)
    while stack:
        job_id = stack[-1]
        answer, running = promised.get(job_id), state.running.get(job_id)
        if isinstance(answer, Reservation) and answer.end_seconds > now:
            ends[job_id] = answer.end_seconds
        elif running is not None:
            ends[job_id] = max(running.expected_end_seconds, now)
        elif state.stage_of(job_id) is JobState.ABSENT:  # when it will come is not known
            ends[job_id] = now
        else:
            pending = state.submitted_job(job_id)
            before = _unended(pending.job, state)
            unknown = [each for each in before if each not in ends]
            if unknown and job_id not in asked:  # else they wait for each other
                asked.add(job_id)
                stack += unknown
                continue
            begin = max((ends[each] for each in before if each in ends), default=now)
            ends[job_id] = begin + pending.planned_seconds
        stack.pop()
    wished = None if job.conditions is None else job.conditions.begin_seconds
    return max(wished or now, now, *(ends[each] for each in job.after if each in ends))


def _unended(job: Job, state: State) -> list[str]:
    return [each for each in job.after if each not in state.ended]
