"""A Slurm cluster that is only looked at: what its commands say happens to jobs and nodes.

Nothing is started, held or changed here: Slurm decides. What came, began and ended while nobody
looked is found in accounting, from the last look on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from foresail.model import event as news
from foresail.model.adapter import Capabilities, JobCommand, KnownJob
from foresail.model.changing_nodes import changes_between
from foresail.model.cluster import Placement
from foresail.model.decision import Instruction, Start
from foresail.model.errors import InputError
from foresail.model.job import Job
from foresail.model.whole_files import write_durably
from foresail.model.words import LEFT_TO
from foresail_slurm.commands import LifeRow, moment, nodes_of, read_accounting
from foresail_slurm.look import Look, worth_of
from foresail_slurm.state import history_of

PREFIX: Final = "slurm:"
_HISTORY_SECONDS: Final = 14 * 86_400.0
_EVERY_SECONDS: Final = 1.0
_LONGEST_SECONDS: Final = 30.0
_SHARE: Final = 10.0
"""The cluster is looked at so often, and after a look that took long, as after an absence, no
sooner than so many times as long, but for the latter."""

_ROUNDING_SECONDS: Final = 2.0
"""Slurm's times are whole seconds: what ended so long before the last look may be new."""

_ENDED: Final = {
    **dict.fromkeys(("F", "NF", "OOM", "DL", "BF"), news.EndedBecause.FAILED),
    **dict.fromkeys(("CA", "PR", "RV"), news.EndedBecause.CANCELLED),
    "CD": news.EndedBecause.COMPLETED,
    "TO": news.EndedBecause.LIMIT,
}
"""States of squeue that are the end of a job."""

WAITS: Final = frozenset({"PD", "RF", "RH", "RQ", "RS", "SE"})
_UNKNOWN: Final = "unknown"
"""Reason that no job is left aside for: what the log has of it is looked at anew."""

_GONE: Final = "it has gone, and how it ended is not known"


@dataclass(slots=True)
class SeenJob:
    """A job as it was reported: its attempts so far, and whether the last of these runs."""

    job: Job
    attempts: int = 0
    runs: bool = False
    start_seconds: float | None = None
    """Start of that attempt; None if it is to be reported (again)."""
    aside: str = ""
    """Reason for which it is left to the cluster; empty if it is not."""
    restarts: int = 0
    """Number of times it had been requeued when the last began, or was to."""
    ours: bool = False
    """True if the last was instructed."""
    chosen: Placement | None = None
    """Placement that was chosen for that."""
    released_seconds: float | None = None
    """Time at which that was released; None once it has begun."""
    refusals: int = 0
    """Number of those in a row that were let go and did not begin."""
    reason: str = ""
    """Reason for which the last is taken back, though it was let go."""
    is_stopped: bool = False
    """True if the last is to stop, by an instruction."""


