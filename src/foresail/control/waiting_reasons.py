"""Reasons why jobs wait: by their state, and by what the scheduler has said of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Final, TypeAlias

from foresail.model.cluster import Resources
from foresail.model.decision import Reason, ReasonCode
from foresail.model.free_resources import tasks_within
from foresail.model.job import DependencyKind, Job, Stage
from foresail.model.view import PendingJob
from foresail.model.words import listed
from foresail.record.state import State

_OF_DEPENDENCY: Final[Mapping[DependencyKind, ReasonCode]] = {
    DependencyKind.AFTER_OK: ReasonCode.DEPENDENCY,
    DependencyKind.AFTER_ANY: ReasonCode.DEPENDENCY_ANY,
    DependencyKind.AFTER_NOT_OK: ReasonCode.DEPENDENCY_FAILURE,
    DependencyKind.AFTER: ReasonCode.DEPENDENCY_BEGIN,
    DependencyKind.SINGLETON: ReasonCode.SINGLETON,
}
_LACKS: Final = frozenset({ReasonCode.NO_ROOM, ReasonCode.FRAGMENTED})
_Asked: TypeAlias = tuple[tuple[Stage, ...], str | None]
"""Stages that a job asks for, and the partition."""

_MOST_NODES: Final = 3
"""Most nodes that are named."""


class WaitingReasons:
    """The reasons of pending jobs, each made once it is asked for.

    ``of_pass`` is what the scheduler said in its last pass, by job id; ``draining`` whether nothing
    new is started.
    """

    def __init__(self, state: State) -> None:
        self.of_pass: Mapping[str, Reason] = {}
        self.draining = False
        self._state = state

    def of_all(self) -> dict[str, Reason]:
        """Return the reason of each pending job, by id in order of arrival."""
        shortages = Shortages(self._state)
        return {
            pending.job.job_id: self._found(pending, shortages) or _not_chosen(ahead)
            for ahead, pending in enumerate(self._state.pending())
        }

    def reasons(self, pending: Iterable[PendingJob]) -> dict[str, Reason]:
        """Return the reasons of some pending jobs, by id; for few of many."""
        shortages = Shortages(self._state)
        reasons = {each.job.job_id: self._found(each, shortages) for each in pending}
        if None in reasons.values():
            rosters = [each.in_order() for each in self._state.pending_rosters]
            for each in pending:
                if reasons[each.job.job_id] is None:
                    ahead = sum(
                        bisect_left(one, each.arrival, key=attrgetter("arrival")) for one in rosters
                    )
                    reasons[each.job.job_id] = _not_chosen(ahead)
        return {job_id: reason for job_id, reason in reasons.items() if reason is not None}

    def _found(self, pending: PendingJob, shortages: Shortages) -> Reason | None:
        """Return why a job waits; None if the scheduler says nothing of it."""
        state, job_id = self._state, pending.job.job_id
        if job_id in state.held:
            return Reason(ReasonCode.HELD, {"by": state.held[job_id]})
        if job_id in state.waiting_for:
            unmet = state.unmet(pending.job)
            if unmet is not None:
                predecessor, kind = unmet
                return Reason(_OF_DEPENDENCY[kind], {"after": predecessor})
        if job_id in state.not_started:
            event = state.not_started[job_id]
            again = event.time + event.again_after_seconds
            return Reason(ReasonCode.NOT_STARTED, {"why": event.sentence, "again": again})
        if job_id in state.held_back:
            begin, limit = state.why_held_back(job_id)
            if begin is not None:
                return Reason(ReasonCode.BEGIN, {"begin": begin})
            return Reason(ReasonCode.ARRAY_LIMIT, {"most": float(limit)})
        if job_id in state.too_wide:
            parts = state.parts_of(job_id)
            at_once = (pending.job,) if parts is None else parts.smallest()
            most = max(each.cpus for each in at_once)
            numbers = {"cpus": most, "total": state.cluster.total.cpus}
            return Reason(ReasonCode.TOO_WIDE, numbers)
        if self.draining:
            return Reason(ReasonCode.DRAINING)
        if state.unavailable:
            return Reason(ReasonCode.UNAVAILABLE, {"why": state.unavailable})
        return shortages.corrected(self.of_pass.get(job_id), pending)


class Shortages:
    """Shortages of jobs by what is free now: those that ask for the same lack the same."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._out_of_use: dict[_Asked, Reason | None] = {}
        self._scarce: dict[_Asked, Reason | None] = {}

    def corrected(self, reason: Reason | None, pending: PendingJob) -> Reason | None:
        """Correct what a scheduler said of a job by what the state knows now."""
        state, job = self._state, pending.job
        if state.parts_of(job.job_id) is not None:
            return reason
        asked = job.stages, job.partition
        if state.down or state.drained:
            if asked not in self._out_of_use:
                self._out_of_use[asked] = _out_of_use(job, state)
            if self._out_of_use[asked] is not None:
                return self._out_of_use[asked]
        if reason is None or reason.code not in _LACKS:
            return reason
        if asked not in self._scarce:
            self._scarce[asked] = _scarce(job, state)
        return self._scarce[asked] or reason


def _out_of_use(job: Job, state: State) -> Reason | None:
    """Return that only nodes down or drained have room for a job; None if that is not so."""
    if state.could_hold_now(job):
        return None
    gone = sorted(state.down | state.drained.keys())
    named = [f"{node} ({_how_out(state, node)})" for node in gone[:_MOST_NODES]]
    if len(gone) > _MOST_NODES:
        named.append(f"{len(gone) - _MOST_NODES} more")
    numbers: dict[str, float | str] = {"nodes": listed(named)}
    if len(gone) == 1 and gone[0] in state.drained:
        numbers["since"] = state.drained[gone[0]].time
    return Reason(ReasonCode.NODES_OUT, numbers)


def _how_out(state: State, node: str) -> str:
    if node in state.down:
        return "down"
    by = state.drained[node].by
    return f"drained by {by}" if by else "drained"


def _scarce(job: Job, state: State) -> Reason | None:
    """Return what a job lacks: cpus, or else another resource; None for nothing."""
    asked, free = job.total, _free_for(job, state)
    if asked.cpus > free.cpus:
        numbers = {"cpus": asked.cpus, "free": max(0.0, free.cpus)}
        return Reason(ReasonCode.NO_ROOM, numbers)
    if asked.memory_bytes > free.memory_bytes:
        memory = {"memory_bytes": asked.memory_bytes, "free_memory_bytes": free.memory_bytes}
        return Reason(ReasonCode.NO_ROOM, memory)
    if asked.gpus > free.gpus:
        gpus = {"gpus": asked.gpus, "free_gpus": max(0.0, free.gpus)}
        return Reason(ReasonCode.NO_ROOM, gpus)
    nodes = state.free.by_node().values()
    if len(job.stages) > 1 or not nodes:
        return None
    request = job.stages[0].request
    if sum(tasks_within(request, room) for room in nodes) >= job.tasks:
        return None
    return Reason(ReasonCode.FRAGMENTED, {"cpus": asked.cpus})


def _free_for(job: Job, state: State) -> Resources:
    """Return what is free where a job may run: a single task cannot span partitions."""
    free = state.free.by_partition()
    if named := state.free.of_named(job.partition):
        return max(named, key=_cpus)
    if job.tasks > 1:
        return sum(free.values(), Resources())
    return max(free.values(), key=_cpus, default=Resources())


def _cpus(room: Resources) -> float:
    return room.cpus


def _not_chosen(ahead: int) -> Reason:
    return Reason(ReasonCode.NOT_CHOSEN, {"ahead": float(ahead)})
