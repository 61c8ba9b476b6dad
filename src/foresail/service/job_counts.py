"""How many jobs of each user wait: counted by the store now and then."""

from __future__ import annotations

import threading
import time
from typing import Final

from foresail.service.store.protocol import Store

FRESH_SECONDS: Final = 2.0


class JobCounts:
    """Counts that are asked for at every call, and would cost the store a look at all jobs each.

    Parameters
    ----------
    store
        Counts them.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._waiting: dict[str, tuple[float, int]] = {}

    def reserve(self, user: str, jobs: int, most: int) -> int | None:
        """Let so many more jobs of a user wait; how many do, if that would be too many.

        Calls at the same time cannot all have the last places. They are counted when a user first
        submits; that some wait no more is looked for only when there would be too many.
        """
        with self._lock:
            now = time.monotonic()
            counted, waiting = self._waiting.get(user, (-float("inf"), most))
            if waiting + jobs > most and now - counted > FRESH_SECONDS:
                counts = self._store.counts(user)
                counted, waiting = now, counts.get("pending", 0) + counts.get("held", 0)
            if waiting + jobs > most:
                self._waiting[user] = counted, waiting
                return waiting
            self._waiting[user] = counted, waiting + jobs
            return None
