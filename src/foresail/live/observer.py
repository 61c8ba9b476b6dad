"""People as a daemon knows them: whom it shows what happens, and whose jobs and wishes it takes."""

from __future__ import annotations

from collections.abc import Container, Sequence
from enum import Enum, auto
from typing import Protocol

from foresail.control.loop import Controller
from foresail.model.event import Event
from foresail.model.job import Job
from foresail.model.outcome import Outcome
from foresail.record.job_life import JobHistory


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
        """What is new; raises ``InputError`` if it cannot be written down."""
        ...

    def wish(self, interrupts: int) -> Wish:
        """What is wished after so many interrupts by signals."""
        ...

    def close(self) -> None:
        """Take nothing more."""
        ...


class Observer(Protocol):
    """Shows what happens, while it happens."""

    refresh_seconds: float
    """How often ``refreshed`` is wanted though nothing happens; infinite for never."""

    def started(self, job: Job, attempt: int) -> None:
        """An attempt of a job starts."""
        ...

    def ended(self, job: Job, outcome: Outcome) -> None:
        """An attempt of a job has ended."""
        ...

    def withdrawn(self, job: Job, because: str) -> None:
        """A job will never run."""
        ...

    def note(self, sentence: str) -> None:
        """Something else that a person should know."""
        ...

    def refreshed(self, controller: Controller, jobs: JobHistory) -> None:
        """How things stand now."""
        ...