class SlurmAdapter:
    """Reports what is new at each look (``foresail.model.adapter``); starts and changes nothing.

    ``seen`` is the file that keeps the time up to which all was reported.
    """

    capabilities = Capabilities(
        changes_nodes=True, begins_jobs=True, brings_jobs=True, is_remote=True, decides_itself=True
    )
    wake_descriptor: Final = None
    _share = _SHARE

    def __init__(self, seen: Path) -> None:
        self._file = seen
        self._last = time.time()
        self.cluster = Look.taken(self._last, self._last).cluster()
        self.next_seconds = 0.0
        self._entries: dict[str, SeenJob] = {}
        self._done: set[str] = set()
        """Jobs that have ended, as long as squeue shows them."""
        self._out: dict[str, bool] = {}
        """Nodes that were reported as out of use, and whether as down."""
        self.keep_estimates: Callable[[Mapping[str, float]], None] = lambda _: None
        self.note: Callable[[str], None] = lambda _: None

    def history(self) -> Sequence[news.HistoryOutcome]:
        """Return what accounting has of the last two weeks; nothing without accounting."""
        try:
            past = history_of(read_accounting(time.time() - _HISTORY_SECONDS)).past
        except InputError:
            return ()
        return [
            news.HistoryOutcome(each.outcome.end_seconds, each.job, each.outcome) for each in past
        ]

    def resume(
        self, running: Sequence[Start], known: Sequence[KnownJob], now: float
    ) -> Sequence[news.Event]:
        """Report what is new to the log, what runs, and which nodes are out of use."""
        with suppress(OSError, ValueError):
            self._last = float(self._file.read_text())
        look = self._look(now)
        self._entries = {
            each.job.job_id.removeprefix(PREFIX): SeenJob(
                each.job,
                each.attempts,
                each.runs,
                aside="" if each.runs else _UNKNOWN,
                restarts=max(0, each.attempts - 1),
            )
            for each in known
        } | self._instructed(running, look)
        self._done, self._out = set(), {}
        self.cluster = look.cluster()
        return [*self._of_nodes(look), *self._of_jobs(look, [*look.lives, *look.past])]

    def carry_out(self, instruction: Instruction | JobCommand, now: float) -> None:  # noqa: ARG002
        """Refuse it, as Slurm decides; raises ``InputError``."""
        self.capabilities.require(instruction)

    def reports(self, now: float) -> Sequence[news.Event]:
        """Return what is new since the last look; nothing before the next one is due."""
        if now < self.next_seconds:
            return ()
        begin = time.monotonic()
        write_durably(self._file, f"{self._last}".encode())  # the log has what was reported then
        look = self._look(now)
        events = [*self._of_jobs(look, [*look.lives]), *self._of_nodes(look)]
        self._last = now
        rest = self._share * (time.monotonic() - begin)
        self.next_seconds = now + min(max(_EVERY_SECONDS, rest), _LONGEST_SECONDS)
        return events

    def close(self) -> None:
        """Hold nothing open."""

    def _look(self, now: float) -> Look:
        return Look.taken(now, self._last)

    def _instructed(self, running: Sequence[Start], look: Look) -> dict[str, SeenJob]:  # noqa: ARG002
        """Return what had been instructed to start: nothing is."""
        return {}

    def _why_aside(self, look: Look, job_id: str) -> str:
        """Return why a job that waits is left to the cluster; empty if it is not."""
        return look.state.aside.get(job_id, "")

    def _of_nodes(self, look: Look) -> Iterator[news.Event]:
        now, there, out = look.now, look.cluster(), dict(look.out_of_use())
        yield from changes_between(self.cluster, there, now)
        names = {each.name for partition in there.partitions for each in partition.nodes}
        for name in names & (self._out.keys() | out.keys()):
            before, after = self._out.get(name), out.get(name)
            if before is not None and before is not after:
                yield news.NodeUp(now, name) if before else news.NodeResumed(now, name)
            if after is not None and before is not after:
                yield news.NodeDown(now, name) if after else news.NodeDrained(now, name)
        self.cluster, self._out = there, out

    def _of_jobs(self, look: Look, job_ids: Sequence[str]) -> Iterator[news.Event]:
        """Yield what is new of jobs that Slurm knows, and of those that it has forgotten."""
        expected = look.state.estimates.items()
        self.keep_estimates({PREFIX + name: at for name, at in expected if at is not None})
        jobs = look.jobs({job_id: entry.job for job_id, entry in self._entries.items()})
        self._done &= look.lives.keys()
        for job_id in dict.fromkeys(job_ids):
            if job_id not in self._done:
                yield from self._of_job(look, job_id, jobs.get(job_id))
        for job_id in [each for each in self._entries if each not in look.lives]:
            yield from self._forgotten(look, job_id)

    def _of_job(self, look: Look, job_id: str, job: Job | None) -> Iterator[news.Event]:
        entry, life = self._entries.get(job_id), look.lives.get(job_id)
        if entry is None and job is None:
            job = self._passed(look, job_id)
            if job is None:
                if life is None or life.StateCompact in _ENDED:  # else it came during the look
                    self._done.add(job_id)
                return
        if entry is None and job is not None:
            named = replace(job, job_id=PREFIX + job_id)
            entry = self._entries[job_id] = SeenJob(named)
            yield news.Submitted(look.now, named)
            try:
                worth_of(life) if life is not None else None
            except InputError as error:
                self.note(f"the worth of {named.job_id} does not count: {error}")
        assert entry is not None
        if job is not None and job_id in look.state.jobs:
            yield from _changed(look, entry, replace(job, job_id=entry.job.job_id))
        if life is not None:
            yield from self._of_life(look, job_id, entry, life)
            if job_id in self._entries:
                yield from self._left_aside(look, job_id, entry)

    def _passed(self, look: Look, job_id: str) -> Job | None:
        """Return a job that came and ended between two looks; None if it did so before."""
        life, new = look.lives.get(job_id), look.since_seconds - _ROUNDING_SECONDS
        if life is not None and (moment(life.EndTime) or 0.0) < new:
            return None
        ended = [each for each in look.past.get(job_id, ()) if each.outcome.end_seconds >= new]
        return ended[-1].job if ended else None

    def _of_life(
        self, look: Look, job_id: str, entry: SeenJob, life: LifeRow
    ) -> Iterator[news.Event]:
        code, start = life.StateCompact, moment(life.StartTime)
        waits, because, restarts = code in WAITS, _ENDED.get(code), int(life.RestartCnt)
        is_another = entry.start_seconds is not None and start != entry.start_seconds
        if entry.runs and (waits or restarts > entry.restarts or (is_another and code == "R")):
            yield self._requeued(look, job_id, entry)
        if waits or code == "CG":
            return
        nodes = nodes_of(life.NodeList)
        placement = look.placement(entry.job, nodes) if entry.runs or nodes else None
        if entry.chosen and {*nodes} == {name for name, _ in entry.chosen.tasks_by_node}:
            placement = entry.chosen
        if placement is not None and start is not None and entry.start_seconds is None:
            attempt = entry.attempts if entry.runs else max(restarts, entry.attempts) + 1
            entry.attempts, entry.runs, entry.start_seconds, entry.aside = attempt, True, start, ""
            entry.restarts, at = restarts, min(start, look.now)
            yield news.Began(look.now, entry.job.job_id, attempt, placement, at, ours=entry.ours)
        if because is not None:
            yield self._over(look, job_id, entry, because, moment(life.EndTime))

    def _requeued(self, look: Look, job_id: str, entry: SeenJob) -> news.Ended:
        """Return the end of an attempt whose job waits again, or runs in another."""
        begin = entry.start_seconds if entry.start_seconds is not None else look.since_seconds
        because, end = news.EndedBecause.REVOKED, look.now
        for each in look.past.get(job_id, ()):
            outcome = each.outcome
            if outcome.ended_because in news.REQUEUED and outcome.start_seconds >= begin - 1.0:
                because, end = outcome.ended_because, min(outcome.end_seconds, look.now)
                because = (
                    news.EndedBecause.REVOKED if because is news.EndedBecause.LOST else because
                )
                break
        if entry.is_stopped:
            because = news.EndedBecause.PREEMPTED
        entry.runs, entry.start_seconds, entry.ours, entry.is_stopped = False, None, False, False
        entry.chosen = None
        ids = entry.job.job_id, min(begin, end), end, because
        return news.Ended(look.now, news.Outcome(*ids, attempt=entry.attempts))

    def _over(
        self, look: Look, job_id: str, entry: SeenJob, because: news.EndedBecause, end: float | None
    ) -> news.Event:
        """Return the end of a job, and forget it."""
        del self._entries[job_id]
        self._done.add(job_id)
        if not entry.runs:
            return news.Cancelled(look.now, entry.job.job_id)
        start = min(entry.start_seconds or look.since_seconds, look.now)
        ids = entry.job.job_id, start, max(start, min(end or look.now, look.now)), because
        reason = "" if end is not None else _GONE
        return news.Ended(look.now, news.Outcome(*ids, attempt=entry.attempts, reason=reason))

    def _forgotten(self, look: Look, job_id: str) -> Iterator[news.Event]:
        """Yield what became of a job that squeue shows no more, as accounting has it."""
        entry = self._entries[job_id]
        known = look.past.get(job_id, ())
        last = known[-1].outcome if known else None
        if last is None or last.ended_because in news.REQUEUED:
            yield self._over(look, job_id, entry, news.EndedBecause.CANCELLED, None)
            return
        if entry.runs and len(known) > 1:
            yield self._requeued(look, job_id, entry)
        placement = look.placement(entry.job, ())
        if entry.start_seconds is None and placement is not None:
            entry.attempts += not entry.runs
            entry.runs, entry.start_seconds = True, last.start_seconds
            attempt = entry.attempts
            ours = entry.ours
            yield news.Began(
                look.now, entry.job.job_id, attempt, placement, last.start_seconds, ours=ours
            )
        yield self._over(look, job_id, entry, last.ended_because, last.end_seconds)

    def _left_aside(
        self, look: Look, job_id: str, entry: SeenJob
    ) -> Iterator[news.Held | news.Released]:
        """Yield that a job that waits is left to the cluster, or no more."""
        why = "" if entry.runs else self._why_aside(look, job_id)
        if why != entry.aside:
            if entry.aside:
                yield news.Released(look.now, entry.job.job_id)
            if why:
                yield news.Held(look.now, entry.job.job_id, LEFT_TO + why)
            entry.aside = why


def _changed(look: Look, entry: SeenJob, job: Job) -> Iterator[news.JobChanged]:
    """Yield that a job is another now, if it is."""
    before, runs = entry.job, entry.runs
    waits = before.job_id.removeprefix(PREFIX) in look.state.estimates  # else less is known of it
    kept = ["submit_seconds", "user", "conditions", *(("stages", "partition") * runs)]
    kept += ["value"] * (not waits) + ["stages"] * (not waits and job.cpus == before.cpus)
    job = replace(job, **{name: getattr(before, name) for name in kept})
    if not job.attributes:
        job = replace(job, attributes=before.attributes)
    if replace(job, name=before.name) != before or _printable(job) != _printable(before):
        entry.job = job
        yield news.JobChanged(look.now, job)


def _printable(job: Job) -> str:
    return "".join(each if each.isprintable() else "?" for each in job.name or "")
