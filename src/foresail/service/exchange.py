"""Exchange of a daemon with the store: durable requests go in, the log of its run comes out."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Final, TypeAlias

from foresail.live.command_job import CommandJob
from foresail.live.run_clock import by_clock_of_run
from foresail.live.run_log import INFORMATIVE, SNAPSHOT_EVERY, KnownRun
from foresail.live.source import DaemonCommand
from foresail.model import event as events
from foresail.model.errors import ForesailError, InputError
from foresail.model.protocols import Scheduler
from foresail.record.log_text import record_line
from foresail.record.records import Manifest, PolicyChanged, Record, about
from foresail.record.state import State
from foresail.service.feed import Feed
from foresail.service.metrics import CycleWatch
from foresail.service.store import protocol
from foresail.service.store.job_changes import JobChanges
from foresail.service.store.sql_store import SqlStore


class CommandsById(Mapping[str, CommandJob]):
    """Commands by the ids of their jobs: each is read from the store when it is first asked for.

    With its environment and script it may be large, and most wait.
    """

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self._asked_for: dict[str, CommandJob] = {}

    def __getitem__(self, job_id: str) -> CommandJob:
        command = self._asked_for.get(job_id)
        if command is None:
            row = self._store.job(job_id)
            if row is None:
                raise KeyError(job_id)
            command = self._asked_for[job_id] = CommandJob.from_json(row["command"])
        return command

    def __iter__(self) -> Iterator[str]:
        return (job_id for job_id, _ in self._store.commands())

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def forget(self, job_ids: Iterable[str]) -> None:
        """Read these anew: they will not be run again, or are others now."""
        for job_id in job_ids:
            self._asked_for.pop(job_id, None)


_ONE: Final = (1).to_bytes(8, "little")
_BY_SOMEBODY: Final[Mapping[protocol.Command, Callable[[float, str, str], events.Event]]] = {
    protocol.Command.CANCEL: events.Cancelled,
    protocol.Command.HOLD: events.Held,
}


class Inbox:
    """A daemon's source: durable requests, given once, also over a change of daemons.

    Requests are put in by the thread that accepts them, and taken by the daemon's.
    """

    def __init__(self, store: SqlStore) -> None:
        self.commands = CommandsById(store)
        self.taken = 0
        """Number of the last request that was given to the daemon."""
        self._store = store
        self._arrived: deque[protocol.NumberedRequest] = deque()
        self._last = 0
        self._lock = threading.Lock()
        self._command = DaemonCommand.GO_ON
        self._wants_pass = False
        self._descriptor: int | None = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    @property
    def descriptor(self) -> int | None:
        """Readable when something was put in."""
        return self._descriptor

    def put(self, requests: Iterable[protocol.NumberedRequest]) -> None:
        """Pass on requests that are durable."""
        with self._lock:
            self._append(requests)
        self.wake()

    def look_for_more(self) -> None:
        """Pass on requests that are durable though who asked got no answer."""
        with self._lock:
            self._append(self._store.requests_after(self._last))
        self.wake()

    def wake(self) -> None:
        """Let the daemon look."""
        if self._descriptor is not None:
            os.write(self._descriptor, _ONE)

    def ask_for_pass(self) -> None:
        """Let the daemon have a pass, whatever happens."""
        self._wants_pass = True
        self.wake()

    def leave(self) -> None:
        """Let the daemon go; what runs runs on."""
        self._command = DaemonCommand.LEAVE
        self.wake()

    def begin_again(self) -> None:
        """Be there for a daemon, with what no step has taken durably."""
        with self._lock:
            self._command = DaemonCommand.GO_ON
            self.taken = self._store.taken()
            self._arrived.clear()
            self._append(self._store.requests_after(self.taken))

    def earlier(self, known: Container[str], now: float) -> list[events.Event]:  # noqa: ARG002
        """Requests that no daemon has taken yet."""
        return list(self._events(now))

    def arrived(self, now: float) -> list[events.Event]:
        """Requests that were put in since."""
        assert self._descriptor is not None
        os.read(self._descriptor, 8)
        return list(self._events(now))

    def command(self, interrupts: int) -> DaemonCommand:
        """Any signal lets the daemon go."""
        return DaemonCommand.LEAVE if interrupts else self._command

    def close(self) -> None:
        """Take nothing more."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _append(self, requests: Iterable[protocol.NumberedRequest]) -> None:
        for each in requests:
            self._arrived.append(each)
            self._last = each.number

    def _events(self, now: float) -> Iterator[events.Event]:
        if self._wants_pass:
            self._wants_pass = False
            yield events.Tick(now)
        submitted: set[str] = set()
        while self._arrived:
            numbered = self._arrived.popleft()
            if numbered.number <= self.taken:  # was read from the store, and put in as well
                continue
            match numbered.request:
                case protocol.Submit(job, held):
                    submitted.add(job.job_id)
                    yield events.Submitted(now, by_clock_of_run(job, now).specification(now))
                    if held:
                        yield events.Held(now, job.job_id, numbered.user)
                case protocol.CommandRequest(protocol.Command.CANCEL, subject) if (
                    subject in submitted
                ):
                    self._arrived.appendleft(numbered)  # a step cancels before it takes jobs
                    self.wake()
                    return
                case protocol.CommandRequest(protocol.Command.RELEASE, subject):
                    yield events.Released(now, subject)
                case protocol.CommandRequest(protocol.Command.RESUME, subject):
                    yield events.NodeResumed(now, subject)
                case protocol.CommandRequest(protocol.Command.DRAIN, subject, until):
                    yield events.NodeDrained(now, subject, numbered.user, until)
                case protocol.CommandRequest(command, subject):
                    yield _BY_SOMEBODY[command](now, subject, numbered.user)
            self.taken = numbered.number


