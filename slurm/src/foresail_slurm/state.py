"""State of a Slurm cluster, and what is known of its past, by the rows of its commands.

Partitions that share nodes, also by way of others, are one account of nodes: none counts twice. A
job of which not all is understood is left aside: counted, where it may start, but not forecast.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from foresail.distributions.basic import Point
from foresail.model.cluster import Placement, Resources
from foresail.model.event import EndedBecause, Outcome
from foresail.model.job import Job, Stage
from foresail.model.view import PendingJob, RunningJob
from foresail.record.job_life import EndedAttempt, JobHistory
from foresail.traces.readers.slurm import attempts_of
from foresail.traces.reading import Notes
from foresail_slurm.commands import (
    MEBIBYTE,
    NOTHING,
    NodeRow,
    QueueRow,
    limit_seconds,
    moment,
    number,
    resources_of,
)

_NO_LIMIT_SECONDS: Final = 365 * 86_400.0  # as Slurm plans without a limit
_USABLE: Final = frozenset({"idle", "mixed", "allocated", "completing", "planned"})
_OUT: Final = {"drain", "fail", "maintenance", "maint", "not_responding", "reserved"}
"""States of nodes on which jobs start, and flags of those on which none does."""

_PLAIN: Final = frozenset({"None", "Priority", "Resources", "BeginTime", "Cleaning"})
_KEPT_BACK: Final = re.compile("JobH.*|Dependency.*|Partition.+|Invalid.*|Bad.*|.*NotAllowed")
"""Reasons of jobs that start soon, and of those that start at no time that follows from a queue."""

WHOLE_NODES: Final = "takes whole nodes"
_WISHES: Final = ("Feature", "Licenses", "Reservation", "ReqNodes", "excluded", "Dependency")
ENDED: Final = {
    **dict.fromkeys(("FAILED", "OUT_OF_MEMORY", "DEADLINE", "BOOT_FAIL"), EndedBecause.FAILED),
    **{each: EndedBecause(each.lower()) for each in ("COMPLETED", "CANCELLED", "PREEMPTED")},
    "TIMEOUT": EndedBecause.LIMIT,
    "NODE_FAIL": EndedBecause.LOST,
    "REQUEUED": EndedBecause.REVOKED,
}
"""States of accounting that are the end of an attempt; those cut short would have run longer."""


@dataclass(frozen=True, slots=True)
class SlurmState:
    """Cluster at a moment: room and jobs by account of nodes (``a,b`` of two partitions)."""

    now: float
    room: Mapping[str, Resources]
    jobs: Mapping[str, Job]
    """All that wait and run, by id."""
    running: Mapping[str, Sequence[RunningJob]]
    waiting: Mapping[str, Sequence[PendingJob]]
    """Jobs that wait, in the order in which Slurm tries them."""
    aside: Mapping[str, str]
    """Reasons for which nothing is forecast of some that wait, by id."""
    estimates: Mapping[str, float | None]
    """Starts of all that wait as Slurm expects them (Unix seconds), by id."""
    reasons: Mapping[str, str]
    """Slurm's word for why each that waits does, by id."""


def state_of(queue: Sequence[QueueRow], nodes: Sequence[NodeRow], now: float) -> SlurmState:
    """Return how a cluster stands by its rows; raises ``InputError`` where one makes no sense."""
    accounts = accounts_of(nodes)
    tiers = {row.PartitionName: number(row.PriorityTier) for row in nodes}
    exclusive = {row.PartitionName for row in nodes if row.OverSubscribe == "EXCLUSIVE"}
    by_name = {row.NodeList: row for row in nodes}
    room = dict.fromkeys(accounts.values(), Resources())
    for node in by_name.values():
        used, *_, cpus = map(number, node.CPUsState.split("/"))
        whole = size_of(node)
        share = 1.0 if is_used(node) else used / max(cpus, 1.0)
        room[accounts[node.PartitionName]] += whole * share
    sizes = Counter(accounts[row.PartitionName] for row in by_name.values())
    sizes |= Counter(row.PartitionName for row in nodes)
    running: dict[str, list[RunningJob]] = {}
    waiting: list[tuple[float, float, list[int], str, Job]] = []
    jobs, aside, estimates, reasons = {}, {}, {}, {}
    for row in queue:
        waits, job_id = row.StateCompact == "PD", row.JobArrayID
        partition = next((p for p in row.Partition.split(",") if p in accounts), None)
        came = max(moment(each) or 0.0 for each in (row.SubmitTime, row.EligibleTime))
        names = row.UserName, row.Account, row.QOS, partition or row.Partition, row.Name
        stages = _stages(resources_of(row.tres_alloc)[0])
        job = jobs[job_id] = Job(job_id, came, stages, limit_seconds(row.TimeLimit), *names)
        if waits:
            estimates[job_id], reasons[job_id] = moment(row.StartTime), row.Reason
            if why := _why_aside(row, partition, accounts, sizes):
                aside[job_id] = why
            elif partition in exclusive or row.OverSubscribe == "NO":
                aside[job_id] = WHOLE_NODES
        if partition is None or (waits and _KEPT_BACK.fullmatch(row.Reason)):
            continue
        account = accounts[partition]
        if waits:
            order = -tiers[partition], -number(row.PriorityLong)
            waiting.append((*order, [*map(int, re.findall(r"\d+", job_id))], account, job))
        else:
            begun = min(moment(row.StartTime) or now, now)
            running.setdefault(account, []).append(_running(job, begun, account))
    waiting.sort(key=lambda each: each[:3])
    queues: dict[str, list[PendingJob]] = {}
    for *_, account, job in waiting:
        line, planned = queues.setdefault(account, []), _planned(job)
        line.append(PendingJob(job, len(line), Point(planned), planned))
    return SlurmState(now, room, jobs, running, queues, aside, estimates, reasons)


