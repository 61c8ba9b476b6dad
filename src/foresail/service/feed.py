"""The feed: what happens, as it becomes durable, written once for all who follow it."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from foresail.model import event as events
from foresail.model.decision import Start, Withdraw
from foresail.model.event import REQUEUED
from foresail.record.log_text import parse_record
from foresail.record.records import Decided, EventTaken, Instructed, Record
from foresail.service.store.sql_store import SqlStore

_LOG: Final = logging.getLogger("foresail.service")
_AT_ONCE: Final = 500
"""Records that are sent together."""

_KEPT_CHUNKS: Final = 128
_MOST_ARRIVED: Final = 20_000
_REST_SECONDS: Final = 0.0005
"""For each follower there is so much between one sending and the next: however many there
are and whatever happens, they are sent no more than 2,000 texts a second."""

_REPLAY_SHARE: Final = 0.25
"""Share of one thread's time that reading on from the store may take for all followers together."""

_AFTER_FAULT_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class FeedItem:
    """Item that a record of the log has for those who follow."""

    number: int
    """Number of the record."""
    kind: str = ""
    """``job``, ``node`` or ``step``; empty where it is nothing to them."""
    job_id: str = ""
    """Job that it is about, of kind ``job``."""
    says: Mapping[str, Any] | None = None
    """Content of the record."""


_OF_NODES: Final = events.NodeEvent | events.OperatorEvent
_OF_WAITING: Final = events.Cancelled | events.Held | events.Released


def feed_item(number: int, record: Record) -> FeedItem:
    """Return what a record has for those who follow."""
    match record:
        case EventTaken(time=now, event=events.Submitted(job=job)):
            return _of_job(number, now, job.job_id, "submitted", state="pending")
        case EventTaken(time=now, event=event) if isinstance(event, _OF_WAITING):
            return _of_job(number, now, event.job_id, _what(event))
        case EventTaken(time=now, event=events.Ended(outcome=outcome)):
            because = outcome.ended_because
            state = "pending" if because in REQUEUED else str(because)
            return _of_job(
                number, now, outcome.job_id, "ended", state=state, exit_code=outcome.exit_code
            )
        case EventTaken(time=now, event=events.Began(job_id=job_id, attempt=attempt)):
            return _of_job(number, now, job_id, "began", state="running", attempt=attempt)
        case EventTaken(time=now, event=events.NotStarted() as event):
            why = {"state": "pending", "because": event.sentence}
            return _of_job(number, now, event.job_id, "not started", **why)
        case Instructed(time=now, instruction=Start(job_id, attempt=attempt)):
            return _of_job(number, now, job_id, "started", state="running", attempt=attempt)
        case Instructed(time=now, instruction=Withdraw(job_id, because)):
            return _of_job(number, now, job_id, "withdrawn", state="withdrawn", because=because)
        case EventTaken(time=now, event=event) if isinstance(event, _OF_NODES):
            node = event.node if isinstance(event.node, str) else event.node.name
            says = {"time": now, "node": node, "what": _what(event).removeprefix("node")}
            return FeedItem(number, "node", says=says)
        case Decided(time=now):
            says = {
                "time": now,
                "pending": record.pending,
                "running": record.running + len(record.starts),
                "started": len(record.starts),
            }
            return FeedItem(number, "step", says=says)
        case _:
            return FeedItem(number)


def _of_job(number: int, now: float, job_id: str, what: str, **more: Any) -> FeedItem:
    return FeedItem(number, "job", job_id, {"time": now, "job_id": job_id, "what": what, **more})


def _what(event: events.Event) -> str:
    """Return what has happened: ``held`` of ``Held``."""
    return type(event).__name__.lower()


@dataclass(frozen=True, slots=True)
class Chunk:
    """Chunk of records in the form of server-sent events."""

    after: int
    """Number of the record before them."""
    last: int
    """Number of the last of them."""
    lines: Sequence[tuple[int, str | None, str]]
    """Number, whom it is shown to (None: everybody), and text."""
    says_whose: bool
    """True if that was looked up; else it is for those who see everything."""
    _whole: dict[str | None, str] = field(default_factory=dict)

    def text(self, after: int, sees: str | None) -> str:
        """Return one follower's text: behind a number, what this user sees (None: all of it)."""
        if after > self.after:
            return self._shown(after, sees)
        if sees not in self._whole:
            self._whole[sees] = self._shown(self.after, sees)
        return self._whole[sees]

    def _shown(self, after: int, sees: str | None) -> str:
        shown = (None, sees)
        return "".join(
            text
            for number, user, text in self.lines
            if number > after and (sees is None or user in shown)
        )