Numbered: TypeAlias = Callable[[int], Sequence[protocol.Request]]
"""Makes a call's requests, given the number of the first job among them."""

_MOST_AT_ONCE: Final = 500


class KeyUsedOtherwise(ForesailError):  # noqa: N818 - it says what it is
    """The client key stands for another call of the same user."""

    def __init__(self) -> None:
        super().__init__("this key was used for something else before")


@dataclass(frozen=True, slots=True)
class _Call:
    user: str
    make: Numbered
    client_key: str | None
    answer: Future[protocol.Accepted] = field(default_factory=Future)


class Acceptance:
    """Writes calls to the store in a thread of its own, and passes them on to the daemon.

    All calls that arrive while a transaction is written share the next one.

    ``set_aside`` lets jobs have numbers up to one, before any does.
    """

    def __init__(self, store: SqlStore, inbox: Inbox, set_aside: Callable[[int], None]) -> None:
        self._store = store
        self._inbox = inbox
        self._set_aside = set_aside
        self._may_have_missed = False
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="acceptance", daemon=True)
        self._thread.start()

    def ask(
        self, user: str, make: Numbered, client_key: str | None = None
    ) -> Future[protocol.Accepted]:
        """Ask for something; the answer comes once it is durable.

        The future fails with ``InputError`` if it cannot be written down, or cannot be made.
        """
        call = _Call(user, make, client_key)
        self._calls.put(call)
        return call.answer

    def close(self) -> None:
        """Answer what was asked, and ask for no more."""
        self._calls.put(None)
        self._thread.join()

    def _work(self) -> None:
        goes_on = True
        while goes_on:
            calls = [self._calls.get()]
            while not self._calls.empty() and len(calls) < _MOST_AT_ONCE:
                calls.append(self._calls.get())
            goes_on = None not in calls
            with self._store.numbering:
                self._accept([call for call in calls if call is not None])

    def _accept(self, calls: Sequence[_Call]) -> None:
        """Answer calls, each that can be; where no job can be accepted, commands may yet be."""
        made: list[tuple[_Call, protocol.KeyedCall]] = []
        try:
            if self._may_have_missed:
                self._inbox.look_for_more()
                self._may_have_missed = False
            number = self._store.next_number()
            for call in calls:
                try:
                    requests = tuple(call.make(number))
                except Exception as error:  # the caller's, who waits for it
                    call.answer.set_exception(error)
                    continue
                made.append(
                    (call, protocol.KeyedCall(call.user, requests, call.client_key, number))
                )
                number = [number - 1, *protocol.numbers_of(requests, number)][-1] + 1
            if number > self._store.next_number():
                self._set_aside(number - 1)
            answers = self._store.accept([asked for _, asked in made])
        except Exception as error:
            self._may_have_missed = True
            commands = [call for call, asked in made if not protocol.numbers_of(asked.requests, 1)]
            again = commands if len(commands) < len(made) else []
            for call in calls:
                if call not in again and not call.answer.done():
                    call.answer.set_exception(error)
            if again:
                self._accept(again)
            return
        for (call, _), answer in zip(made, answers, strict=True):
            if answer.is_new:
                self._inbox.put(answer.requests)
            if answer.conflicts:
                call.answer.set_exception(KeyUsedOtherwise())
            else:
                call.answer.set_result(answer)


