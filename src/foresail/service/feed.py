"""The feed: what happens, as it becomes durable, for all who follow it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from foresail.model.decision import Start, Withdraw
from foresail.model.event import (
    Cancelled,
    Ended,
    Held,
    NodeAdded,
    NodeChanged,
    NodeDown,
    NodeDrained,
    NodeRemoved,
    NodeResumed,
    NodeUp,
    Released,
    Submitted,
)
from foresail.model.outcome import GOES_BACK
from foresail.record.log_text import parse_record
from foresail.record.records import Decided, EventTaken, Instructed, Record
from foresail.service.store.protocol import Store

KEPT: Final = 20_000
"""How many of the latest records are kept in memory for those who follow."""

_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class Told:
    """What a record of the log tells those who follow."""

    number: int
    """Of the record."""
    kind: str = ""
    """``job``, ``node`` or ``step``; empty where it tells them nothing."""
    job_id: str = ""
    """Whom it is about, of kind ``job``."""
    says: Mapping[str, Any] | None = None
    """What it says."""


def told(number: int, record: Record) -> Told:
    """What a record tells."""
    match record:
        case EventTaken(time=now, event=Submitted(job=job)):
            return _of_job(number, now, job.job_id, "submitted", state="pending")
        case EventTaken(time=now, event=Cancelled(job_id=job_id)):
            return _of_job(number, now, job_id, "cancelled")
        case EventTaken(time=now, event=Held(job_id=job_id)):
            return _of_job(number, now, job_id, "held")
        case EventTaken(time=now, event=Released(job_id=job_id)):
            return _of_job(number, now, job_id, "released")
        case EventTaken(time=now, event=Ended(outcome=outcome)):
            because = outcome.ended_because
            state = "pending" if because in GOES_BACK else str(because)
            return _of_job(
                number, now, outcome.job_id, "ended", state=state, exit_code=outcome.exit_code
            )
        case Instructed(time=now, instruction=Start(job_id, attempt=attempt)):
            return _of_job(number, now, job_id, "started", state="running", attempt=attempt)
        case Instructed(time=now, instruction=Withdraw(job_id, because)):
            return _of_job(number, now, job_id, "withdrawn", state="withdrawn", because=because)
        case EventTaken(time=now, event=NodeAdded() | NodeChanged() as event):
            says = {"time": now, "node": event.node.name, "what": _NODE_NEWS[type(event)]}
            return Told(number, "node", says=says)
        case EventTaken(
            time=now,
            event=(NodeDown() | NodeUp() | NodeRemoved() | NodeDrained() | NodeResumed()) as named,
        ):
            says = {"time": now, "node": named.node, "what": _NODE_NEWS[type(named)]}
            return Told(number, "node", says=says)
        case Decided(time=now):
            says = {
                "time": now,
                "pending": record.pending,
                "running": record.running + len(record.starts),
                "started": len(record.starts),
            }
            return Told(number, "step", says=says)
        case _:
            return Told(number)


def _of_job(number: int, now: float, job_id: str, what: str, **more: Any) -> Told:
    return Told(number, "job", job_id, {"time": now, "job_id": job_id, "what": what, **more})


_NODE_NEWS: Final[Mapping[type, str]] = {
    NodeAdded: "added",
    NodeChanged: "changed",
    NodeDown: "down",
    NodeUp: "up",
    NodeRemoved: "removed",
    NodeDrained: "drained",
    NodeResumed: "resumed",
}


class Feed:
    """Keeps the latest records and wakes those who follow, each at its own pace.

    A follower that is too slow for what is kept reads on from the store, so that the daemon never
    waits, and nothing is left out.

    Parameters
    ----------
    store
        Where all records are.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._latest: deque[Told] = deque(maxlen=KEPT)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news: asyncio.Event | None = None
        self.is_closed = False
        self.last = store.last_record()
        """Number of the last record."""

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Who follows does so in this loop."""
        self._news = asyncio.Event()
        self._loop = loop

    def committed(self, first: int, records: Sequence[Record]) -> None:
        """Take records that are durable, from this number on; in the daemon's thread."""
        if first != self.last + 1:  # what is between was written while the store was going away
            self._latest.clear()
        for number, record in enumerate(records, first):
            self._latest.append(told(number, record))
        self.last = first + len(records) - 1
        self._wake()

    def close(self) -> None:
        """There will be no more; those who follow come to an end."""
        self.is_closed = True
        self._wake()

    async def after(self, number: int, wait_seconds: float) -> list[Told]:
        """What records behind a number tell, some of it; nothing if nothing comes for so long."""
        if self.last <= number and not self.is_closed:
            await self._some_news(number, wait_seconds)
        if self.last <= number or self.is_closed:
            return []
        kept = self._latest[0].number if self._latest else self.last + 1
        if number + 1 >= kept:
            return self._kept_after(number)
        return await asyncio.to_thread(self._stored_after, number)

    def _kept_after(self, number: int) -> list[Told]:
        latest = self._latest
        while True:
            try:
                return list(islice(latest, max(0, number + 1 - latest[0].number), None))
            except RuntimeError:  # the daemon has just added to it
                continue

    def _stored_after(self, number: int) -> list[Told]:
        return [
            told(each, parse_record(line, "event log", each))
            for each, line in self._store.records(after=number, limit=_AT_ONCE)
        ]

    async def _some_news(self, number: int, wait_seconds: float) -> None:
        news = self._news
        assert news is not None
        if self.last > number or self.is_closed:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(news.wait(), wait_seconds)

    def _wake(self) -> None:
        if self._loop is None or self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._turn)

    def _turn(self) -> None:
        """Wake all followers; those that come from now on wait for the next."""
        if self._news is not None:
            self._news.set()
            self._news = asyncio.Event()
