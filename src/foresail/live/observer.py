"""What shows people a run while it goes on."""

from __future__ import annotations

from typing import Protocol

from foresail.control.loop import Controller
from foresail.model.job import Job
from foresail.model.outcome import Outcome
from foresail.record.jobs_fold import JobsFold


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

    def refreshed(self, controller: Controller, jobs: JobsFold) -> None:
        """How things stand now."""
        ...
