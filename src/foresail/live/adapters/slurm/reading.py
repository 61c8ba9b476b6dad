"""State of a Slurm cluster and its past, read with commands that any user may run.

Names are free text: so behind each field stands a marker, drawn for each call, that no name has.
22.05 and 24.11 print the same fields so; their JSON differs, and takes ten times as long.
Partitions that share nodes, also by way of others, are one account of nodes: none counts twice. A
job of which not all is understood is left aside: counted, where it may start, but not foretold.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
from collections import Counter, namedtuple
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from foresail.distributions.basic import Point
from foresail.model.cluster import Placement, Resources
from foresail.model.errors import InputError
from foresail.model.event import EndedBecause, Outcome
from foresail.model.job import Job, Stage
from foresail.model.view import PendingJob, RunningJob
from foresail.record.job_life import EndedAttempt, JobHistory

_SAME: Final = {"LC_ALL": "C", "SLURM_TIME_FORMAT": "%s"}
_OWN_WISHES: Final = ("SQUEUE_", "SINFO_", "SACCT_")  # variables that change what is printed
_STATES: Final = "PENDING,RUNNING,SUSPENDED,CONFIGURING,COMPLETING,STOPPED,SIGNALING,RESIZING"
NOTHING: Final = frozenset({"", "N/A", "NONE", "(null)", "Unknown", "None", "Invalid", "n/a"})
_UNLIMITED: Final = NOTHING | {"UNLIMITED", "INVALID", "NOT_SET", "Partition_Limit", "infinite"}
_CLOCK: Final = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)")
_AMOUNT: Final = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)")
_MEBIBYTE: Final = 1024.0**2
_UNITS: Final = {unit: 1024.0**power for power, unit in enumerate(("", *"KMGTP"))}
_COUNTED: Final = frozenset({"cpu", "mem", "node", "billing", "energy"})

QueueRow = namedtuple(
    "QueueRow",
    "JobArrayID StateCompact Reason Partition UserName Account QOS Name tres_alloc OverSubscribe "
    "TimeLimit SubmitTime EligibleTime StartTime PriorityLong Feature Licenses Reservation "
    "ReqNodes Dependency excluded",
)
"""Row of ``squeue``: a job, or one task of an array; a short form alone has excluded nodes."""
NodeRow = namedtuple(
    "NodeRow", "NodeList PartitionName StateComplete CPUsState Memory OverSubscribe PriorityTier"
)
"""Row of ``sinfo -N``: a node in one of its partitions."""
AccountingRow = namedtuple(
    "AccountingRow",
    "JobID State User Account QOS Partition JobName ReqTRES Submit Eligible Start End TimelimitRaw",
)
"""Row of ``sacct -D -X``: an attempt of a job, or of one task of an array."""

_NO_LIMIT_SECONDS: Final = 365 * 86_400.0  # as Slurm plans without a limit
_USABLE: Final = frozenset({"idle", "mixed", "allocated", "completing", "planned"})
_OUT: Final = {"drain", "fail", "maintenance", "maint", "not_responding", "reserved"}
"""States of nodes on which jobs start, and flags of those on which none does."""

_PLAIN: Final = frozenset({"None", "Priority", "Resources", "BeginTime", "Cleaning"})
_KEPT_BACK: Final = re.compile("JobH.*|Dependency.*|Partition.+|Invalid.*|Bad.*|.*NotAllowed")
"""Reasons of jobs that start soon, and of those that start at no time that follows from a queue."""

_WISHES: Final = ("Feature", "Licenses", "Reservation", "ReqNodes", "excluded", "Dependency")
_ENDED: Final = {
    **dict.fromkeys(("FAILED", "OUT_OF_MEMORY", "DEADLINE", "BOOT_FAIL"), EndedBecause.FAILED),
    **{each: EndedBecause(each.lower()) for each in ("COMPLETED", "CANCELLED", "PREEMPTED")},
    "TIMEOUT": EndedBecause.LIMIT,
    "NODE_FAIL": EndedBecause.LOST,
    "REQUEUED": EndedBecause.REVOKED,
}
"""States of accounting that are the end of an attempt; those cut short would have run longer."""


SlurmState = namedtuple("SlurmState", "now room running waiting aside estimates")
"""Room and jobs that run and, in order, wait, by account of nodes (``a,b`` of two);
by id why nothing is foretold of some that wait, and starts of all by Slurm (Unix seconds)."""


def state_of(queue: Sequence[QueueRow], nodes: Sequence[NodeRow], now: float) -> SlurmState:
    """Return how a cluster stands by its rows; raises ``InputError`` where one makes no sense."""
    accounts = _accounts(nodes)
    tiers = {row.PartitionName: number(row.PriorityTier) for row in nodes}
    exclusive = {row.PartitionName for row in nodes if row.OverSubscribe == "EXCLUSIVE"}
    by_name = {row.NodeList: row for row in nodes}
    room = dict.fromkeys(accounts.values(), Resources())
    for node in by_name.values():
        used, *_, cpus = map(number, node.CPUsState.split("/"))
        whole = Resources(cpus, number(node.Memory) * _MEBIBYTE)
        state, *flags = re.split(r"[~#@^%$!*+-]+", node.StateComplete.lower())
        is_usable = state in _USABLE and _OUT.isdisjoint(flags)
        share = 1.0 if is_usable else used / max(cpus, 1.0)
        room[accounts[node.PartitionName]] += whole * share
    sizes = Counter(accounts[row.PartitionName] for row in by_name.values())
    sizes |= Counter(row.PartitionName for row in nodes)
    running: dict[str, list[RunningJob]] = {}
    waiting: list[tuple[float, float, list[int], str, Job]] = []
    aside, estimates = {}, {}
    for row in queue:
        waits, job_id = row.StateCompact == "PD", row.JobArrayID
        partition = next((p for p in row.Partition.split(",") if p in accounts), None)
        if waits:
            estimates[job_id] = moment(row.StartTime)
            if why := _why_aside(row, partition, accounts, sizes):
                aside[job_id] = why
            elif partition in exclusive or row.OverSubscribe == "NO":
                aside[job_id] = "takes whole nodes"
        if partition is None or (waits and _KEPT_BACK.fullmatch(row.Reason)):
            continue
        account, asked = accounts[partition], resources_of(row.tres_alloc)[0]
        came = max(moment(each) or 0.0 for each in (row.SubmitTime, row.EligibleTime))
        names = row.UserName, row.Account, row.QOS, partition, row.Name
        job = Job(job_id, came, (Stage(1, asked),), limit_seconds(row.TimeLimit), *names)
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
    return SlurmState(now, room, running, queues, aside, estimates)


def history_of(rows: Iterable[AccountingRow]) -> JobHistory:
    """Return the latest attempts that began and have ended, as what became of a run's jobs."""
    history = JobHistory()
    for row in rows:
        start, end = moment(row.Start), moment(row.End)
        because = _ENDED.get(row.State.partition(" ")[0])
        if because is None or start is None or end is None:
            continue
        came = max(moment(each) or 0.0 for each in (row.Submit, row.Eligible))
        names = row.User, row.Account, row.QOS, row.Partition, row.JobName
        asked, limit = resources_of(row.ReqTRES)[0], limit_seconds(row.TimelimitRaw)
        job = Job(row.JobID, min(came, start), (Stage(1, asked),), limit, *names)
        outcome = Outcome(row.JobID, start, max(start, end), because)
        ran = _running(job, start, row.Partition)
        history.past.append(EndedAttempt(ran, outcome, _planned(job)))
    history.past.sort(key=lambda each: each.outcome.end_seconds)
    del history.past[:-4_000]  # learning takes a second or two
    jobs = sorted((each.job for each in history.past), key=lambda job: job.submit_seconds)
    history.submitted.update((job.job_id, job) for job in jobs)
    return history


