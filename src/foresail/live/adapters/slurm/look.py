"""Look at a Slurm cluster: its jobs, nodes and order at a moment, in the model's terms."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeAlias

from foresail.live.adapters.slurm.commands import (
    LifeRow,
    NodeRow,
    QueueRow,
    read_accounting,
    read_lives,
    read_nodes,
    read_queue,
)
from foresail.live.adapters.slurm.state import (
    SlurmState,
    accounts_of,
    history_of,
    is_used,
    size_of,
    state_of,
)
from foresail.model.cluster import Cluster, Node, Partition, Placement, Resources
from foresail.model.errors import InputError
from foresail.model.job import Job, StartConditions
from foresail.model.words import PLACE_IN_QUEUE
from foresail.record.job_life import EndedAttempt

_LATE_SECONDS: Final = 60.0
"""Accounting is asked about so much more than what is new: times are whole seconds, and late."""

ReadAs: TypeAlias = Callable[[QueueRow, LifeRow | None], QueueRow]
"""Reading of a row of the queue, by where that job stands."""

_NARROWEST: Final = 1e-6
"""Places nearer to each other are given anew, to all."""


@dataclass(frozen=True)
class Look:
    """Output of Slurm's commands at one moment."""

    now: float
    since_seconds: float
    """From when on it is new."""
    state: SlurmState
    lives: Mapping[str, LifeRow]
    nodes: Sequence[NodeRow]

    @classmethod
    def taken(cls, now: float, since_seconds: float, read_as: ReadAs = lambda row, _: row) -> Look:
        """Look now, first at nodes: what these take along is seen to have ended.

        ``read_as`` changes how rows of the queue are read. Raises ``ConnectionError`` if Slurm does
        not answer.
        """
        try:
            nodes, queue = read_nodes(), read_queue()
            lives = {row.JobArrayID: row for row in read_lives()}
            state = state_of([read_as(row, lives.get(row.JobArrayID)) for row in queue], nodes, now)
        except InputError as error:
            raise ConnectionError(str(error)) from error
        return cls(now, since_seconds, state, lives, nodes)

    @cached_property
    def accounts(self) -> Mapping[str, str]:
        """Account of nodes by partition."""
        return accounts_of(self.nodes)

    @cached_property
    def past(self) -> Mapping[str, Sequence[EndedAttempt]]:
        """Attempts that ended of late by job, in order; none without accounting."""
        attempts: dict[str, list[EndedAttempt]] = {}
        try:
            rows = read_accounting(self.since_seconds - _LATE_SECONDS)
        except InputError:
            return attempts
        for each in history_of(rows).past:
            attempts.setdefault(each.job.job_id, []).append(each)
        return attempts

    def cluster(self) -> Cluster:
        """Return all nodes, those of partitions that share some as one record."""
        records: dict[str, dict[str, Node]] = {}
        for row in self.nodes:
            some = records.setdefault(self.accounts[row.PartitionName], {})
            some[row.NodeList] = Node(row.NodeList, size_of(row))
        return Cluster(
            tuple(
                Partition(name, sum((each.total for each in some.values()), Resources()), nodes)
                for name, some in records.items()
                for nodes in [tuple(some.values())]
            )
        )

    def out_of_use(self) -> Iterator[tuple[str, bool]]:
        """Yield the nodes on which nothing starts, each once, and whether it is down."""
        for name, row in {row.NodeList: row for row in self.nodes}.items():
            if not is_used(row):
                yield name, row.StateComplete.lower().startswith(("down", "error", "unknown"))

    def placement(self, job: Job, nodes: Sequence[str]) -> Placement | None:
        """Return where a job runs, its tasks shared out evenly; None if its partition has gone."""
        account = self.accounts.get(job.partition or "")
        if account is None:
            return None
        known = {row.NodeList for row in self.nodes if self.accounts[row.PartitionName] == account}
        if not nodes or not known.issuperset(nodes) or len(nodes) > job.tasks:
            return Placement.whole(account, job.tasks)
        each, more = divmod(job.tasks, len(nodes))
        some = tuple((name, each + (at < more)) for at, name in enumerate(nodes))
        return Placement(((account, job.tasks),), some)

    def jobs(self, known: Mapping[str, Job]) -> Mapping[str, Job]:
        """Return all that wait and run, with places in the queue, few of which differ from known.

        What may begin only later has a condition, and was submitted before now.
        """
        jobs = {**self.state.jobs}
        for line in self.state.waiting.values():
            order = [each.job.job_id for each in line]
            before = {each: place_of(known[each]) for each in order if each in known}
            for job_id, place in places(order, before).items():
                jobs[job_id] = replace(jobs[job_id], attributes={PLACE_IN_QUEUE: repr(place)})
        for job_id, job in jobs.items():
            if job.submit_seconds > self.now:
                later = StartConditions(begin_seconds=job.submit_seconds)
                jobs[job_id] = replace(job, submit_seconds=self.now, conditions=later)
        return jobs


def place_of(job: Job) -> float | None:
    """Return the place of a job in the queue, if one was given."""
    place = job.attributes.get(PLACE_IN_QUEUE)
    return None if place is None else float(place)


def places(order: Sequence[str], before: Mapping[str, float | None]) -> dict[str, float]:
    """Return places that ascend in this order; all but the fewest are those of before."""
    tails: list[tuple[float, int]] = []  # ends of ascending rows of each length
    links: dict[int, int] = {}
    for at, job_id in enumerate(order):
        place = before.get(job_id)
        if place is not None:
            length = bisect_left(tails, (place, -1))
            links[at] = tails[length - 1][1] if length else -1
            tails[length : length + 1] = [(place, at)]
    kept, at = [len(order)], tails[-1][1] if tails else -1
    while at >= 0:
        kept.append(at)
        at = links[at]
    found: dict[str, float] = {}
    low: float | None = None
    last = -1
    for at in reversed(kept):
        high = before[order[at]] if at < len(order) else None
        count = at - last
        if low is None and high is None:
            low = -1.0
        first = high - count if low is None else low  # type: ignore[operator]
        step = 1.0 if low is None or high is None else (high - low) / count
        if step < _NARROWEST:
            return {job_id: float(number) for number, job_id in enumerate(order)}
        found.update((order[last + n], first + n * step) for n in range(1, count))
        if high is not None:
            found[order[at]] = low = high
        last = at
    return found
