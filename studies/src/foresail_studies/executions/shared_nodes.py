"""The execution model of shared machines: tasks use what they use, and get in each other's way."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.kernels.borrowed import Places
from foresail.model.cluster import Cluster, Resources
from foresail.model.decision import Placement
from foresail.model.errors import InputError
from foresail.model.event import Allocation, EndedBecause
from foresail.model.job import Job, Stage
from foresail.model.registry import NoParameters, register
from foresail.simulator.conditions import ClusterConditions
from foresail.simulator.simulated_cluster import ComingEnd, ExecutionModel
from foresail.traces.workload import Workload
from foresail_studies.executions._real_use import RealUse, real_use
from foresail_studies.executions.kernels import shared_machines as kernel
from foresail_studies.use_record import EVICTION_SHARE, GONE, USE

_FIRST_ROWS: Final = 64


@dataclass(slots=True)
class _Held:
    """The tasks of an allocation: their slots, and how many have not completed."""

    slots: list[int] = field(default_factory=list)
    running: int = 0


class SharedMachines(ExecutionModel):
    """Tasks share the cpus and the memory of their machine, by the truth of what they use.

    Where cpus are short, tasks are slower; where memory is, tasks are evicted, and their allocation
    ends with ``LOST``: it is requeued and begins anew. It completes with the last of its tasks. By
    delays and noise all that a task does takes longer. Source: Park's dissertation, sections 5.1.3
    and 5.4.1.

    ``hears_news`` is given the news of every instant: rows as ``kernels.shared_machines`` has them,
    in which tasks and machines are numbers: see ``task_names`` and ``machine_names``.
    """

    def __init__(
        self,
        use: RealUse,
        job_of: Callable[[str], Job],
        cluster: Cluster,
        conditions: ClusterConditions,
        *,
        enforces_limits: bool = False,
        hears_news: Callable[[NDArray[np.float64]], object] | None = None,
    ) -> None:
        self.task_names: list[tuple[Allocation, int]] = []
        self.machine_names: list[str] = []
        self.next_seconds = math.inf
        self._use = use
        self._job_of = job_of
        self._conditions = conditions
        self._enforces_limits = enforces_limits
        self._hears_news = hears_news
        self._machine_of: dict[str, int] = {}
        self._at = kernel.SharedTables(
            machines=np.empty((0, kernel.MACHINE_COLUMNS)),
            first=np.empty(0, np.int64),
            heap=np.empty(0, np.int64),
            due=np.empty(0, np.int64),
            tasks=np.zeros((_FIRST_ROWS, kernel.TASK_COLUMNS)),
            links=np.full((_FIRST_ROWS, kernel.TASK_LINKS), kernel.NONE),
            on=np.empty(_FIRST_ROWS, np.int64),
            news=np.empty((_FIRST_ROWS * kernel.MOST_NEWS_OF_A_TASK, kernel.NEWS_COLUMNS)),
            segments=np.ascontiguousarray(use.segments),
            totals=np.zeros(kernel.TOTALS, np.int64),
        )
        self._free = list(range(_FIRST_ROWS))[::-1]
        self._held: dict[Allocation, _Held] = {}
        self._offer(cluster)

    @property
    def counters(self) -> dict[str, float]:
        """Return how often a task was throttled (more), and how many were evicted."""
        return {
            "cpu_throttles": float(self._at.totals[kernel.THROTTLES]),
            "memory_evictions": float(self._at.totals[kernel.EVICTIONS]),
        }

    def use_over_time(
        self, news: Sequence[NDArray[np.float64]], ends: Mapping[Allocation, float]
    ) -> pl.DataFrame:
        """Return the table (``use_record.USE``) of a run, from its news in order.

        ``ends`` says when allocations ended (seconds): their tasks left then, if not before.
        """
        tasks, machines = self.task_names, self.machine_names
        rows = np.concatenate((np.empty((0, kernel.NEWS_COLUMNS)), *news))
        whole = {
            "kind": rows[:, kernel.NEWS_KIND].astype(np.int64),
            "run": rows[:, kernel.NEWS_TASK].astype(np.int64),
            "machine": rows[:, kernel.NEWS_MACHINE].astype(np.int64),
        }
        known = pl.DataFrame(
            {
                "seconds": rows[:, kernel.NEWS_TIME],
                "what": np.array(kernel.KIND_NAMES, dtype=object)[whole["kind"]],
                "node": np.array([*machines, ""], dtype=object)[whole["machine"]],
                "run": whole["run"],
                "cpus_needed": rows[:, kernel.NEWS_DEMAND],
                "cpus_given": rows[:, kernel.NEWS_ALLOCATED],
                "memory_bytes": rows[:, kernel.NEWS_MEMORY],
            },
            schema_overrides={"what": pl.String, "node": pl.String},
        )
        last = known.group_by("run", maintain_order=True).last()
        stayed = last.filter(~pl.col("what").is_in(GONE))
        left = stayed.with_columns(
            seconds=pl.Series([ends[tasks[run][0]] for run in stayed["run"]], dtype=pl.Float64),
            what=pl.lit("left"),
        )
        names = pl.DataFrame(
            {
                "run": range(len(tasks)),
                "job_id": [allocation.job_id for allocation, _ in tasks],
                "stage": [allocation.stage or None for allocation, _ in tasks],
                "task": [task for _, task in tasks],
            },
            schema={"run": pl.Int64, "job_id": pl.String, "stage": pl.String, "task": pl.Int64},
        )
        every = pl.concat([known, left.select(known.columns)]).sort("seconds", maintain_order=True)
        return every.join(names, on="run", maintain_order="left").select(USE.names()).cast(USE)

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
            "memory_max": float(self._at.tasks[held.slots, kernel.MEMORY].max()),
        }

    def measured(self) -> dict[Allocation, Resources]:
        """Return the mean use now of each running task, over those of its allocation."""
        columns = (kernel.ALLOCATED, kernel.MEMORY)
        amounts = self._at.tasks[:, columns].tolist()
        is_on = self._at.links[:, kernel.ON] != kernel.NONE
        runs = (is_on & (self._at.tasks[:, kernel.PACE] > 0.0)).tolist()
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
            kernel.leave(self._places.numbers, slot, now)
            self._free.append(slot)
        self._look_ahead()
        return ()

    def advanced(self, now: float) -> Sequence[ComingEnd]:
        """Return what ends because of all that happens up to now."""
        ended_before = self._at.totals[kernel.ENDS]
        count = kernel.advance(self._places.numbers, now)
        self._look_ahead()
        news = self._at.news[:count]
        if self._hears_news is not None:
            self._hears_news(news.copy())
        return self._ends(news, now) if self._at.totals[kernel.ENDS] > ended_before else ()

    def nodes_changed(self, cluster: Cluster, now: float) -> None:
        """Machines come, or offer something else; one that has gone is empty before long."""
        before = self._at.machines[:, : kernel.NEXT].copy()
        self._offer(cluster)
        offered = self._at.machines[: len(before), : kernel.NEXT]
        for machine in np.flatnonzero((offered != before).any(axis=1)):
            kernel.relieve(self._places.numbers, int(machine), now)
        self._look_ahead()

    def _look_ahead(self) -> None:
        """Find when use changes next, or handle what has changed; asked many times."""
        if self._at.heap.size:
            self.next_seconds = float(self._at.machines[self._at.heap[0], kernel.NEXT])

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
        machines = np.full((more, kernel.MACHINE_COLUMNS), np.inf)
        machines = np.concatenate((self._at.machines, machines))
        for node in nodes:
            row = machines[self._machine_of[node.name]]
            row[kernel.CPUS] = node.total.cpus
            row[kernel.EVICTS_AT] = node.total.memory_bytes * EVICTION_SHARE
        first = np.concatenate((self._at.first, np.full(more, kernel.NONE)))
        heap, due = np.empty((2, len(machines)), np.int64)
        self._replace(machines=machines, first=first, heap=heap, due=due)
        kernel.arrange(self._places.numbers)

    def _replace(self, **tables: NDArray[Any]) -> None:
        """Go on with other tables in the place of these."""
        self._at = self._at._replace(**tables)
        self._places = Places(*self._at)

    def _begin(
        self, allocation: Allocation, task: int, node: str, job: Job, begins: float, stretch: float
    ) -> int:
        """The slot of a task that begins now or, after a delay, later."""
        if not self._free:
            self._double()
        slot = self._free.pop()
        first, end = self._use.bounds[allocation.job_id, allocation.stage][task : task + 2]
        request = _stage_of(job, allocation).request
        row, links = self._at.tasks[slot], self._at.links[slot]
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
        kernel.begin(self._places.numbers, slot, self._machine_of[node], begins)
        return slot

    def _double(self) -> None:
        """Make room for twice as many tasks."""
        tasks, links = self._at.tasks, self._at.links
        rows = len(tasks)
        self._replace(
            tasks=np.concatenate((tasks, np.zeros_like(tasks))),
            links=np.concatenate((links, links)),
            on=np.empty(2 * rows, np.int64),
            news=np.empty((2 * rows * kernel.MOST_NEWS_OF_A_TASK, kernel.NEWS_COLUMNS)),
        )
        self._free += range(rows, 2 * rows)

    def _number(self, slot: int) -> int:
        return int(self._at.links[slot, kernel.NUMBER])

    def _work(self, slot: int, now: float) -> float:
        """Cpu seconds that a task has done by now."""
        row = self._at.tasks[slot]
        work = float(row[kernel.WORK])
        if self._at.links[slot, kernel.ON] == kernel.NONE:
            return work
        going = (now - row[kernel.SINCE]) * row[kernel.PACE]
        return work + float(min(going, row[kernel.REMAINING]) * row[kernel.DEMAND])


def _stage_of(job: Job, allocation: Allocation) -> Stage:
    """The stage that its tasks are of."""
    return job.stage(allocation.stage) if allocation.stage else job.stages[0]


@register("execution", "shared_nodes")
def shared_nodes(_parameters: NoParameters) -> Callable[..., SharedMachines]:
    """Tasks share the cpus and the memory of their node by what a usage table says they use."""
    return _shared_machines


def _shared_machines(
    workload: Workload, job_of: Callable[[str], Job], cluster: Cluster, *others: Any, **options: Any
) -> SharedMachines:
    """Machines with the truth of a workload; raises ``InputError`` as ``real_use`` does."""
    return SharedMachines(real_use(workload, cluster), job_of, cluster, *others, **options)
