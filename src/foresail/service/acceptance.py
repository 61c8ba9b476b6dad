"""Acceptance: requests made durable, many callers' in one transaction, before they are answered."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Final, TypeAlias

from foresail.model.errors import ForesailError
from foresail.service.inbox import Inbox
from foresail.service.store.protocol import Accepted, KeyedCall, Request, Submit
from foresail.service.store.sql_store import SqlStore

Numbered: TypeAlias = Callable[[int], Sequence[Request]]
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
    answer: Future[Accepted] = field(default_factory=Future)


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

    def ask(self, user: str, make: Numbered, client_key: str | None = None) -> Future[Accepted]:
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
            self._accept([call for call in calls if call is not None])

    def _accept(self, calls: Sequence[_Call]) -> None:
        """Answer calls, each that can be; where no job can be accepted, wishes may yet be."""
        made: list[tuple[_Call, KeyedCall]] = []
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
                made.append((call, KeyedCall(call.user, requests, call.client_key, number)))
                number += _jobs_in(requests)
            if number > self._store.next_number():
                self._set_aside(number - 1)
            answers = self._store.accept([asked for _, asked in made])
        except Exception as error:
            self._may_have_missed = True
            wishes = [call for call, asked in made if not _jobs_in(asked.requests)]
            again = wishes if len(wishes) < len(made) else []
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


def _jobs_in(requests: Sequence[Request]) -> int:
    return sum(isinstance(each, Submit) for each in requests)
