"""The simulated cluster: nodes, outages, and allocations that run and end as a model has it."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from foresail.model.adapter import Capabilities
from foresail.model.allocation import Allocation
from foresail.model.cluster import Cluster
from foresail.model.decision import Instruction, Placement, Preempt, Start
from foresail.model.errors import InputError
from foresail.model.event import Ended, Event, HistoryOutcome, NodeDown, NodeUp
from foresail.model.outcome import EndedBecause, Outcome
from foresail.simulator.conditions import Outage
from foresail.simulator.execution import ComingEnd, ExecutionModel


@dataclass(slots=True)
class _Running:
    """What is known of an allocation while it runs."""

    placement: Placement
    start_seconds: float
    end_seconds: float = math.inf
    ended_because: EndedBecause = EndedBecause.COMPLETED


class SimulatedCluster:
    """A ``ClusterAdapter`` (``foresail.model.adapter``) whose time is that of who drives it.

    What ends at an instant has ended before a node goes down then. Whether there is room for what
    is started is not its to check.

    Parameters
    ----------
    cluster
        What there is to run on.
    execution
        How long allocations run.
    outages
        When which nodes are down; what runs there then is lost.
    begin_seconds
        Nothing happens before, and no outage begins or ends up to then.

    Raises
    ------
    InputError
        If an outage is of a node that does not exist.
    """

    def __init__(
        self,
        cluster: Cluster,
        execution: ExecutionModel,
        outages: Sequence[Outage] = (),
        begin_seconds: float = -math.inf,
    ) -> None:
        self.cluster = cluster
        self.capabilities = Capabilities(places=True, preempts=True, changes_nodes=bool(outages))
        self.wake_descriptor: int | None = None
        self._execution = execution
        self._begin_seconds = begin_seconds
        self._begun: set[Allocation] = set()
        self._running: dict[Allocation, _Running] = {}
        self._ends: list[tuple[float, int, Allocation]] = []  # a heap; some have moved since
        self._ends_told = 0
        self._node_changes = _node_changes(cluster, outages, begin_seconds)

    def history(self) -> Sequence[HistoryOutcome]:
        """Nothing ran before."""
        return ()

    def resume(self, running: Sequence[Start], now: float) -> Sequence[Event]:
        """What an earlier driver started begins now, since it is all gone."""
        for start in running:
            self.carry_out(start, now)
        return ()

    def carry_out(self, instruction: Instruction, now: float) -> None:
        """Start or stop an allocation; the rest is not a cluster's to do."""
        match instruction:
            case Start(placement=placement):
                self.start(instruction.allocation, placement, now)
            case Preempt():
                self.stop(instruction.allocation, now)

    def start(self, allocation: Allocation, placement: Placement, now: float) -> None:
        """Let an allocation run from now on (or, before this cluster begins, from then on)."""
        if allocation not in self._begun:
            self._begun.add(allocation)
            self._running[allocation] = _Running(placement, now)
            self._expect(self._execution.started(allocation, placement, now))

    def stop(self, allocation: Allocation, now: float) -> None:
        """End an allocation that runs at once; its work is lost."""
        if allocation in self._running:
            self._expect((ComingEnd(allocation, now, EndedBecause.PREEMPTED),))

    @property
    def next_seconds(self) -> float:
        """When the next allocation ends or node changes; infinity if none does."""
        ends = self._ends
        while ends:
            time, _, allocation = ends[0]
            running = self._running.get(allocation)
            if running is not None and running.end_seconds == time:
                break
            heapq.heappop(ends)
        first_end = ends[0][0] if ends else math.inf
        return min(first_end, self._node_changes[-1].time) if self._node_changes else first_end

    def reports(self, now: float) -> Sequence[Event]:
        """What has ended, and which nodes went and came, up to now."""
        events: list[Event] = []
        while math.inf > (time := self.next_seconds) <= now:
            if self._ends and self._ends[0][0] == time:
                allocation = heapq.heappop(self._ends)[2]
                because = self._running[allocation].ended_because
                events.append(self._end(allocation, time, because))
            else:
                change = self._node_changes.pop()
                if isinstance(change, NodeDown):
                    events += self._lose(change.node, time)
                events.append(change)
        return events

    def close(self) -> None:
        """Nothing is held open."""

    def _expect(self, ends: Iterable[ComingEnd]) -> None:
        """Note when allocations will end, but for those that were told to stop."""
        for allocation, end_seconds, because in ends:
            running = self._running[allocation]
            if running.ended_because is not EndedBecause.PREEMPTED:
                running.end_seconds = max(end_seconds, self._begin_seconds)
                running.ended_because = because
                heapq.heappush(self._ends, (running.end_seconds, self._ends_told, allocation))
                self._ends_told += 1

    def _end(self, allocation: Allocation, now: float, because: EndedBecause) -> Ended:
        running = self._running.pop(allocation)
        self._expect(self._execution.ended(allocation, now))
        job_id, stage, tasks, attempt = allocation
        outcome = Outcome(
            job_id=job_id,
            start_seconds=running.start_seconds,
            end_seconds=now,
            ended_because=because,
            attempt=attempt,
            stage=stage,
            tasks=tasks,
        )
        return Ended(now, outcome)

    def _lose(self, node: str, now: float) -> list[Ended]:
        """What has a task on a node ends with it; its work is lost."""
        lost = [
            allocation
            for allocation, running in self._running.items()
            if any(name == node for name, _ in running.placement.tasks_by_node)
        ]
        return [self._end(allocation, now, EndedBecause.LOST) for allocation in lost]


def _node_changes(
    cluster: Cluster, outages: Sequence[Outage], begin_seconds: float
) -> list[NodeDown | NodeUp]:
    """What nodes do after the beginning, the last first."""
    nodes = {node.name for partition in cluster.partitions for node in partition.nodes}
    changes: list[NodeDown | NodeUp] = []
    for outage in outages:
        if outage.node not in nodes:
            raise InputError("no such node", field="outages", value=outage.node)
        changes.append(NodeDown(outage.down_seconds, outage.node))
        changes.append(NodeUp(outage.up_seconds, outage.node))
    coming = [change for change in changes if change.time > begin_seconds]
    coming.sort(key=lambda change: change.time)
    return coming[::-1]
