"""The inbox: accepted requests on their way to the daemon, as events and in order."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Final

from foresail.live.command_job import CommandJob
from foresail.live.observer import Wish
from foresail.live.run_clock import by_clock_of_run
from foresail.model.event import (
    Cancelled,
    Event,
    Held,
    NodeDrained,
    NodeResumed,
    Released,
    Submitted,
    Tick,
)
from foresail.service.store.protocol import (
    ForJob,
    ForNode,
    JobWish,
    NodeWish,
    NumberedRequest,
    Submit,
)
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
        """These will not be run again."""
        for job_id in job_ids:
            self._asked_for.pop(job_id, None)


_ONE: Final = (1).to_bytes(8, "little")


class Inbox:
    """A daemon's source: durable requests, given once, also over a change of daemons.

    Requests are put in by the thread that accepts them, and taken by the daemon's.
    """

    def __init__(self, store: SqlStore) -> None:
        self.commands = CommandsById(store)
        self.taken = 0
        """Number of the last request that was given to the daemon."""
        self._store = store
        self._arrived: deque[NumberedRequest] = deque()
        self._last = 0
        self._lock = threading.Lock()
        self._wish = Wish.GO_ON
        self._wants_pass = False
        self._descriptor: int | None = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    @property
    def descriptor(self) -> int | None:
        """Readable when something was put in."""
        return self._descriptor

    def forget(self, job_ids: Iterable[str]) -> None:
        """These jobs are done with: their commands will not be run again."""
        self.commands.forget(job_ids)

    def put(self, requests: Iterable[NumberedRequest]) -> None:
        """Pass on requests that are durable."""
        with self._lock:
            self._append(requests)
        self.wake()

    def look_for_more(self) -> None:
        """Pass on requests that are durable though who asked could not be told so."""
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
        self._wish = Wish.LEAVE
        self.wake()

    def begin_again(self) -> None:
        """Be there for a daemon, with what no step has taken durably."""
        with self._lock:
            self._wish = Wish.GO_ON
            self.taken = self._store.taken()
            self._arrived.clear()
            self._append(self._store.requests_after(self.taken))

    def earlier(self, known: Container[str], now: float) -> list[Event]:  # noqa: ARG002
        """Requests that no daemon has taken yet."""
        return list(self._events(now))

    def arrived(self, now: float) -> list[Event]:
        """Requests that were put in since."""
        assert self._descriptor is not None
        os.read(self._descriptor, 8)
        return list(self._events(now))

    def wish(self, interrupts: int) -> Wish:
        """Any signal lets the daemon go."""
        return Wish.LEAVE if interrupts else self._wish

    def close(self) -> None:
        """Take nothing more."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _append(self, requests: Iterable[NumberedRequest]) -> None:
        for each in requests:
            self._arrived.append(each)
            self._last = each.number

    def _events(self, now: float) -> Iterator[Event]:
        if self._wants_pass:
            self._wants_pass = False
            yield Tick(now)
        submitted: set[str] = set()
        while self._arrived:
            numbered = self._arrived.popleft()
            if numbered.number <= self.taken:  # was read from the store, and put in as well
                continue
            match numbered.request:
                case Submit(job, held):
                    submitted.add(job.job_id)
                    yield Submitted(now, by_clock_of_run(job, now).specification(now))
                    if held:
                        yield Held(now, job.job_id, numbered.user)
                case ForJob(JobWish.CANCEL, job_id) if job_id in submitted:
                    self._arrived.appendleft(numbered)  # a step cancels before it takes jobs
                    self.wake()
                    return
                case ForJob(JobWish.CANCEL, job_id):
                    yield Cancelled(now, job_id, numbered.user)
                case ForJob(JobWish.HOLD, job_id):
                    yield Held(now, job_id, numbered.user)
                case ForJob(JobWish.RELEASE, job_id):
                    yield Released(now, job_id)
                case ForNode(NodeWish.DRAIN, node):
                    yield NodeDrained(now, node, numbered.user)
                case ForNode(NodeWish.RESUME, node):
                    yield NodeResumed(now, node)
            self.taken = numbered.number