class Feed:
    """Sends what happens once to all who follow; nothing, and at no cost, where nobody does.

    A follower that comes late, or is too slow for what is kept, reads on from the store, page by
    page, so that the daemon never waits and nothing is left out.
    """

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._arrived: deque[tuple[int, Record]] = deque()
        self._chunks: deque[Chunk] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._followers: Counter[str] = Counter()
        self._users_followed: Counter[str | None] = Counter()
        self.is_closed = False
        self.last = self._kept_from = store.last_record()
        """Numbers: of the last record, and from which on all are among the chunks or will be."""

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin with the loop in which followers are served."""
        self._news, self._woken = asyncio.Event(), asyncio.Event()
        self._one_replay = asyncio.Lock()
        self._loop = loop
        self._publishing = loop.create_task(self._publish())

    def committed(self, first: int, records: Sequence[Record]) -> None:
        """Take records that are durable, from this number on; in the daemon's thread."""
        with self._lock:
            self.last = first + len(records) - 1
            if not self._followers:
                return
            self._arrived.extend(enumerate(records, first))
            if len(self._arrived) > _MOST_ARRIVED:
                self._arrived.clear()
                self._kept_from = self.last
        self._wake()

    def close(self) -> None:
        """There will be no more; those who follow come to an end."""
        self.is_closed = True
        self._wake()

    def followers(self, key: str) -> tuple[int, int]:
        """Return how many follow under a key, and in all."""
        return self._followers[key], self._followers.total()

    @contextmanager
    def following(self, key: str, sees: str | None) -> Iterator[None]:
        """Count a follower, who sees what is a user's (None: everything)."""
        with self._lock:
            if not self._followers:  # nothing has been sent since the last of them
                self._arrived.clear()
                self._chunks.clear()
                self._kept_from = self.last
            self._followers[key] += 1
            self._users_followed[sees] += 1
        try:
            yield
        finally:
            with self._lock:
                self._followers -= Counter([key])
                self._users_followed -= Counter([sees])

    async def after(self, number: int, sees: str | None, wait_seconds: float) -> tuple[int, str]:
        """Return the text of some records behind a number, and the number to go on from.

        The same number if there are none for so long.
        """
        if number < self._kept_from:
            return await self._replayed(number, sees)
        if not self._chunks or self._chunks[-1].last <= number:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), wait_seconds)
        chunk = next((each for each in self._chunks if each.after <= number < each.last), None)
        if chunk is None:
            return number, ""
        if sees is not None and not chunk.says_whose:
            return await self._replayed(number, sees)
        return chunk.last, chunk.text(number, sees)

    async def _publish(self) -> None:
        """Make chunks of what arrives, and wake all followers; they wait for the next then."""
        while not self.is_closed:
            await self._woken.wait()
            self._woken.clear()
            while some := self._taken():
                try:
                    says_whose = bool(self._users_followed.keys() - {None})
                    self._chunks.append(await self._chunk(some, says_whose=says_whose))
                    gone = self._chunks.popleft().last if len(self._chunks) > _KEPT_CHUNKS else 0
                except Exception:  # the store's, as a rule, from which all is read later
                    _LOG.exception("those who follow hear later")
                    gone = some[-1][0]
                    await asyncio.sleep(_AFTER_FAULT_SECONDS)
                with self._lock:
                    self._kept_from = max(self._kept_from, gone)
                self._turn()
                await asyncio.sleep(_REST_SECONDS * self._followers.total())
        self._turn()

    def _taken(self) -> list[tuple[int, Record]]:
        with self._lock:
            count = min(_AT_ONCE, len(self._arrived))
            return [self._arrived.popleft() for _ in range(count)]

    async def _replayed(self, number: int, sees: str | None) -> tuple[int, str]:
        """The same from the store, one page after the other, whoever asks."""
        async with self._one_replay:
            begin = time.perf_counter()
            some = await asyncio.to_thread(self._stored_after, number)
            if not some:
                return self._kept_from, ""
            chunk = await self._chunk(some, says_whose=sees is not None)
            await asyncio.sleep((time.perf_counter() - begin) * (1.0 / _REPLAY_SHARE - 1.0))
        return chunk.last, chunk.text(number, sees)

    def _stored_after(self, number: int) -> list[tuple[int, Record]]:
        return [
            (each, parse_record(line, "event log", each))
            for each, line in self._store.records(after=number, limit=_AT_ONCE)
        ]

    async def _chunk(self, some: Sequence[tuple[int, Record]], *, says_whose: bool) -> Chunk:
        items = [each for each in (feed_item(*numbered) for numbered in some) if each.kind]
        job_ids = {each.job_id for each in items if each.job_id}
        owners: Mapping[str, str] = {}
        if job_ids and says_whose:
            owners = await asyncio.to_thread(self._store.owners, job_ids)
        lines = [
            (
                each.number,
                owners.get(each.job_id, "") if each.job_id else None,
                f"id: {each.number}\nevent: {each.kind}\ndata: {json.dumps(each.says)}\n\n",
            )
            for each in items
        ]
        return Chunk(some[0][0] - 1, some[-1][0], lines, says_whose)

    def _wake(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._woken.set)

    def _turn(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
