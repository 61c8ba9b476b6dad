"""Values that take long to make: the one made last is given at once, and made anew meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Generic, ParamSpec, TypeVar

Value = TypeVar("Value")
Given = ParamSpec("Given")

_SHARE: Final = 20.0
"""A value is made anew no sooner than so many times as long after it was as making it took."""

_SOON_SECONDS: Final = 0.02
_OLDEST_SECONDS: Final = 600.0
"""One that is made so soon is always waited for, and so is one of which the last is so old."""

_SLOW: Final = ThreadPoolExecutor(2, thread_name_prefix="slow")
"""What looks at all jobs works here, so that no short question waits behind it for a thread."""


async def slowly(
    function: Callable[Given, Value], *args: Given.args, **kwargs: Given.kwargs
) -> Value:
    """Have something done that takes long, beside everything else."""
    return await asyncio.wrap_future(_SLOW.submit(function, *args, **kwargs))


class Lately(Generic[Value]):
    """A value as it was not long ago.

    Parameters
    ----------
    make
        Makes it.
    """

    def __init__(self, make: Callable[[], Awaitable[Value]]) -> None:
        self._make = make
        self._latest: asyncio.Task[Value] | None = None
        self._making: asyncio.Task[Value] | None = None
        self._made_monotonic = -float("inf")
        self._cost_seconds = 0.0

    async def get(self) -> Value:
        """The value made last, if it takes long to make and is not old; else one made now."""
        age = time.monotonic() - self._made_monotonic
        if self._making is None and age > _SHARE * self._cost_seconds:
            self._making = asyncio.create_task(self._remake())
        is_old = self._cost_seconds < _SOON_SECONDS or age > _OLDEST_SECONDS
        task = self._making if is_old and self._making is not None else self._latest
        assert task is not None
        return await asyncio.shield(task)

    async def _remake(self) -> Value:
        begin, task = time.monotonic(), self._making
        try:
            value = await self._make()
            self._latest, self._made_monotonic = task, time.monotonic()
            self._cost_seconds = self._made_monotonic - begin
            return value
        finally:
            self._making = None
