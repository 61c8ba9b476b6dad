"""The execution model of shared machines: tasks use what they use, and get in each other's way."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.model.cluster import Cluster, Resources
from foresail.model.decision import Placement
from foresail.model.errors import InputError
from foresail.model.job import Job, Stage
from foresail.model.outcome import Allocation, EndedBecause
from foresail.simulator.conditions import ClusterConditions
from foresail.simulator.kernels import shared_machines as kernel
from foresail.simulator.real_use import EVICTION_SHARE, RealUse
from foresail.simulator.simulated_cluster import ComingEnd

_FIRST_ROWS: Final = 64


@dataclass(slots=True)
class _Held:
    """The tasks of an allocation: their slots, and how many have not completed."""

    slots: list[int] = field(default_factory=list)
    running: int = 0


class SharedMachines:
    """Tasks share the cpus and the memory of their machine, by the truth of what they use.

    Where cpus are short, tasks are slower; where memory is, tasks are evicted, and their allocation
    ends with ``LOST``: it is requeued and begins anew. It completes with the last of its
    tasks. Source: paper 000, sections 5.1.3 and 5.4.1.

    Parameters
    ----------
    use
        The truth, by job, stage and task.
    job_of
        The specification of the job with an id.
    cluster
        The machines: its named nodes.
    conditions
        Delays and noise: by how much everything a task does takes longer.
    enforces_limits
        Whether allocations are killed at their job's requested time.
    told
        Is given the news of every instant: rows as ``kernels.shared_machines`` has them, in which
        tasks and machines are numbers: see ``task_names`` and ``machine_names``.
    """

    def __init__(
        self,
        use: RealUse,
        job_of: Callable[[str], Job],
        cluster: Cluster,
        conditions: ClusterConditions,
        *,
        enforces_limits: bool = False,
        told: Callable[[NDArray[np.float64]], object] | None = None,
    ) -> None:
        self.task_names: list[tuple[Allocation, int]] = []
        self.machine_names: list[str] = []
        self.next_seconds = math.inf
        self._use = use
        self._job_of = job_of
        self._conditions = conditions
        self._enforces_limits = enforces_limits
        self._told = told
        self._machine_of: dict[str, int] = {}
        self._machines = np.empty((0, kernel.MACHINE_COLUMNS))
        self._machine_links = np.empty((0, kernel.MACHINE_LINKS), np.int64)
        self._heap = np.empty(0, np.int64)
        self._tasks = np.zeros((_FIRST_ROWS, kernel.TASK_COLUMNS))
        self._task_links = np.full((_FIRST_ROWS, kernel.TASK_LINKS), kernel.NONE)
        self._news = np.empty((_FIRST_ROWS * kernel.MOST_NEWS_OF_A_TASK, kernel.NEWS_COLUMNS))
        self._on = np.empty(_FIRST_ROWS, np.int64)
        self._free = list(range(_FIRST_ROWS))[::-1]
        self._totals = np.zeros(kernel.TOTALS, np.int64)
        self._held: dict[Allocation, _Held] = {}
        self._offer(cluster)

    @property
    def counters(self) -> dict[str, float]:
        """Return how often a task was throttled (more), and how many were evicted."""
        return {
            "cpu_throttles": float(self._totals[kernel.THROTTLES]),
            "memory_evictions": float(self._totals[kernel.EVICTIONS]),
        }

    def started(
        self, allocation: Allocation, placement: Placement, now: float
    ) -> Sequence[ComingEnd]:
        """The limit of its time, if that is enforced; all else is seen when it happens."""
        if not placement.tasks_by_node:
            raise InputError(
                "tasks that share nodes are to be placed on nodes, and this scheduler names none",
                field="share_nodes",
                expected='a scheduler that does, such as "priority"',
            )
        job = self._job_of(allocation.job_id)
        if not allocation.stage and len(job.stages) > 1:
            raise InputError(
                f"job {job.job_id} has several stages, and this scheduler starts them together",
                field="share_nodes",
                value=", ".join(each.name for each in job.stages),
                expected='a scheduler that starts one after the other, such as "task_fifo"',
            )
        delay, stretch = self._conditions.delay_and_runtime(allocation, 1.0)
        held = self._held[allocation] = _Held()
        nodes = [node for node, count in placement.tasks_by_node for _ in range(count)]
        tasks = allocation.tasks or range(_stage_of(job, allocation).tasks)
        for task, node in zip(tasks, nodes, strict=True):
            held.slots.append(self._begin(allocation, task, node, job, now + delay, stretch))
        held.running = len(nodes)
        self._look_ahead()
        if not self._enforces_limits or job.requested_seconds is None:
            return ()
        return (ComingEnd(allocation, now + delay + job.requested_seconds, EndedBecause.LIMIT),)

    def used(self, allocation: Allocation, now: float) -> dict[str, float]:
        """Return what completed tasks use, by the truth.

        Of others, the most work that one has done, and the most memory that one holds.
        """
        held = self._held[allocation]
        if held.running == 0:
            numbers = (self.task_names[self._number(slot)][1] for slot in held.slots)
            return self._use.of_tasks(allocation.job_id, allocation.stage, numbers)
        return {
            "cpu_time": max(self._work(slot, now) for slot in held.slots),
            "memory_max": float(self._tasks[held.slots, kernel.MEMORY].max()),
        }

    def measured(self) -> dict[Allocation, Resources]:
        """Return the mean use now of each running task, over those of its allocation."""
        columns = (kernel.ALLOCATED, kernel.MEMORY)
        amounts = self._tasks[:, columns].tolist()
        is_on = self._task_links[:, kernel.ON] != kernel.NONE
        runs = (is_on & (self._tasks[:, kernel.PACE] > 0.0)).tolist()
        found = {}
        for allocation, held in self._held.items():
            rows = [amounts[slot] for slot in held.slots if runs[slot]]
            if len(rows) == 1:  # most are of one task
                found[allocation] = Resources(*rows[0])
            elif rows:
                cpus, memory = map(sum, zip(*rows, strict=True))
                found[allocation] = Resources(cpus / len(rows), memory / len(rows))
        return found

    def ended(self, allocation: Allocation, now: float) -> Sequence[ComingEnd]:
        """Share out what it leaves before anything else happens."""
        for slot in self._held.pop(allocation).slots:
            kernel.leave(
                self._machines,
                self._machine_links,
                self._heap,
                self._tasks,
                self._task_links,
                slot,
                now,
            )
            self._free.append(slot)
        self._look_ahead()
        return ()

    def advanced(self, now: float) -> Sequence[ComingEnd]:
        """Return what ends because of all that happens up to now."""
        ended_before = self._totals[kernel.ENDS]
        count = kernel.advance(
            self._machines,
            self._machine_links,
            self._heap,
            self._tasks,
            self._task_links,
            self._use.segments,
            now,
            self._due,
            self._on,
            self._news,
            self._totals,
        )
        self._look_ahead()
        news = self._news[:count]
        if self._told is not None:
            self._told(news.copy())
        return self._ends(news, now) if self._totals[kernel.ENDS] > ended_before else ()

    def nodes_changed(self, cluster: Cluster, now: float) -> None:
        """Machines come, or offer something else; one that has gone is empty before long."""
        before = self._machines[:, : kernel.NEXT].copy()
        self._offer(cluster)
        offered = self._machines[: len(before), : kernel.NEXT]
        for machine in np.flatnonzero((offered != before).any(axis=1)):
            kernel.relieve(self._machines, self._machine_links, self._heap, int(machine), now)
        self._look_ahead()

    def _look_ahead(self) -> None:
        """Find when use changes next, or handle what has changed; asked many times."""
        if self._heap.size:
            self.next_seconds = float(self._machines[self._heap[0], kernel.NEXT])

    def _ends(self, news: NDArray[np.float64], now: float) -> Sequence[ComingEnd]:
        """The ends of allocations among the news."""
        kinds = news[:, kernel.NEWS_KIND]
        ends: dict[Allocation, ComingEnd] = {}
        for row in news[(kinds == kernel.COMPLETED) | (kinds == kernel.EVICTED)]:
            allocation, _ = self.task_names[int(row[kernel.NEWS_TASK])]
            if row[kernel.NEWS_KIND] == kernel.EVICTED:
                ends[allocation] = ComingEnd(allocation, now, EndedBecause.LOST)
                continue
            held = self._held[allocation]
            held.running -= 1
            if held.running == 0:
                ends[allocation] = ComingEnd(allocation, now)
        return tuple(ends.values())

    def _offer(self, cluster: Cluster) -> None:
        """Make the tables of machines larger by those that are new, and say what all offer."""
        nodes = [node for partition in cluster.partitions for node in partition.nodes]
        known = len(self.machine_names)
        self.machine_names += [node.name for node in nodes if node.name not in self._machine_of]
        for machine, name in enumerate(self.machine_names[known:], start=known):
            self._machine_of[name] = machine
        more = len(self.machine_names) - known
        self._machines = np.concatenate(
            (self._machines, np.full((more, kernel.MACHINE_COLUMNS), np.inf))
        )
        self._machine_links = np.concatenate(
            (self._machine_links, np.full((more, kernel.MACHINE_LINKS), kernel.NONE))
        )
        for node in nodes:
            row = self._machines[self._machine_of[node.name]]
            row[kernel.CPUS] = node.total.cpus
            row[kernel.EVICTS_AT] = node.total.memory_bytes * EVICTION_SHARE
        self._heap = np.empty(len(self._machines), np.int64)
        self._due = np.empty(len(self._machines), np.int64)
        kernel.arrange(self._machines, self._machine_links, self._heap)

    def _begin(
        self, allocation: Allocation, task: int, node: str, job: Job, begins: float, stretch: float
    ) -> int:
        """The slot of a task that begins now or, after a delay, later."""
        if not self._free:
            self._double()
        slot = self._free.pop()
        first, end = self._use.bounds[allocation.job_id, allocation.stage][task : task + 2]
        request = _stage_of(job, allocation).request
        row, links = self._tasks[slot], self._task_links[slot]
        row[:] = 0.0
        row[kernel.CPU_REQUEST] = request.cpus
        row[kernel.MEMORY_REQUEST] = request.memory_bytes
        row[kernel.PRIORITY] = float(job.deadline_seconds is not None)
        row[kernel.STRETCH] = stretch
        links[kernel.SEGMENT], links[kernel.BEGIN], links[kernel.SEGMENTS_END] = (
            first - 1,
            first,
            end,
        )
        links[kernel.NUMBER] = len(self.task_names)
        self.task_names.append((allocation, task))
        kernel.begin(
            self._machines,
            self._machine_links,
            self._heap,
            self._tasks,
            self._task_links,
            slot,
            self._machine_of[node],
            begins,
            self._on,
        )
        return slot

    def _double(self) -> None:
        """Make room for twice as many tasks."""
        rows = len(self._tasks)
        self._tasks = np.concatenate((self._tasks, np.zeros_like(self._tasks)))
        self._task_links = np.concatenate((self._task_links, self._task_links))
        self._news = np.empty((2 * rows * kernel.MOST_NEWS_OF_A_TASK, kernel.NEWS_COLUMNS))
        self._on = np.empty(2 * rows, np.int64)
        self._free += range(rows, 2 * rows)

    def _number(self, slot: int) -> int:
        return int(self._task_links[slot, kernel.NUMBER])

    def _work(self, slot: int, now: float) -> float:
        """Cpu seconds that a task has done by now."""
        row = self._tasks[slot]
        work = float(row[kernel.WORK])
        if self._task_links[slot, kernel.ON] == kernel.NONE:
            return work
        going = (now - row[kernel.SINCE]) * row[kernel.PACE]
        return work + float(min(going, row[kernel.REMAINING]) * row[kernel.DEMAND])


def _stage_of(job: Job, allocation: Allocation) -> Stage:
    """The stage that its tasks are of."""
    return job.stage(allocation.stage) if allocation.stage else job.stages[0]
