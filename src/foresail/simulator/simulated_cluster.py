"""Simulated cluster: nodes, outages, and allocations that run for as long as a model has it."""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from foresail.model import event as news
from foresail.model.adapter import Capabilities, JobCommand, KnownJob
from foresail.model.changing_nodes import changed
from foresail.model.cluster import Cluster
from foresail.model.containers import quickly_made
from foresail.model.decision import Instruction, Placement, Preempt, Start
from foresail.model.errors import InputError
from foresail.model.free_resources import FreeResources, Slowdowns
from foresail.model.job import Job
from foresail.simulator.conditions import IDEAL, ClusterConditions

_PREEMPTED: Final = news.EndedBecause.PREEMPTED


@quickly_made
@dataclass(frozen=True, slots=True)
class ComingEnd:
    """Coming end of an allocation: when (seconds) and why, unless something moves it."""

    allocation: news.Allocation
    end_seconds: float
    ended_because: news.EndedBecause = news.EndedBecause.COMPLETED


class ExecutionModel(ABC):
    """Knows the truth of how long allocations run, and may change it while they do.

    As it stands nothing else moves an end, and nothing is measured.
    """

    next_seconds: float = math.inf
    """Time at which an unannounced change may end or move something."""

    @property
    def counters(self) -> Mapping[str, float]:
        """Numbers to be kept with the schedule."""
        return {}

    @abstractmethod
    def started(
        self, allocation: news.Allocation, placement: Placement, now: float
    ) -> Sequence[ComingEnd]:
        """An allocation begins to hold its place: its end, and those of others that this moves."""

    @abstractmethod
    def nodes_changed(self, cluster: Cluster, now: float) -> None:
        """There are other nodes from now on; what runs has its end."""

    def ended(self, allocation: news.Allocation, now: float) -> Sequence[ComingEnd]:  # noqa: ARG002
        """An allocation has let go of its place, for whatever reason: the ends that this moves."""
        return ()

    def used(self, allocation: news.Allocation, now: float) -> Mapping[str, float]:  # noqa: ARG002
        """Return what is measured of an allocation that is about to end (``Outcome.used``)."""
        return {}

    def advanced(self, now: float) -> Sequence[ComingEnd]:  # noqa: ARG002
        """``next_seconds`` has come: the ends that this brings or moves."""
        return ()


class FixedRuntimes(ExecutionModel):
    """Every allocation runs for as long as the truth has it, whatever runs beside it.

    ``runtime_seconds`` is the truth: how long an allocation runs where its job, which ``job_of``
    finds by its id, runs best; on nodes of the cluster that it does not prefer it runs longer, by
    its slowdown. Of the conditions, delays and noise count.
    """

    def __init__(
        self,
        runtime_seconds: Callable[[news.Allocation], float],
        job_of: Callable[[str], Job],
        cluster: Cluster,
        conditions: ClusterConditions,
        *,
        enforces_limits: bool = False,
    ) -> None:
        self._runtime_seconds = runtime_seconds
        self._job_of = job_of
        self._slowdowns = Slowdowns(cluster)
        self._conditions = conditions
        self._enforces_limits = enforces_limits

    def started(
        self, allocation: news.Allocation, placement: Placement, now: float
    ) -> Sequence[ComingEnd]:
        """Its own end alone."""
        job = self._job_of(allocation.job_id)
        slowdown = self._slowdowns.factor(job, placement)
        delay, runtime = self._conditions.delay_and_runtime(
            allocation, self._runtime_seconds(allocation) * slowdown
        )
        limit = math.inf if job.requested_seconds is None else job.requested_seconds
        if self._enforces_limits and runtime > limit:
            return (ComingEnd(allocation, now + (delay + limit), news.EndedBecause.LIMIT),)
        return (ComingEnd(allocation, now + (delay + runtime)),)

    def nodes_changed(self, cluster: Cluster, now: float) -> None:  # noqa: ARG002 - the time is no matter
        """Slow down later starts on those of these nodes that they do not prefer."""
        self._slowdowns = Slowdowns(cluster)


@quickly_made
@dataclass(slots=True)
class _RunningAllocation:
    """Running allocation as known so far; once it has ended, no number is its end."""

    allocation: news.Allocation
    placement: Placement
    start_seconds: float
    end_seconds: float = math.inf
    ended_because: news.EndedBecause = news.EndedBecause.COMPLETED