_LOG: Final = logging.getLogger("foresail.service")


def recovered(store: SqlStore, compares_with: Scheduler | None = None) -> KnownRun:
    """Recover the run from the store's event log: its snapshot first, and what follows that.

    One that this version cannot read is done without. ``compares_with`` is what the scheduler that
    will go on compares with, if it does with anything.
    """
    known = KnownRun.beginning(compares_with)
    snapshot = store.snapshot()
    if snapshot is not None:
        try:
            for at, (number, line) in enumerate(store.records_of_snapshot(snapshot[1]), 1):
                known.take(line, at, "snapshot", number)
            known.since_snapshot, known.end = 0, snapshot[0]
        except InputError as error:
            known = KnownRun.beginning(compares_with)
            _LOG.error("%s; it is done without", error)
    for number, line in store.records(after=known.end):
        known.take(line, number, "event log", number)
    return known


@dataclass(frozen=True, slots=True)
class Exchange:
    """Parts of a service through which a daemon is asked, and through which its steps go."""

    store: SqlStore
    inbox: Inbox
    feed: Feed
    cycles: CycleWatch


class StoreLog:
    """A log that commits each step with what it changes of jobs, and which requests it took.

    ``manifest`` is what a new log begins with (None where one goes on), ``known`` what is in it
    already. It is to ``follow`` a state before the first step.
    """

    def __init__(self, exchange: Exchange, manifest: Manifest | None, known: KnownRun) -> None:
        self._store = exchange.store
        self._compaction = known.compaction
        self._since_snapshot = known.since_snapshot
        self._end = known.end
        self._inbox = exchange.inbox
        self._feed = exchange.feed
        self._records: list[Record] = []
        self._lines: list[str] = []
        self._changes = JobChanges(exchange.inbox.commands)
        self._cycles = exchange.cycles
        self._begun = 0.0
        self._state: State | None = None
        if manifest is not None:
            self.append(manifest)
            self.commit()

    def note_policy(self, known: KnownRun, manifest: Manifest) -> None:
        """Write down that another policy decides from now on than the one in the log."""
        if known.run.policy != manifest.policy:
            change = PolicyChanged(known.run.steps, manifest.policy, manifest.starts_tasks)
            known.run.take(change)
            self.append(change)
            self.commit()

    def follow(self, state: State) -> None:
        """Report jobs as they stand in this state after each step."""
        self._state = state

    def append(self, record: Record) -> None:
        """Take one record."""
        if not self._records:
            self._begun = time.perf_counter()
        line = record_line(record)
        self._records.append(record)
        self._lines.append(line)
        if not isinstance(record, INFORMATIVE):
            self._compaction.take(record, line, self._end + len(self._lines))
            self._since_snapshot += 1

    def commit(self) -> None:
        """Hand the step to the store; now and then a snapshot, which can be done without."""
        if not self._lines:
            return
        decided = time.perf_counter()
        if self._state is not None and self._state.history is not None:
            for record in self._records:
                self._changes.take(record, self._state, self._state.history)
                self._cycles.take(record, self._state.history)
        subjects = [about(record) for record in self._records]
        changes, new = self._changes.values, tuple(self._changes.new.values())
        step = protocol.WholeStep(self._lines, self._inbox.taken, changes, subjects, new)
        self._end += len(self._lines)
        end = self._store.commit_step(step)
        assert end == self._end, "records are written by this log alone"
        self._cycles.step(decided - self._begun, time.perf_counter() - decided)
        others = {"end_seconds", "command"}
        done = [job_id for job_id, values in changes.items() if not others.isdisjoint(values)]
        self._inbox.commands.forget(done)
        self._feed.committed(end - len(self._records) + 1, self._records)
        self._records, self._lines = [], []
        self._changes = JobChanges(self._inbox.commands)
        if self._since_snapshot >= max(SNAPSHOT_EVERY, len(self._compaction)):
            self._since_snapshot = 0
            self._store.keep_snapshot(list(self._compaction.lines()), end)

    def close(self) -> None:
        """Keep a snapshot if who comes next would have much to read, and nothing is half done.

        The store is closed by who opened it.
        """
        if self._since_snapshot >= SNAPSHOT_EVERY and not self._lines:
            with suppress(protocol.StoreUnavailable):
                self._store.keep_snapshot(list(self._compaction.lines()), self._store.last_record())
