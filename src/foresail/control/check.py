"""Check of a decision: what of it may reach the cluster, and where.

A queue counts the cpus of a partition. Where the cluster has nodes, each start gets some of them
before the check, in the order of the decision, and one whose tasks fit on no nodes does not start.
It is then the head of EASY over nodes: behind it only what ends in time starts on nodes that it is
to have, so that it is not overtaken for ever.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final, TypeAlias

from foresail.model.containers import quickly_made
from foresail.model.decision import (
    Decision,
    Preempt,
    Reason,
    ReasonCode,
    Refusal,
    RefusalCode,
    Start,
    Withdraw,
)
from foresail.model.event import Unit, unit_of
from foresail.model.free_resources import FreeResources
from foresail.model.job import Job
from foresail.model.placing import FreeRoom, Rooms, tasks_within
from foresail.model.view import ClusterView, PendingJob, RunningJob, TaskNumbers


@quickly_made
@dataclass(frozen=True, slots=True)
class Verdict:
    """Accepted part of a decision, in the scheduler's order, and its refusals."""

    starts: tuple[Start, ...] = ()
    preemptions: tuple[Preempt, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    withdrawals: tuple[Withdraw, ...] = ()


NOTHING_DECIDED: Final = Verdict()

_Problem: TypeAlias = tuple[RefusalCode, str]
"""Reason for which a part of a decision is refused."""

_PartsLeft: TypeAlias = dict[tuple[str, str], TaskNumbers]
"""Tasks that may still start of stages that start in parts, behind a decision's other starts."""


def check_decision(
    decision: Decision,
    startable: Mapping[str, PendingJob],
    running: Mapping[Unit, RunningJob],
    stopping: Container[Unit],
    free: FreeResources,
) -> Verdict:
    """Split a decision into what fits the state and what does not.

    Starts are taken in the scheduler's order, each on what the ones before it left. A preemption
    frees nothing yet: the job holds its resources until the cluster reports that it has ended.

    ``startable`` are pending jobs whose dependencies have ended, by id; where they start in parts,
    with those. ``running`` are whole jobs by id, and parts of others as such; ``stopping`` those of
    them that were preempted earlier. ``free`` is not changed.
    """
    if not (decision.starts or decision.preemptions or decision.withdrawals):
        return NOTHING_DECIDED
    starts: list[Start] = []
    refusals: list[Refusal] = []
    left = free.copy() if len(decision.starts) > 1 else free
    started: set[str] = set()
    parts_left: _PartsLeft = {}
    for start in decision.starts:
        problem = _problem_of_start(start, started, startable, running, left, parts_left)
        if problem is not None:
            refusals.append(Refusal(start.job_id, *problem))
            continue
        pending = startable[start.job_id]
        if left is not free:  # there are others, who get what is left
            left.take(pending.job.held(start.stage, start.tasks), start.placement)
        if start.stage:
            part, tasks = (start.job_id, start.stage), start.tasks
            before = parts_left.get(part, _shown(start, pending))
            parts_left[part] = before.without(tasks) if tasks else TaskNumbers()
        started.add(start.job_id)
        starts.append(start)
    preemptions: dict[Unit, Preempt] = {}
    for preempt in decision.preemptions:
        problem = _problem_of_preemption(preempt, preemptions, running, stopping)
        if problem is not None:
            refusals.append(Refusal(preempt.job_id, *problem))
        else:
            preemptions[unit_of(preempt)] = preempt
    withdrawals: dict[str, Withdraw] = {}
    for withdraw in decision.withdrawals:
        problem = _problem_of_withdrawal(withdraw, withdrawals, started, startable, running)
        if problem is not None:
            refusals.append(Refusal(withdraw.job_id, *problem))
        else:
            withdrawals[withdraw.job_id] = withdraw
    stopped, withdrawn = tuple(preemptions.values()), tuple(withdrawals.values())
    return Verdict(tuple(starts), stopped, tuple(refusals), withdrawn)


def _problem_of_start(
    start: Start,
    started: Container[str],
    startable: Mapping[str, PendingJob],
    running: Mapping[Unit, RunningJob],
    left: FreeResources,
    parts_left: _PartsLeft,
) -> _Problem | None:
    job_id = start.job_id
    if job_id in started and not start.stage:
        return RefusalCode.TWICE, "it is started twice in one decision"
    if job_id in running:
        return RefusalCode.NOT_PENDING, "it is running already"
    pending = startable.get(job_id)
    if pending is None:
        return RefusalCode.UNKNOWN_JOB, "it is not among the jobs that may start"
    if start.stage or pending.startable:
        problem = _problem_of_part(start, pending, parts_left)
        if problem is not None:
            return problem
    return left.misplacement(pending.job.held(start.stage, start.tasks), start.placement)


def _problem_of_part(start: Start, pending: PendingJob, parts_left: _PartsLeft) -> _Problem | None:
    """Return why this cannot start of the job, wherever it is placed; None if it can."""
    name, tasks = start.stage, start.tasks
    if not pending.startable:
        return RefusalCode.NO_SUCH_TASK, "all of its tasks start together"
    if not name:
        return RefusalCode.NOT_WHOLE, "it starts in parts: which of them start has to be said"
    stage = next((each for each in pending.job.stages if each.name == name), None)
    if stage is None:
        return RefusalCode.NO_SUCH_TASK, f"it has no stage {name!r}"
    if stage.together and tasks:
        return RefusalCode.NOT_WHOLE, f"the tasks of its stage {name!r} start together"
    if not stage.together and not tasks:
        return RefusalCode.NOT_WHOLE, f"which tasks of its stage {name!r} start has to be said"
    shown = _shown(start, pending)
    left = parts_left.get((start.job_id, name), shown)
    if not shown:
        return RefusalCode.NOT_PENDING, f"nothing of its stage {name!r} may start now"
    if not left or len(set(tasks)) < len(tasks):
        return RefusalCode.TWICE, f"its stage {name!r} is started twice in one decision"
    for task in tasks:
        if not 0 <= task < stage.tasks:
            return RefusalCode.NO_SUCH_TASK, f"its stage {name!r} has no task {task}"
        if task not in shown:
            return RefusalCode.NOT_PENDING, f"task {task} of its stage {name!r} runs or has ended"
        if task not in left:
            return (
                RefusalCode.TWICE,
                f"task {task} of its stage {name!r} is started twice in one decision",
            )
    return None


def _shown(start: Start, pending: PendingJob) -> TaskNumbers:
    """Return which tasks of a stage may start, as the scheduler was shown."""
    for each in pending.startable:
        if each.stage.name == start.stage:
            return each.tasks
    return TaskNumbers()


def _problem_of_preemption(
    preempt: Preempt,
    preempted: Container[Unit],
    running: Mapping[Unit, RunningJob],
    stopping: Container[Unit],
) -> _Problem | None:
    unit = unit_of(preempt)
    if unit in preempted or unit in stopping:
        return RefusalCode.TWICE, "it is being stopped already"
    if unit not in running:
        return RefusalCode.NOT_RUNNING, "it is not running"
    if not running[unit].ours:
        return RefusalCode.NOT_OURS, "it was not started here, and is not stopped"
    return None


def _problem_of_withdrawal(
    withdraw: Withdraw,
    withdrawn: Container[str],
    started: Container[str],
    startable: Mapping[str, PendingJob],
    running: Mapping[Unit, RunningJob],
) -> _Problem | None:
    job_id = withdraw.job_id
    if job_id in withdrawn:
        return RefusalCode.TWICE, "it is withdrawn twice in one decision"
    if job_id in started:
        return RefusalCode.NOT_PENDING, "it is started in the same decision"
    if job_id not in startable:
        return RefusalCode.UNKNOWN_JOB, "it is not among the jobs that may start"
    if startable[job_id].startable and any(each.job.job_id == job_id for each in running.values()):
        return RefusalCode.NOT_PENDING, "some of it runs already"
    return None


class Assignment:
    """Nodes for starts; what is found out about a cluster is kept from pass to pass."""

    def __init__(self) -> None:
        self._rooms = Rooms()

    def __call__(
        self,
        decision: Decision,
        view: ClusterView,
        startable: Mapping[str, PendingJob],
        backfills: bool,
    ) -> Decision:
        """Give nodes to all that starts; what fits on none waits, and has a reason.

        ``startable`` are the jobs that may start, by id. Unless jobs may overtake, none starts
        behind one that fits nowhere. Starts that name nodes or are in a partition without nodes,
        and jobs of several stages, stay as they are.
        """
        if not view.free_nodes or all(each.placement.tasks_by_node for each in decision.starts):
            return decision
        room, head = self._rooms.at(view), None
        starts: list[Start] = []
        waiting: dict[str, Reason] = {}
        for start in decision.starts:
            pending = startable.get(start.job_id)
            records = [name for name, _ in start.placement.tasks_by_partition]
            if pending is None or len(pending.job.stages) > 1 or not room.has_nodes(records):
                starts.append(start)
                continue
            job, placement = pending.job, start.placement
            if not placement.tasks_by_node:
                kept: Container[str] = () if head is None else head.kept_from(pending, view.now)
                found = room.on_nodes_of(job, records, kept) if backfills or head is None else None
                if found is None:
                    if head is None:
                        head = _head(job, view, room, records)
                        waiting[job.job_id] = Reason(ReasonCode.FRAGMENTED, {"cpus": job.cpus})
                    else:
                        waiting[job.job_id] = head.in_its_way
                    continue
                placement = found
                start = replace(start, placement=found)
            room.take(job, placement)
            starts.append(start)
        reasons = {**decision.reasons, **waiting} if waiting else decision.reasons
        return replace(decision, starts=tuple(starts), reasons=reasons)


@dataclass(frozen=True, slots=True)
class _Head:
    """The first job that fits on no nodes, which nodes it is to have, and when (seconds)."""

    job_id: str
    nodes: frozenset[str]
    start_seconds: float

    def kept_from(self, pending: PendingJob, now: float) -> frozenset[str]:
        """Return the nodes that a job would hold too long."""
        ends = now + pending.planned_seconds
        return self.nodes if ends > self.start_seconds else frozenset()

    @property
    def in_its_way(self) -> Reason:
        """Return the reason of a job that would delay it."""
        numbers: dict[str, float | str] = {"head": self.job_id, "start": self.start_seconds}
        return Reason(ReasonCode.WOULD_DELAY, numbers)


def _head(job: Job, view: ClusterView, room: FreeRoom, records: list[str]) -> _Head:
    """Find when and where a job should fit first, by the expected ends of what runs."""
    request, tasks = job.stages[0].request, job.tasks
    free = room.free_of(records)
    fitting = {name: tasks_within(request, left) for name, left in free.items()}
    start = view.now
    for running in sorted(view.running, key=attrgetter("expected_end_seconds")):
        for name, more in running.placement.tasks_by_node:
            if name in free:
                free[name] += running.job.stages[0].request * more
                fitting[name] = tasks_within(request, free[name])
        start = max(start, running.expected_end_seconds)
        if sum(fitting.values()) >= tasks:
            break
    else:
        start = math.inf
    nodes = []
    for name in sorted(fitting, key=lambda each: -fitting[each]):
        if tasks <= 0 or not fitting[name]:
            break
        nodes.append(name)
        tasks -= fitting[name]
    return _Head(job.job_id, frozenset(nodes), start)
