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
    """Commands by the ids of their jobs; one that was stored is read when it is first asked for.

    ``stored`` are ids and lines of commands, as ``CommandJob.to_json`` writes them.
    """

    def __init__(self, stored: Iterable[tuple[str, str]]) -> None:
        self._commands: dict[str, CommandJob | str] = dict(stored)

    def __getitem__(self, job_id: str) -> CommandJob:
        command = self._commands[job_id]
        if isinstance(command, str):
            command = self._commands[job_id] = CommandJob.from_json(command)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(self._commands)

    def __len__(self) -> int:
        return len(self._commands)

    def put(self, job: CommandJob) -> None:
        """Keep another; as a line, which takes a third of the room until it is run."""
        self._commands[job.job_id] = job.to_json()

    def forget(self, job_ids: Iterable[str]) -> None:
        """These will not be run again."""
        for job_id in job_ids:
            self._commands.pop(job_id, None)


_ONE: Final = (1).to_bytes(8, "little")


class Inbox:
    """A daemon's source: durable requests, given once, also over a change of daemons.

    Requests are put in by the thread that accepts them, and taken by the daemon's.
    """

    def __init__(self, store: SqlStore) -> None:
        self.commands = CommandsById(store.commands())
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
            if isinstance(each.request, Submit):
                self.commands.put(each.request.job)
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
