"""Where a daemon's jobs come from, and what people wish of them and of the daemon."""

from __future__ import annotations

from collections.abc import Container, Sequence
from enum import Enum, auto
from typing import Protocol

from foresail.model.event import Event


class Wish(Enum):
    """What is wished of a daemon."""

    GO_ON = auto()
    DRAIN = auto()
    """Nothing new starts, and it is done once what runs has ended."""
    STOP = auto()
    """As ``DRAIN``, and what runs is stopped, which counts as not done."""
    LEAVE = auto()
    """It goes at once; what runs runs on, and the next daemon finds it again."""


class EventSource(Protocol):
    """Gives a daemon events that come from people, each of which is on disk before."""

    @property
    def descriptor(self) -> int | None:
        """Readable when there may be something new; None once there will be nothing more."""
        ...

    def earlier(self, known: Container[str], now: float) -> Sequence[Event]:
        """What an earlier daemon was told and did not take; it knew jobs of these ids."""
        ...

    def arrived(self, now: float) -> Sequence[Event]:
        """What is new.

        Raises
        ------
        InputError
            If it cannot be written down.
        """
        ...

    def wish(self, interrupts: int) -> Wish:
        """What is wished after so many interrupts by signals."""
        ...

    def close(self) -> None:
        """Take nothing more."""
        ...
