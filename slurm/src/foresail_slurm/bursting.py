"""Bursting: jobs that find no room in a fixed partition wait for it, or go to rented nodes.

Slurm starts all jobs; from here they are moved, as a waiting policy decides (``foresail.cloud``),
between three partitions: the fixed one, one of rented nodes, and one of the same nodes in which
jobs are tried, with a limit as a coarse backstop. Each decision is noted before its order is given,
as an operator's rights do for no comment that users cannot change; and each order is one that may
be given twice, so that rows and notes say what is to come, wherever the one who gives them died.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from foresail.cloud.waiting.kernels.waiting_choice import (
    RENT,
    SPECULATE,
    DelayCosts,
    choose,
    choose_again,
)
from foresail.cloud.waiting.simulating import WaitingPolicy
from foresail.model.distribution import Floats
from foresail.model.errors import InputError
from foresail.model.words import duration
from foresail_slurm.commands import (
    NodeRow,
    framed_rows,
    limit_seconds,
    moment,
    output,
    resources_of,
)
from foresail_slurm.state import is_used

_USUAL_SHARE: Final = 0.1
"""Share of the price of its nodes that an hour of a job's waiting is worth."""

_NO_ROOM: Final = frozenset({"Resources", "Priority"})
"""Reasons of Slurm for jobs that find no room now."""

_NOT_THERE: Final = re.compile("Partition.*Limit|BadC.*|.*NotAllowed|Invalid.*|ReqNodeNot.*")
"""Reasons of Slurm for jobs that cannot run where they were moved."""

_CUT_SHORT: Final = "job requeued in held state"
_LEAST_BACKSTOP_SECONDS: Final = 60.0
"""Slurm ends jobs by whole minutes, after their limit."""


class BurstRow(NamedTuple):
    """Row of ``squeue`` of a job in one of the three partitions, also of one that has ended."""

    JobArrayID: str
    StateCompact: str
    Reason: str
    Partition: str
    TimeLimit: str
    SubmitTime: str
    EligibleTime: str
    StartTime: str
    RestartCnt: str
    Requeue: str
    BatchFlag: str
    tres_alloc: str

    @property
    def cpus(self) -> float:
        """Cpus that it asks for or has."""
        return resources_of(self.tres_alloc)[0].cpus

    @property
    def can_be_tried(self) -> bool:
        """Whether it can be cut and run again."""
        return self.Requeue == self.BatchFlag == "1"


class Went(StrEnum):
    """Decision on a job."""

    WAITS = "waits"
    RENTED = "rented"
    TRIED = "tried"
    CUT = "cut"
    """It was tried, and was not done in time."""
    STAYS = "stays"
    """It cannot run on rented nodes."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Decision on a job, as it is noted.

    Parameters
    ----------
    went, place
        What was decided, and the partition to which the job goes.
    at, restarts
        Moment (Unix seconds) of the decision, and how often the job had been requeued by then.
    since
        Moment from which on it waits.
    runs, waits
        Seconds for which it was believed to run, and to wait in the fixed partition.
    limit
        Its own limit in minutes, or UNLIMITED: in a trial it may have a shorter one.
    trial
        Seconds after which a trial is cut.
    """

    went: Went
    place: str
    at: float
    restarts: int
    since: float
    runs: float
    waits: float
    limit: str
    trial: float