class SimulatedCluster:
    """A ``ClusterAdapter`` (``foresail.model.adapter``) whose time is that of who drives it.

    What ends at an instant has ended before a node changes then. What has no room any more when a
    node is down, another or gone is lost, the latest started first. Whether there is room for what
    is started is not its to check. What ran on nodes that go as it was known is revoked. Of the
    conditions, it is about which starts are refused and when which nodes are down, come, change and
    go; the rest of them is the execution's. Nothing happens before ``begin_seconds``,
    and nodes are as the cluster has them then.

    Raises ``InputError`` if an outage or a change is of a node that does not exist, or a node is
    added that does.
    """

    def __init__(
        self,
        cluster: Cluster,
        execution: ExecutionModel,
        job_of: Callable[[str], Job],
        conditions: ClusterConditions = IDEAL,
        begin_seconds: float = -math.inf,
    ) -> None:
        self._node_events = _node_events(cluster, conditions, begin_seconds)
        self.cluster = cluster
        self.capabilities = Capabilities(
            places=True,
            preempts=True,
            changes_nodes=bool(self._node_events),
            starts_tasks=True,
            refuses_starts=conditions.refused_start_share > 0.0,
        )
        self._conditions = conditions
        self._refused: list[news.NotStarted] = []
        self.wake_descriptor: int | None = None
        self._execution = execution
        self._job_of = job_of
        self._room = _room_at(cluster, conditions, begin_seconds)
        self._begin_seconds = begin_seconds
        self._begun: dict[news.Unit, int] = {}  # the latest attempt
        self._running: dict[news.Allocation, _RunningAllocation] = {}
        self._ends: list[
            tuple[float, int, _RunningAllocation]
        ] = []  # a heap; some have moved since
        self._ends_pushed = 0
        self._soonest: float | None = None  # as long as nothing has changed since it was found

    def history(self) -> Sequence[news.HistoryOutcome]:
        """Find nothing again: nothing ran before."""
        return ()

    def resume(
        self,
        running: Sequence[Start],
        known: Sequence[KnownJob],  # noqa: ARG002 - none is its own
        now: float,
    ) -> Sequence[news.Event]:
        """Begin now what an earlier driver started, if it is all gone."""
        for start in running:
            self.carry_out(start, now)
        return [news.NodeDown(now, node) for node in sorted(self._room.down)]

    def carry_out(self, instruction: Instruction | JobCommand, now: float) -> None:
        """Start or stop an allocation; the rest is not a cluster's to do."""
        if isinstance(instruction, Start):
            self.start(instruction.allocation, instruction.placement, now)
        elif isinstance(instruction, Preempt):
            self.stop(instruction.allocation, now)

    def start(self, allocation: news.Allocation, placement: Placement, now: float) -> None:
        """Let an allocation run from now on (or, before this cluster begins, from then on)."""
        unit = news.unit_of(allocation)
        if allocation.attempt > self._begun.get(unit, 0):
            self._begun[unit] = allocation.attempt
            if self._conditions.refuses(allocation):
                self._refuse(allocation, now)
                return
            self._running[allocation] = _RunningAllocation(allocation, placement, now)
            self._soonest = None
            self._expect(self._execution.started(allocation, placement, now))

    def _refuse(self, allocation: news.Allocation, now: float) -> None:
        job_id, stage, tasks, attempt = allocation
        again = self._conditions.refused_for_seconds
        sentence = "the cluster has refused it"
        self._refused.append(news.NotStarted(now, job_id, attempt, sentence, again, stage, tasks))
        self._soonest = now

    def stop(self, allocation: news.Allocation, now: float) -> None:
        """End an allocation that runs at once; its work is lost."""
        if allocation in self._running:
            self._soonest = None
            self._expect((ComingEnd(allocation, now, news.EndedBecause.PREEMPTED),))

    @property
    def next_seconds(self) -> float:
        """Return when anything happens next; infinity if nothing does."""
        if self._soonest is None:
            self._soonest = self._find_soonest()
        return self._soonest

    def _find_soonest(self) -> float:
        if self._refused:
            return self._refused[0].time
        ends, soonest = self._ends, self._execution.next_seconds
        while ends and ends[0][2].end_seconds != ends[0][0]:
            heapq.heappop(ends)
        if ends and ends[0][0] < soonest:
            soonest = ends[0][0]
        return min(soonest, self._node_events[-1].time) if self._node_events else soonest

    def reports(self, now: float) -> Sequence[news.Event]:
        """Report what has ended, and which nodes went and came, up to now."""
        events: list[news.Event] = [*self._refused]
        if self._refused:
            self._refused.clear()
            self._soonest = None
        time = self.next_seconds
        while math.inf > time <= now:
            if self._ends and self._ends[0][0] == time:
                running = heapq.heappop(self._ends)[2]
                events.append(self._end(running, time, running.ended_because))
            elif self._execution.next_seconds == time:
                self._expect(self._execution.advanced(time))
            else:
                events += self._change(self._node_events.pop(), time)
            time = self._soonest = self._find_soonest()
        return events

    def close(self) -> None:
        """Hold nothing open."""

    def _expect(self, ends: Iterable[ComingEnd]) -> None:
        """Note when allocations will end, but for those that are being stopped."""
        for end in ends:
            running = self._running[end.allocation]
            if running.ended_because is not _PREEMPTED:
                running.end_seconds = max(end.end_seconds, self._begin_seconds)
                running.ended_because = end.ended_because
                heapq.heappush(self._ends, (running.end_seconds, self._ends_pushed, running))
                self._ends_pushed += 1

    def _end(
        self, running: _RunningAllocation, now: float, because: news.EndedBecause
    ) -> news.Ended:
        allocation = running.allocation
        del self._running[allocation]
        running.end_seconds = math.nan
        used = self._execution.used(allocation, now)
        moved = self._execution.ended(allocation, now)
        if moved:
            self._expect(moved)
        outcome = news.Outcome(
            allocation.job_id,
            running.start_seconds,
            now,
            because,
            None,
            allocation.attempt,
            1.0,
            allocation.stage,
            allocation.tasks,
            used,
        )
        return news.Ended(now, outcome)

    def _change(self, event: news.NodeEvent, now: float) -> Iterator[news.Event]:
        """Change a node, after the end of what has no room any more because of it."""
        before = self.cluster
        self.cluster = _changed(before, self._room, event)
        if self.cluster is not before:
            self._execution.nodes_changed(self.cluster, now)
        is_planned = isinstance(event, news.NodeRemoved) and event.known_from_seconds is not None
        because = news.EndedBecause.REVOKED if is_planned else news.EndedBecause.LOST
        if not isinstance(event, news.NodeUp | news.NodeAdded):
            for running in self._without_room():
                yield self._end(running, now, because)
        yield event

    def _without_room(self) -> list[_RunningAllocation]:
        """Return what runs and does not fit; the first started keep their place first."""
        left = self._room.copy()
        lost = []
        for allocation, running in self._running.items():
            held = self._job_of(allocation.job_id).held(allocation.stage, allocation.tasks)
            if left.has_room(held, running.placement):
                left.take(held, running.placement)
            else:
                lost.append(running)
        return lost


