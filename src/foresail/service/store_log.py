"""The log of the service's run in its store, with what it says of each job as it stands."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from typing import Any, Final

from foresail.explain.end_words import end_words
from foresail.live.run_log import SNAPSHOT_EVERY, TELL_ONLY, KnownRun
from foresail.model.decision import Placement, Start, Withdraw
from foresail.model.errors import InputError
from foresail.model.event import Cancelled, Ended, Held, Released, Submitted
from foresail.model.outcome import GOES_BACK, EndedBecause
from foresail.model.protocols import Scheduler
from foresail.model.words import by_whom
from foresail.record.job_life import JobHistory
from foresail.record.log_text import record_line
from foresail.record.records import EventTaken, Instructed, Manifest, Predicted, Record, about
from foresail.record.run_fold import RunFold
from foresail.record.state import State
from foresail.service.feed import Feed
from foresail.service.inbox import Inbox
from foresail.service.metrics import CycleWatch
from foresail.service.store.protocol import StoreUnavailable, WholeStep
from foresail.service.store.sql_store import SqlStore

_LOG: Final = logging.getLogger("foresail.service")
_PENDING: Final = {"state": "pending", "start_seconds": None, "places": None}


def recovered(store: SqlStore, compares_with: Scheduler | None = None) -> KnownRun:
    """Recover the run from the store's event log: its snapshot first, and what follows that.

    One that this version cannot read is done without. ``compares_with`` is what the scheduler that
    will go on compares with, if it does with anything.
    """
    known = KnownRun(RunFold(compares_with))
    snapshot = store.snapshot()
    if snapshot is not None:
        try:
            for at, (number, line) in enumerate(store.records_of_snapshot(snapshot[1]), 1):
                known.take(line, at, "snapshot", number)
            known.since_snapshot, known.end = 0, snapshot[0]
        except InputError as error:
            known = KnownRun(RunFold(compares_with))
            _LOG.error("%s; it is done without", error)
    for number, line in store.records(after=known.end):
        known.take(line, number, "event log", number)
    return known


class StoreLog:
    """A log that commits each step with what it changes of jobs, and which requests it took.

    ``manifest`` is what a new log begins with (None where one goes on), ``known`` what is in it
    already. It is to ``follow`` a state before the first step.
    """

    def __init__(
        self,
        store: SqlStore,
        manifest: Manifest | None,
        known: KnownRun,
        inbox: Inbox,
        feed: Feed,
        cycles: CycleWatch,
    ) -> None:
        self._store = store
        self._compaction = known.compaction
        self._since_snapshot = known.since_snapshot
        self._end = known.end
        self._inbox = inbox
        self._feed = feed
        self._records: list[Record] = []
        self._lines: list[str] = []
        self._changes: dict[str, dict[str, Any]] = {}
        self._cycles = cycles
        self._begun = 0.0
        self._state: State | None = None
        if manifest is not None:
            self.append(manifest)
            self.commit()

    def follow(self, state: State) -> None:
        """Tell of jobs as they stand in this state after each step."""
        self._state = state

    def append(self, record: Record) -> None:
        """Take one record."""
        if not self._records:
            self._begun = time.perf_counter()
        line = record_line(record)
        self._records.append(record)
        self._lines.append(line)
        if not isinstance(record, TELL_ONLY):
            self._compaction.take(record, line, self._end + len(self._lines))
            self._since_snapshot += 1

    def commit(self) -> None:
        """Hand the step to the store; now and then a snapshot, which can be done without."""
        if not self._lines:
            return
        decided = time.perf_counter()
        if self._state is not None and self._state.history is not None:
            for record in self._records:
                self._note(record, self._state, self._state.history)
                self._cycles.take(record, self._state.history)
        subjects = [about(record) for record in self._records]
        step = WholeStep(self._lines, self._inbox.taken, self._changes, subjects)
        self._end += len(self._lines)
        end = self._store.commit_step(step)
        assert end == self._end, "records are written by this log alone"
        self._cycles.step(decided - self._begun, time.perf_counter() - decided)
        done = [job_id for job_id, values in self._changes.items() if "end_seconds" in values]
        self._inbox.forget(done)
        self._feed.committed(end - len(self._records) + 1, self._records)
        self._records, self._lines, self._changes = [], [], {}
        if self._since_snapshot >= max(SNAPSHOT_EVERY, len(self._compaction)):
            self._since_snapshot = 0
            self._store.keep_snapshot(list(self._compaction.lines()), end)

    def close(self) -> None:
        """Keep a snapshot if who comes next would have much to read, and nothing is half done.

        The store is closed by who opened it.
        """
        if self._since_snapshot >= SNAPSHOT_EVERY and not self._lines:
            with suppress(StoreUnavailable):
                self._store.keep_snapshot(list(self._compaction.lines()), self._store.last_record())

    def _note(self, record: Record, state: State, jobs: JobHistory) -> None:
        """Note what a record changes of a job as it stands after the step."""
        match record:
            case Predicted(job_id=job_id):
                self._change(
                    job_id,
                    low_seconds=record.low_seconds,
                    median_seconds=record.median_seconds,
                    high_seconds=record.high_seconds,
                )
            case Instructed(time=now, instruction=Start(job_id, placement) as start):
                places = _in_short(placement)
                self._change(
                    job_id, state="running", start_seconds=now, attempt=start.attempt, places=places
                )
            case Instructed(time=now, instruction=Withdraw(job_id, because)):
                self._change(job_id, state="withdrawn", end_seconds=now, because=because)
            case EventTaken(event=Submitted(job=job)):
                self._change(
                    job.job_id,
                    submit_seconds=job.submit_seconds,
                    deadline_seconds=job.deadline_seconds,
                )
            case EventTaken(time=now, event=Cancelled(job_id=job_id, by=by)):
                because = f"cancelled {by_whom(by, jobs.submitted[job_id].user)}"
                if job_id in state.cancelled:
                    self._change(job_id, because=because)
                elif jobs.withdrawn.get(job_id) == because and (
                    state.ended[job_id].end_seconds == now
                ):
                    self._change(job_id, state="cancelled", end_seconds=now, because=because)
            case EventTaken(event=Held(job_id=job_id)) if job_id in state.held:
                self._change(job_id, state="held")
            case EventTaken(event=Released(job_id=job_id)) if state.pending_job(job_id):
                self._change(job_id, state="pending")
            case EventTaken(event=Ended(outcome=outcome)):
                if outcome.ended_because in GOES_BACK:
                    self._change(outcome.job_id, **_PENDING)
                    return
                self._change(
                    outcome.job_id,
                    state=str(outcome.ended_because),
                    start_seconds=outcome.start_seconds,
                    end_seconds=outcome.end_seconds,
                    exit_code=outcome.exit_code,
                )
                if outcome.ended_because is not EndedBecause.CANCELLED:  # by whom, stands there
                    words = end_words(outcome, jobs.submitted[outcome.job_id])
                    self._change(outcome.job_id, because=words)

    def _change(self, job_id: str, **values: Any) -> None:
        self._changes.setdefault(job_id, {}).update(values)


def _in_short(placement: Placement) -> str:
    """Format a placement: ``node-1:2 node-3:1``, or partitions where nodes are not named."""
    where = placement.tasks_by_node or placement.tasks_by_partition
    return " ".join(f"{each[0]}:{each[-1]}" for each in where)