class Journal:
    """Decisions on jobs, a line each, in a file that outlives who took them."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "slurm-burst.jsonl"
        self._read()

    def _read(self) -> None:
        text = self._file.read_bytes() if self._file.exists() else b""
        self._whole = text.rfind(b"\n") + 1  # a line that is not whole was not acted on
        self.decisions: list[tuple[str, Mark]] = []
        for at, line in enumerate(text[: self._whole].splitlines(), start=1):
            try:
                row = json.loads(line)
                self.decisions.append((row.pop("job"), Mark(Went(row.pop("went")), **row)))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise InputError("is no decision of burst", source=self._file, line=at) from error
        self.marks = dict(self.decisions)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep it open for notes; raises ``InputError`` if another process does."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("ab") as self._notes:
            try:
                fcntl.flock(self._notes, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise InputError("is in use by another process", source=self._file) from error
            self._read()
            self._notes.truncate(self._whole)
            yield

    def note(self, job_id: str, mark: Mark) -> None:
        """Write a decision down for good."""
        self._notes.write(f"{json.dumps({'job': job_id, **asdict(mark)})}\n".encode())
        self._notes.flush()
        os.fsync(self._notes.fileno())
        self.marks[job_id] = mark


@dataclass(frozen=True, slots=True)
class Belief:
    """Runtime and quantiles of the wait of a job (seconds), as ``choose`` takes them."""

    runs: float
    waits: Floats


Beliefs: TypeAlias = Callable[[str, frozenset[str]], Belief | None]
"""Belief about a job by its id, once others have left the fixed partition; None if it has gone."""


class Step(NamedTuple):
    """A decision to note, if one was taken; then an order to ``scontrol``, if any; in words."""

    job_id: str
    mark: Mark | None
    words: tuple[str, ...]
    sentence: str


@dataclass(frozen=True)
class Bursting:
    """Decisions of a waiting policy between partitions.

    ``tried`` is empty where none is tried; ``tried_limit_seconds`` is the limit there.
    """

    fixed: str
    rented: str
    tried: str
    policy: WaitingPolicy
    tried_limit_seconds: float = math.inf

    def __post_init__(self) -> None:
        trial = self.policy.speculation_seconds
        names = [each for each in (self.fixed, self.rented, self.tried) if each]
        if len({*names}) < len(names):
            raise InputError("partitions are not distinct", value=", ".join(names))
        if trial and not self.tried:
            raise InputError("is missing", field="--tried", expected="a partition, for its trials")
        if trial and self.tried_limit_seconds < trial + _LEAST_BACKSTOP_SECONDS:
            raise InputError(
                "ends jobs before they are cut",
                field="--tried",
                value=f"{self.tried}, a limit of {duration(self.tried_limit_seconds)}",
                expected=f"a partition with MaxTime above {duration(trial)} by a minute or more",
            )

    def steps(
        self,
        rows: Sequence[BurstRow],
        nodes: Sequence[NodeRow],
        marks: Mapping[str, Mark],
        beliefs: Beliefs,
        now: float,
    ) -> Iterator[Step]:
        """Yield what is to be done at a moment, by what was decided before (``marks``)."""
        away = (self.rented, self.tried)
        there = {each.NodeList: each for each in nodes if each.PartitionName in away}
        room = sum(map(_free_cpus, there.values()))
        room -= sum(row.cpus for row in rows if row.Partition in away and row.StateCompact == "PD")
        gone: set[str] = set()
        for row in rows:
            mark = marks.get(row.JobArrayID)
            if mark is not None and (step := self._followed(row, mark, now)) is not None:
                yield step
            elif self._is_open(row, mark):
                found = self._decided(row, mark, beliefs, frozenset(gone), now)
                if found is None or found == mark:
                    continue
                if found.went is Went.WAITS:
                    said = f"{_believed(found)}: waits for {self.fixed}"
                    yield Step(row.JobArrayID, found, (), said)
                elif row.cpus <= room:
                    room -= row.cpus
                    gone.add(row.JobArrayID)
                    yield self._sent(row, found, self._words(found, now))

    def _followed(self, row: BurstRow, mark: Mark, now: float) -> Step | None:
        """Return what follows from a decision that was taken before; None if nothing does."""
        job_id, waits, is_cut = row.JobArrayID, row.StateCompact == "PD", row.Reason == _CUT_SHORT
        is_home, is_same = row.Partition == self.fixed, mark.restarts == int(row.RestartCnt)
        if row.Partition == self.tried and mark.went in (Went.TRIED, Went.CUT):
            begun = moment(row.StartTime)
            if row.StateCompact == "R" and begun is not None and now - begun >= mark.trial:
                said = f"is not done after {duration(now - begun)}: cut"
                return Step(job_id, None, ("requeuehold", "Incomplete", job_id), said)
            if row.StateCompact == "TO" and _minutes(row.TimeLimit) != mark.limit:
                said = "was ended by the backstop, not by its own limit: requeued"
                return Step(job_id, None, ("requeuehold", job_id), said)
            if waits and is_cut:
                back = replace(mark, went=Went.CUT, place=self.fixed, at=now, since=now)
                back = replace(back, restarts=int(row.RestartCnt))
                back = back if mark.went is Went.TRIED else mark  # as it was taken, if it was
                return self._sent(row, back, f"goes to {self.fixed} after its trial")
        if is_home and waits and mark.went is Went.CUT and is_cut:
            return Step(job_id, None, ("release", job_id), f"is let go in {self.fixed}")
        if is_home and waits and is_same and row.Reason in _NO_ROOM and mark.place != self.fixed:
            return self._sent(row, mark, self._words(mark, now))  # it was not sent, or came back
        was_sent = not is_home and mark.went not in (Went.WAITS, Went.CUT)
        if was_sent and waits and _NOT_THERE.fullmatch(row.Reason):
            stays = replace(mark, went=Went.STAYS, place=self.fixed, at=now)
            stays = stays if mark.went is not Went.STAYS else mark
            return self._sent(row, stays, f"cannot run there ({row.Reason}): goes back")
        return None

    def _is_open(self, row: BurstRow, mark: Mark | None) -> bool:
        """Return whether a job waits in the fixed partition for want of room, and may be moved."""
        waits = row.StateCompact == "PD" and row.Reason in _NO_ROOM
        return row.Partition == self.fixed and waits and (mark is None or mark.went != Went.STAYS)

    def _decided(
        self, row: BurstRow, mark: Mark | None, beliefs: Beliefs, gone: frozenset[str], now: float
    ) -> Mark | None:
        """Return the decision on a job that finds no room; None if it has gone."""
        rules, restarts = self.policy.rules, int(row.RestartCnt)
        if not row.can_be_tried:
            rules = rules._replace(speculation_seconds=0.0)
        if mark is not None and mark.restarts != restarts:
            mark = None
        if mark is not None and mark.went is Went.WAITS:
            is_over = now - mark.since >= rules.patience_seconds
            return replace(mark, went=Went.RENTED, place=self.rented, at=now) if is_over else mark
        belief = beliefs(row.JobArrayID, gone)
        if belief is None:
            return None
        costs = DelayCosts(row.cpus, 0.0, _USUAL_SHARE * row.cpus)
        chooses = choose if mark is None else choose_again
        choice = chooses(rules, costs, False, belief.runs, belief.waits)
        went = {RENT: Went.RENTED, SPECULATE: Went.TRIED}.get(choice, Went.WAITS)
        place = {RENT: self.rented, SPECULATE: self.tried}.get(choice, self.fixed)
        came = max(moment(each) or 0.0 for each in (row.SubmitTime, row.EligibleTime))
        since = came if mark is None else mark.since
        waits, limit = float(np.mean(belief.waits)), _minutes(row.TimeLimit)
        trial = self.policy.speculation_seconds
        return Mark(went, place, now, restarts, since, belief.runs, waits, limit, trial)

    def _words(self, mark: Mark, now: float) -> str:
        if mark.went is Went.TRIED:
            return f"{_believed(mark)}: is tried in {self.tried} for {duration(mark.trial)}"
        waited = f"has waited for {duration(now - mark.since)}"
        return f"{waited}; {_believed(mark)}: goes to {self.rented}"

    def _sent(self, row: BurstRow, mark: Mark, said: str) -> Step:
        """Return what moves a job; in a trial its limit is that of the partition."""
        words = ["update", f"JobId={row.JobArrayID}", f"Partition={mark.place}"]
        most = self.tried_limit_seconds if mark.went is Went.TRIED else math.inf
        own = math.inf if mark.limit == "UNLIMITED" else 60.0 * int(mark.limit)
        limit = mark.limit if own <= most else f"{most / 60.0:.0f}"
        if limit != _minutes(row.TimeLimit):
            words.append(f"TimeLimit={limit}")
        if mark.went is Went.CUT:
            words.append("StartTime=now")
        return Step(row.JobArrayID, mark, tuple(words), said)


def _believed(mark: Mark) -> str:
    return f"is believed to wait {duration(mark.waits)} and to run {duration(mark.runs)}"


def read_burst(*partitions: str) -> list[BurstRow]:
    """Return jobs of partitions, as they came; raises ``InputError`` if Slurm does not answer."""
    names = ",".join(filter(None, partitions))
    words = "squeue", "-a", "-h", "-r", "-t", "all", "-p", names
    rows = map(BurstRow._make, framed_rows(BurstRow._fields, *words))
    return sorted(rows, key=lambda row: [*map(int, re.findall(r"\d+", row.JobArrayID))])


def limit_of_partition(name: str) -> float:
    """Return the limit of jobs in a partition (seconds); raises ``InputError`` if it is unknown."""
    limits = dict(map(str.split, output(["sinfo", "-a", "-h", "-o", "%R %l"]).splitlines()))
    if name not in limits:
        raise InputError("is no partition of this cluster", value=name)
    limit = limit_seconds(limits[name])
    return math.inf if limit is None else limit


def _free_cpus(node: NodeRow) -> float:
    used, *_, cpus = map(float, node.CPUsState.split("/"))
    return cpus - used if is_used(node) else 0.0


def _minutes(limit: str) -> str:
    seconds = limit_seconds(limit)
    return "UNLIMITED" if seconds is None else f"{max(1.0, seconds / 60.0):.0f}"