def capacity_over_time(
    cluster: Cluster, conditions: ClusterConditions
) -> tuple[tuple[float, float], ...]:
    """From when on (seconds) there are how many cpus on nodes that are up, the first at second 0.

    Raises ``InputError`` if an outage or a change is of a node that does not exist, or a node is
    added that does.
    """
    room = _room_at(cluster, conditions, -math.inf)
    steps = {0.0: room.cpus}
    for event in reversed(_node_events(cluster, conditions, -math.inf)):
        cluster = _changed(cluster, room, event)
        steps[event.time] = room.cpus
    return tuple(steps.items())


def _changed(cluster: Cluster, room: FreeResources, event: news.NodeEvent) -> Cluster:
    """The cluster after what a node does, which the room has then gone through too."""
    match event:
        case news.NodeDown(node=node):
            room.close(node)
        case news.NodeUp(node=node):
            room.open(node)
        case _:
            cluster = changed(cluster, event)
            room.change(cluster)
    return cluster


def _room_at(cluster: Cluster, conditions: ClusterConditions, now: float) -> FreeResources:
    """All that nodes offer which are up at a time."""
    room = FreeResources(cluster)
    there = room.by_node()
    for outage in conditions.outages:
        if outage.down_seconds <= now < outage.up_seconds and outage.node in there:
            room.close(outage.node)
    return room


def _node_events(
    cluster: Cluster, conditions: ClusterConditions, begin_seconds: float
) -> list[news.NodeEvent]:
    """Return node events after the beginning, the last first; absent nodes go neither down nor up.

    Of one instant in the order that they are given, outages last.
    """
    events: list[news.NodeEvent] = [*conditions.node_changes]
    for outage in conditions.outages:
        events.append(news.NodeDown(outage.down_seconds, outage.node))
        events.append(news.NodeUp(outage.up_seconds, outage.node))
    events.sort(key=lambda event: event.time)
    there = {node.name for partition in cluster.partitions for node in partition.nodes}
    ever = there | {each.node.name for each in events if isinstance(each, news.NodeAdded)}
    coming: list[news.NodeEvent] = []
    for event in events:
        if isinstance(event, news.NodeDown | news.NodeUp) and event.node not in ever:
            raise InputError("no such node", field="outages", value=event.node)
        if event.time <= begin_seconds:
            continue
        match event:
            case news.NodeDown(node=node) | news.NodeUp(node=node):
                if node not in there:
                    continue
            case _:
                cluster = changed(cluster, event)
                there = {node.name for each in cluster.partitions for node in each.nodes}
        coming.append(event)
    return coming[::-1]
