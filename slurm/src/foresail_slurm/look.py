"""Look at a Slurm cluster: its jobs, nodes and order at a moment, in the model's terms."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Final, TypeAlias

from foresail.model.cluster import Cluster, Node, Partition, Placement, Resources
from foresail.model.errors import InputError
from foresail.model.job import DeadlineValue, Job, Stage, StartConditions
from foresail.model.words import PLACE_IN_QUEUE
from foresail.record.job_life import EndedAttempt
from foresail_slurm.commands import (
    NOTHING,
    LifeRow,
    NodeRow,
    QueueRow,
    nodes_asked,
    read_accounting,
    read_lives,
    read_nodes,
    read_queue,
)
from foresail_slurm.state import (
    WHOLE_NODES,
    SlurmState,
    accounts_of,
    history_of,
    is_used,
    size_of,
    state_of,
)

_LATE_SECONDS: Final = 60.0
"""Accounting is asked about so much more than what is new: times are whole seconds, and late."""

ReadAs: TypeAlias = Callable[[QueueRow, LifeRow | None], QueueRow]
"""Reading of a row of the queue, by where that job stands."""

_MOST_WORTH: Final = 10.0
_WORTH: Final = re.compile(
    r"foresail +deadline=(\S{1,40})(?: +worth=(\d{1,9}(?:\.\d{1,9})?))? *", re.ASCII
)
_NARROWEST: Final = 1e-6
"""Places nearer to each other are given anew, to all."""


@dataclass(frozen=True)
class Look:
    """Output of Slurm's commands at one moment."""

    now: float
    since_seconds: float
    """Time from which on it is new."""
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
        return cls(now, since_seconds, _with_wishes(state, lives, nodes), lives, nodes)

    @cached_property
    def accounts(self) -> Mapping[str, str]:
        """Account of nodes by partition."""
        return accounts_of(self.nodes)

    @cached_property
    def widest_cpus(self) -> float:
        """Cpus of the largest node."""
        return max((size_of(row).cpus for row in self.nodes), default=0.0)

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
            features = {each: "yes" for each in row.Features.split(",") if each not in NOTHING}
            some[row.NodeList] = Node(row.NodeList, size_of(row), features)
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


def worth_of(life: LifeRow) -> DeadlineValue | None:
    """Return until when a job is worth what by its comments; None where these do not say.

    A user's counts for no more than 10. Raises ``InputError`` if it is not understood.
    """
    for text, most in ((life.admin_comment, math.inf), (life.comment, _MOST_WORTH)):
        if not text.startswith("foresail "):
            continue
        found = _WORTH.fullmatch(text)
        with suppress(ValueError, OverflowError):
            if found is not None:
                due = datetime.fromisoformat(found[1]).timestamp()
                return DeadlineValue(due, min(float(found[2] or 1.0), most))
        form = "foresail deadline=2026-12-01T18:00 worth=3"
        raise InputError("is not understood", field="comment", value=text[:80], expected=form)
    return None


def _with_wishes(
    state: SlurmState, lives: Mapping[str, LifeRow], nodes: Sequence[NodeRow]
) -> SlurmState:
    """Return the state with jobs that wait as their comments and shapes have them.

    Tasks of several cpus stay together; whole nodes, where all of a partition are alike, are tasks.
    """
    sizes: dict[str | None, set[Resources]] = {}
    for row in nodes:
        sizes.setdefault(row.PartitionName, set()).add(size_of(row))
    jobs, aside = {**state.jobs}, {**state.aside}
    for job_id in state.estimates.keys() & lives.keys():
        job, life, value = jobs[job_id], lives[job_id], None
        with suppress(InputError):  # which is said when the job comes
            value = worth_of(life)
        (stage,), alike = job.stages, sizes.get(job.partition, ())
        each = max(1, int(life.cpus_per_task)) if life.cpus_per_task.isdecimal() else 1
        if aside.get(job_id) == WHOLE_NODES and len(alike) == 1:
            (whole,) = alike
            count = math.ceil(stage.tasks / each / max(1.0, whole.cpus // each))
            held = math.ceil(stage.total.memory_bytes / max(1.0, whole.memory_bytes))
            stage = Stage(max(nodes_asked(life), count, held), whole)
            del aside[job_id]
        elif each > 1 and stage.tasks % each == 0:
            stage = Stage(stage.tasks // each, stage.request * each)
        if value is not None or stage is not job.stages[0]:
            jobs[job_id] = replace(job, stages=(stage,), value=value)
    return replace(state, jobs=jobs, aside=aside)


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