def history_of(table: pl.DataFrame) -> JobHistory:
    """Return the latest attempts that began and have ended, as what became of a run's jobs."""
    history = JobHistory()
    begun = pl.col("start").is_not_null() & pl.col("end").is_not_null()
    attempts = attempts_of(table, Notes(Path("sacct"))).filter(
        begun, pl.col("state").is_in([*ENDED])
    )
    latest = attempts.sort("end", maintain_order=True).tail(4_000)  # learning takes a second or two
    for row in latest.iter_rows(named=True):
        start, came = row["start"], min(row["submit_seconds"], row["start"])
        names = (row[name] for name in ("user", "group", "queue", "partition", "executable"))
        asked = Resources(row["tasks"], row["tasks"] * (row["memory_bytes_per_task"] or 0.0))
        job = Job(row["job_id"], came, _stages(asked), row["requested_seconds"], *names)
        outcome = Outcome(job.job_id, start, max(start, row["end"]), ENDED[row["state"]])
        ran = _running(job, start, job.partition or "")
        history.past.append(EndedAttempt(ran, outcome, _planned(job)))
    jobs = sorted((each.job for each in history.past), key=lambda job: job.submit_seconds)
    history.submitted.update((job.job_id, job) for job in jobs)
    return history


def is_used(node: NodeRow) -> bool:
    """Return whether jobs start on a node."""
    state, *flags = re.split(r"[~#@^%$!*+-]+", node.StateComplete.lower())
    return state in _USABLE and _OUT.isdisjoint(flags)


def size_of(node: NodeRow) -> Resources:
    """Return the cpus and the memory of a node."""
    return Resources(number(node.CPUsState.split("/")[-1]), number(node.Memory) * MEBIBYTE)


def accounts_of(nodes: Iterable[NodeRow]) -> dict[str, str]:
    """Return the account of each partition: all that share nodes with it, joined by commas."""
    groups: dict[str, set[str]] = {}
    first: dict[str, str] = {}
    for row in nodes:
        own = groups.setdefault(row.PartitionName, {row.PartitionName})
        other = groups[first.setdefault(row.NodeList, row.PartitionName)]
        if own is not other:
            own |= other
            groups.update(dict.fromkeys(other, own))
    return {name: ",".join(sorted(group)) for name, group in groups.items()}


def _why_aside(
    row: QueueRow, partition: str | None, accounts: Mapping[str, str], sizes: Mapping[str, int]
) -> str | None:
    """Return why nothing is forecast of a job that waits; None if it is like any other."""
    if partition is None or len({accounts.get(each) for each in row.Partition.split(",")}) > 1:
        return f"may run in partitions that share no nodes: {row.Partition[:60]!r}"
    if sizes[partition] < sizes[accounts[partition]]:
        return f"may use some of the nodes of {accounts[partition]} only"
    if "+" in row.JobArrayID:
        return "is part of a heterogeneous job"
    for field in _WISHES:
        if getattr(row, field) not in NOTHING:
            return f"asks for {field.lower()}: {getattr(row, field)[:60]!r}"
    asked, others = resources_of(row.tres_alloc)
    if others or not asked.cpus:
        return f"needs {others[0][:60]!r}" if others else "says of no cpus it needs"
    return None if row.Reason in _PLAIN else f"is kept back ({row.Reason[:60]})"


def _stages(asked: Resources) -> tuple[Stage]:
    """Return tasks of a cpu each: nobody says how many go to which node."""
    tasks = max(1, int(asked.cpus))
    return (Stage(tasks, asked * (1.0 / tasks)),)


def _planned(job: Job) -> float:
    return _NO_LIMIT_SECONDS if job.requested_seconds is None else job.requested_seconds


def _running(job: Job, start: float, account: str) -> RunningJob:
    placement, planned = Placement.whole(account, job.tasks), _planned(job)
    return RunningJob(job, start, 0, placement, Point(planned), start + planned, ours=False)
