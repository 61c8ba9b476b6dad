"""A Slurm cluster whose jobs are started from here: held as they are seen, let go when they start.

What is not understood, or not of the partitions and accounts that are decided on, is left to Slurm
and never held; nor is what somebody else has let go, or what a limit keeps from starting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from foresail.model import event as news
from foresail.model.adapter import Capabilities, JobCommand, KnownJob
from foresail.model.cluster import Placement, Resources
from foresail.model.decision import Instruction, Preempt, Start, Withdraw
from foresail.model.job import Job, Stage
from foresail_slurm import orders
from foresail_slurm.commands import LifeRow, QueueRow, nodes_asked
from foresail_slurm.look import Look
from foresail_slurm.observing import PREFIX, WAITS, SeenJob, SlurmAdapter

_PATIENCE_SECONDS: Final = 15.0
"""Longest time from letting a job go until Slurm has started it, or it is held again."""

_FIRST_PAUSE_SECONDS: Final = 10.0
_MOST_REFUSALS: Final = 3
"""A job that has not begun so many times is left to Slurm, which keeps room for it."""

_AT_ONCE: Final = 150
"""Orders that are given in one call: a second or two on a busy machine."""

_PASSES: Final = re.compile("None|Priority|Resources|BeginTime|Cleaning|(Req)?Node.*|JobHeld.*")
"""Reasons of jobs that were let go and may begin if tried again; any other is a limit."""


@dataclass(frozen=True, slots=True)
class Owned:
    """Partitions and accounts whose jobs are decided on; no accounts: those of all."""

    partitions: frozenset[str]
    accounts: frozenset[str]

    def has(self, job: Job) -> bool:
        """Return whether a job is one of these."""
        is_of_account = not self.accounts or job.group in self.accounts
        return is_of_account and job.partition in self.partitions


class DecidingAdapter(SlurmAdapter):
    """Holds the jobs that are ``owned``, and lets them go as it is instructed.

    A start counts once Slurm has begun it; one that has not begun in time is held again.
    """

    capabilities = Capabilities(
        places=True,
        preempts=True,
        changes_nodes=True,
        refuses_starts=True,
        begins_jobs=True,
        keeps_queue=True,
        brings_jobs=True,
        is_remote=True,
    )
    _share = 3.0

    def __init__(self, seen: Path, owned: Owned) -> None:
        super().__init__(seen)
        self._owned = owned
        self._alive = seen.with_name(orders.ALIVE)
        self._marks = orders.Marks(seen.parent)
        self._lives: dict[str, LifeRow] = {}
        """Jobs as they were seen last."""
        self._starts: dict[str, Placement] = {}
        """Jobs to be let go, and where."""
        self._orders: list[orders.Order] = []
        """Other orders to be given."""
        self._holds: list[orders.Order] = []
        """Orders that follow from the last look."""
        self._due_seconds = 0.0

    def resume(
        self, running: Sequence[Start], known: Sequence[KnownJob], now: float
    ) -> Sequence[news.Event]:
        """Report what is new to the log; let go what was to start, and hold what is to be held."""
        self._starts, self._orders, self._holds = {}, [], []
        events = super().resume(running, known, now)
        for each in known:
            life = self._lives.get(each.job.job_id.removeprefix(PREFIX))
            is_held_here = life and orders.is_held_here(life)
            if life and is_held_here and each.held is not orders.is_kept(life):
                self._orders.append(orders.keep(life, is_wished=each.held))
        return events

    def carry_out(self, instruction: Instruction | JobCommand, now: float) -> None:
        """Let go, stop, or do as somebody wishes; a start and a stop once more is known."""
        self.capabilities.require(instruction)
        job_id = instruction.job_id.removeprefix(PREFIX)
        entry, life = self._entries.get(job_id), self._lives.get(job_id)
        if entry is None or life is None:
            return
        match instruction:
            case Start(placement=placement, attempt=attempt) if attempt > entry.attempts:
                entry.attempts, entry.runs, entry.ours = attempt, True, True
                entry.start_seconds, entry.released_seconds = None, None
                entry.restarts = int(life.RestartCnt)
                if entry.refusals:  # it may be for one node (-N 1), which Slurm does not show
                    placement = Placement(placement.tasks_by_partition)
                self._starts[job_id] = entry.chosen = placement
                self.next_seconds = 0.0
            case Preempt(attempt=attempt) if entry.ours and attempt == entry.attempts:
                self._stop(job_id, entry, life, now)
            case news.Cancelled() | Withdraw():
                orders.cancel(job_id)
            case news.Held() | news.Released() if orders.is_held(life):
                is_wished = isinstance(instruction, news.Held)
                self._marks.carry_out([orders.keep(life, is_wished=is_wished)])
            case news.JobChanged(job=job) if job.requested_seconds != entry.job.requested_seconds:
                self._marks.carry_out([orders.change_limit(job_id, job.requested_seconds)])

    def reports(self, now: float) -> Sequence[news.Event]:
        """Give what orders there are; return what is new since the last look, if one is due."""
        self._alive.touch()
        self._give(now)
        if now < self._due_seconds:
            self.next_seconds = self._due_seconds
            return ()
        events = super().reports(now)
        self._due_seconds = self.next_seconds
        with suppress(ConnectionError):  # they are kept, and events are not lost
            self._give(now)
        if self._orders or self._holds:
            self.next_seconds = 0.0
        return events

    def _stop(self, job_id: str, entry: SeenJob, life: LifeRow, now: float) -> None:
        """Have an attempt requeued and held; one that may not have begun is only held again."""
        self.next_seconds = 0.0
        if entry.start_seconds is not None:
            entry.is_stopped = True
            self._orders.append(orders.stop(life))
            return
        if self._starts.pop(job_id, None) is not None:
            entry.released_seconds = now
        entry.reason = "it was to stop"
        self._orders += orders.hold_all([life], ())

    def _give(self, now: float) -> None:
        """Give orders, all others before starts but of what is held already.

        Raises ``ConnectionError`` if they are not taken, and keeps them.
        """
        others = [*self._orders, *self._holds][:_AT_ONCE]
        held = (each for each in self._starts if orders.is_held(self._lives[each]))
        starting = [*(held if others else self._starts)][:_AT_ONCE]
        starts = [
            order
            for each in starting
            for order in orders.start(self._lives[each], self._starts[each])
        ]
        if not (starts or others):
            return
        self._marks.carry_out([*starts, *others])
        self._holds = self._holds[max(0, len(others) - len(self._orders)) :]
        del self._orders[: len(others)]
        for job_id in starting:
            del self._starts[job_id]
            if job_id in self._entries:
                self._entries[job_id].released_seconds = now

    def _look(self, now: float) -> Look:
        look = Look.taken(now, self._last, self._read_as)
        self._lives = {job_id: self._marks.on(life) for job_id, life in look.lives.items()}
        self._marks.forget_all_but(self._lives)
        self._starts = {each: self._starts[each] for each in self._starts if each in self._lives}
        state = replace(look.state, waiting={})  # its order is not Slurm's
        return replace(look, state=state, lives=self._lives)

    def _read_as(self, row: QueueRow, life: LifeRow | None) -> QueueRow:
        """Return a row that waits as if nobody held it, or had chosen nodes, where that was us."""
        if row.StateCompact != "PD" or life is None:
            return row
        life = self._marks.on(life)
        if orders.is_held_here(life):
            row = row._replace(Reason="Priority")
        if orders.names_nodes(life):
            row = row._replace(ReqNodes="")
        return row

    def _why_aside(self, look: Look, job_id: str) -> str:
        why, life = super()._why_aside(look, job_id), look.lives[job_id]
        job = look.state.jobs.get(job_id)
        if why or job is None:
            return why
        if not self._owned.has(job):
            return "is of a partition or an account that is not decided on here"
        (stage,), nodes = job.stages, nodes_asked(life)
        is_spread = stage.tasks == nodes and stage.request.cpus > look.widest_cpus / 2.0
        if life.NTPerNode.isdecimal() and int(life.NTPerNode) and not is_spread:
            return f"asks for {life.NTPerNode} tasks on each node"
        if nodes > 1 and not is_spread:
            return f"asks for {nodes} nodes"
        if orders.was_let_go(life):
            return "was let go, and is Slurm's to start"
        return ""

    def _instructed(self, running: Sequence[Start], look: Look) -> dict[str, SeenJob]:
        """Return what was to start; what was not let go yet is to be."""
        found: dict[str, SeenJob] = {}
        for each in running:
            job_id = each.job_id.removeprefix(PREFIX)
            life = look.lives.get(job_id)
            job = look.state.jobs.get(job_id)
            if job is None:
                account, tasks = each.placement.tasks_by_partition[0]
                partition = account.partition(",")[0]
                stages = (Stage(tasks, Resources(1.0)),)
                job = Job(job_id, look.now, stages, partition=partition)
            entry = found[job_id] = SeenJob(
                replace(job, job_id=each.job_id), each.attempt, runs=True, ours=True
            )
            entry.released_seconds, entry.chosen = look.now, each.placement
            if life is None:
                continue
            entry.restarts = _restarts_when_held(life)
            if orders.is_held_here(life):
                self._starts[job_id], entry.released_seconds = each.placement, None
        return found

    def _of_jobs(self, look: Look, job_ids: Sequence[str]) -> Iterator[news.Event]:
        self._holds, to_hold = [], list[LifeRow]()
        yield from super()._of_jobs(look, job_ids)
        for job_id, life in look.lives.items():
            entry = self._entries.get(job_id)
            if life.StateCompact != "PD" or entry is None or entry.runs:
                continue
            is_held_here = orders.is_held_here(life)
            if entry.aside and is_held_here:
                self._holds += orders.let_go(life)
            elif not entry.aside and (not is_held_here or life.Reason == "JobHeldUser"):
                to_hold.append(life)
        waiting = [each.JobArrayID for each in look.lives.values() if each.StateCompact == "PD"]
        self._holds += orders.hold_all(to_hold, waiting)

    def _of_life(
        self, look: Look, job_id: str, entry: SeenJob, life: LifeRow
    ) -> Iterator[news.Event]:
        """Yield what is new of a job; one that was let go and still waits may be held again."""
        is_awaited = entry.runs and entry.ours and entry.start_seconds is None
        has_begun = life.StateCompact not in WAITS or int(life.RestartCnt) > entry.restarts
        if not is_awaited or has_begun:
            yield from super()._of_life(look, job_id, entry, life)
            if entry.start_seconds is not None:
                entry.released_seconds, entry.refusals = None, 0
        elif entry.released_seconds is not None:
            waited = look.now - entry.released_seconds
            is_limited = _PASSES.fullmatch(life.Reason) is None
            is_left = is_limited or entry.refusals + 1 >= _MOST_REFUSALS
            if orders.is_held(life):
                yield self._refused(look, entry, entry.reason or life.Reason)
            elif waited >= _PATIENCE_SECONDS and is_left:
                yield self._refused(look, entry, life.Reason)
            elif waited >= _PATIENCE_SECONDS:
                entry.reason = life.Reason
                self._holds += orders.hold_all([life], ())

    def _refused(self, look: Look, entry: SeenJob, reason: str) -> news.NotStarted:
        entry.runs, entry.ours, entry.released_seconds = False, False, None
        entry.chosen, entry.is_stopped, entry.reason = None, False, ""
        entry.refusals += 1
        pause = _FIRST_PAUSE_SECONDS * 2.0**entry.refusals
        why = f"Slurm has not started it ({reason[:60]})"
        return news.NotStarted(look.now, entry.job.job_id, entry.attempts, why, pause)


def _restarts_when_held(life: LifeRow) -> int:
    """Return how often a job had been requeued when it was held here; now, if it was not."""
    _, _, text = life.admin_comment.partition(":")
    is_known = orders.names_nodes(life) and text.isdecimal()
    return int(text if is_known else life.RestartCnt)
