"""How many jobs there are by state, and wait by user: counted by the store now and then."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Final

from foresail.service.store.protocol import Store

FRESH_SECONDS: Final = 2.0


class JobCounts:
    """Counts that are asked for at every call, and would cost the store as many looks at all jobs.

    Parameters
    ----------
    store
        Counts them.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._by_state: Mapping[str, int] = {}
        self._counted_monotonic = -float("inf")
        self._waiting: dict[str, tuple[float, int]] = {}

    def by_state(self) -> Mapping[str, int]:
        """How many there are in each state, as it was not long ago."""
        with self._lock:
            now = time.monotonic()
            if now - self._counted_monotonic > FRESH_SECONDS:
                self._by_state = self._store.counts()
                self._counted_monotonic = now
            return self._by_state

    def reserve(self, user: str, jobs: int, most: int) -> int | None:
        """Let so many more jobs of a user wait; how many do, if that would be too many.

        Calls at the same time cannot all have the last places.
        """
        with self._lock:
            now = time.monotonic()
            counted, waiting = self._waiting.get(user, (-float("inf"), 0))
            if now - counted > FRESH_SECONDS:
                counts = self._store.counts(user)
                counted, waiting = now, counts.get("pending", 0) + counts.get("held", 0)
            if waiting + jobs > most:
                self._waiting[user] = counted, waiting
                return waiting
            self._waiting[user] = counted, waiting + jobs
            return None