def _accounts(nodes: Iterable[NodeRow]) -> dict[str, str]:
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
    """Return why nothing is foretold of a job that waits; None if it is like any other."""
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


def _planned(job: Job) -> float:
    return _NO_LIMIT_SECONDS if job.requested_seconds is None else job.requested_seconds


def _running(job: Job, start: float, account: str) -> RunningJob:
    placement, planned = Placement.whole(account, 1), _planned(job)
    return RunningJob(job, start, 0, placement, Point(planned), start + planned, ours=False)


def output(arguments: Sequence[str], seconds: float = 60.0) -> str:
    """Run a command of Slurm, return what it prints; ``InputError`` if it fails or is too slow."""
    command = arguments[0]
    env = {k: v for k, v in os.environ.items() if not k.startswith(_OWN_WISHES)} | _SAME
    try:
        done = subprocess.run(
            arguments, stdin=subprocess.DEVNULL, capture_output=True, env=env, timeout=seconds
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(str(error)[:200], source=command, expected="Slurm") from error
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").splitlines() or [""]
        said = "".join(each for each in lines[0] if each.isprintable()).strip()
        raise InputError(said or f"failed with exit status {done.returncode}", source=command)
    return done.stdout.decode("utf-8", "replace")


def read_queue() -> list[QueueRow]:
    """Return what waits and runs; raises as ``output``."""
    mark, names = f"x{secrets.token_hex(8)}", QueueRow._fields[:-1]
    words = ["squeue", "-a", "-h", "-r"]
    asked = ",".join(f"{name.replace('_', '-')}:0{mark}" for name in names)
    rows = framed(output([*words, "-t", _STATES, "-O", asked]), mark, len(names))
    waits = framed(output([*words, "-t", "PENDING", "-o", f"%i{mark}%x{mark}"]), mark, 2)
    excluded = {row[0]: row[1] for row in waits}
    return [QueueRow._make((*row, excluded.get(row[0], ""))) for row in rows]


def read_nodes() -> list[NodeRow]:
    """Return all nodes, each once for each of its partitions; raises as ``output``."""
    mark, names = f"x{secrets.token_hex(8)}", NodeRow._fields
    asked = ",".join(f"{name}:0{mark}" for name in names)
    said = output(["sinfo", "-a", "-h", "-N", "-O", asked])
    return [*map(NodeRow._make, framed(said, mark, len(names)))]


def read_accounting(begin_seconds: float) -> list[AccountingRow]:
    """Return attempts that were there since a moment of Unix time; raises as ``output``."""
    mark, names = f"x{secrets.token_hex(8)}", AccountingRow._fields
    words = ["sacct", "-a", "-D", "-X", "-n", "-p", f"--delimiter={mark}", "-E", "now"]
    words += ["-S", f"uts{begin_seconds:.0f}", "-o", ",".join(names)]
    return [*map(AccountingRow._make, framed(output(words), mark, len(names)))]


def framed(text: str, mark: str, fields: int) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a text with a marker behind each field; ``InputError`` if it is cut off."""
    pieces = text.split(mark)
    rest = pieces.pop()
    if len(pieces) % fields or rest.strip("\n"):
        raise InputError("an output of Slurm that is not whole", value=rest[-60:])
    for begin in range(0, len(pieces), fields):
        yield (pieces[begin].removeprefix("\n"), *pieces[begin + 1 : begin + fields])


def moment(text: str) -> float | None:
    """Return a moment in Unix seconds; None where there is none (yet)."""
    return None if text in NOTHING else number(text)


def limit_seconds(text: str) -> float | None:
    """Return a limit (``1-02:03:04``, ``2:00``, or minutes) in seconds; None for no limit."""
    if text in _UNLIMITED:
        return None
    parts = _CLOCK.fullmatch(text)
    if parts is None:
        return 60.0 * number(text)
    days, hours, minutes, seconds = (int(each or 0) for each in parts.groups())
    return 60.0 * (60.0 * (24.0 * days + hours) + minutes) + seconds


def resources_of(tres: str) -> tuple[Resources, tuple[str, ...]]:
    """Return cpus and memory of a list of resources, and the names of all others."""
    amounts: dict[str, float] = {}
    for each in tres.split(",") if tres not in NOTHING else ():
        name, _, text = each.partition("=")
        known = _AMOUNT.fullmatch(text)
        if known is None:
            raise InputError("not an amount of a resource", value=each, expected="cpu=4, mem=2G")
        unit = _MEBIBYTE if name == "mem" and not known[2] else _UNITS[known[2]]
        amounts[name] = float(known[1]) * unit
    others = tuple(name for name in amounts if name not in _COUNTED)
    return Resources(amounts.get("cpu", 0.0), amounts.get("mem", 0.0)), others


def number(text: str) -> float:
    """Return a number; raises ``InputError`` if it is none."""
    if not text.replace(".", "", 1).isdecimal() or not text.isascii():
        raise InputError("not a number", value=text[:60], expected="a number in what Slurm prints")
    return float(text)
