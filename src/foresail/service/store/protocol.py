"""What the service needs of a store; one process writes to it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from foresail.live.cluster_plugin import UseSample
from foresail.model.errors import ForesailError
from foresail.service.requests import NumberedRequest, Request

Row: TypeAlias = Mapping[str, Any]
"""Values by name of column."""


class StoreUnavailable(ForesailError):  # noqa: N818 - it says what it is
    """The store takes or tells nothing now: a full disk, no rights, no connection."""


@dataclass(frozen=True, slots=True)
class KeyedCall:
    """What one call asks for, all of it or nothing."""

    user: str
    """Who asks."""
    requests: tuple[Request, ...]
    """In order; the ids of jobs among them are given already."""
    client_key: str | None = None
    """The caller's own name for this call: asked again, it is answered as it was the first time."""
    first_number: int = 1
    """Number of the first job among them."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The requests of a call as they are written down; not ``is_new`` if they had been before.

    It ``conflicts`` if its key stands for something else that was asked before: that is what the
    requests are, and nothing of the call is written down.
    """

    requests: tuple[NumberedRequest, ...]
    is_new: bool = True
    conflicts: bool = False


@dataclass(frozen=True, slots=True)
class WholeStep:
    """What a step of the controller leaves, written at once or not at all."""

    lines: Sequence[str]
    """The step's records, a line each."""
    taken: int
    """Number of the last request that has been handed to the controller."""
    jobs: Mapping[str, Row] = field(default_factory=dict)
    """What has changed of jobs, by id: values by column."""
    about: Sequence[str | None] = ()
    """The job that each record is about, as ``record.subjects`` has it; () says nothing."""


@dataclass(frozen=True, slots=True)
class JobsWanted:
    """Which jobs are listed, newest first unless ``oldest_first``."""

    users: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """One of these; empty for all."""
    job_ids: tuple[str, ...] | None = None
    """These alone; None for all."""
    before: int | None = None
    after: int | None = None
    """Numbers of jobs between which they are (exclusive), for paging."""
    limit: int = 100
    """At most so many."""
    oldest_first: bool = False


@dataclass(frozen=True, slots=True)
class JobSpan:
    """When a job came, started and ended (Unix seconds; None: not yet), and its cpus."""

    cpus: int
    submit_seconds: float
    start_seconds: float | None
    end_seconds: float | None


@dataclass(frozen=True, slots=True)
class ForecastRow:
    """When a job was told to start: Unix seconds at 10, 50 and 90 %, as of ``made_seconds``.

    ``drawn_low_seconds`` and ``drawn_high_seconds`` are the range before it was corrected.
    """

    job_id: str
    made_seconds: float
    low_seconds: float
    median_seconds: float
    high_seconds: float
    drawn_low_seconds: float
    drawn_high_seconds: float


@dataclass(frozen=True, slots=True)
class Judged:
    """How many things were told with a range of 80 %, and what became of them."""

    told: int
    """How many have come about."""
    within: int
    below: int
    """How many of these were in their range, and how many came before it began."""


@dataclass(frozen=True, slots=True)
class AboutJob:
    """Records that a job's story follows from."""

    lines: Sequence[tuple[int, str]]
    """Numbers and lines, in order."""
    tells_of_others: bool
    """Whether all are there from the job's first to its last."""


class Store(Protocol):
    """Durable when a call returns; a call that raises has changed nothing.

    Calls come from several threads.
    """

    @property
    def identity(self) -> str:
        """What tells it from every other store; made once."""
        ...

    def next_number(self) -> int:
        """The number of the next job: one more than that of any job accepted or passed over."""
        ...

    def pass_over(self, number: int) -> None:
        """Give no job a number up to this one, which were given before."""
        ...

    def accept(self, asked: Sequence[KeyedCall]) -> list[Accepted]:
        """Write down what several calls ask for, in one transaction.

        Returns the answer to each call; to one that was asked before by the same user and client
        key, also among these, the requests of that time.
        """
        ...

    def requests_after(self, number: int) -> list[NumberedRequest]:
        """The requests behind one, in order."""
        ...

    def taken(self) -> int:
        """Number of the last request that the controller has been handed; 0 for none."""
        ...

    def commit_step(self, step: WholeStep) -> int:
        """Write down a step; returns the number of the log's last record."""
        ...

    def records(self, after: int = 0, limit: int | None = None) -> Iterator[tuple[int, str]]:
        """The event log behind a record: numbers (from 1) and lines."""
        ...

    def records_about(self, job: Row) -> AboutJob:
        """Those of the event log that a job's story follows from."""
        ...

    def last_record(self) -> int:
        """Number of the event log's last record; 0 where there is none."""
        ...

    def keep_snapshot(self, lines: Sequence[str], end: int) -> None:
        """Keep the records that matter of the log up to number ``end``, instead of an older one."""
        ...

    def snapshot(self) -> tuple[int, Sequence[str]] | None:
        """The number up to which the last snapshot reaches, and its lines."""
        ...

    def job(self, job_id: str) -> Row | None:
        """A job as it stands."""
        ...

    def jobs(self, wanted: JobsWanted) -> list[Row]:
        """Jobs as they stand."""
        ...

    def count(self, wanted: JobsWanted) -> int:
        """How many such jobs there are, on all pages."""
        ...

    def counts(self, user: str | None = None) -> Mapping[str, int]:
        """How many jobs there are in each state; of one user, or of all."""
        ...

    def keep_samples(self, samples: Sequence[UseSample]) -> None:
        """Keep what jobs were measured to use."""
        ...

    def samples(self) -> list[UseSample]:
        """What each job was measured to use, in order."""
        ...

    def spans(self, since_seconds: float, limit: int) -> list[JobSpan]:
        """The latest jobs that had not ended by a time, at most so many."""
        ...

    def keep_forecasts(self, rows: Sequence[ForecastRow]) -> None:
        """Keep forecasts of starts; of a job that has one, the one before stays."""
        ...

    def started_forecasts(self, limit: int) -> list[tuple[ForecastRow, float]]:
        """The forecasts of the jobs that started last, with when they did, in that order."""
        ...

    def judged_forecasts(self) -> Judged:
        """How forecasts of starts compare with when jobs have started."""
        ...

    def judged_runtimes(self) -> Judged:
        """How what was believed of runtimes compares with those of jobs that have completed."""
        ...

    def owners(self, job_ids: Collection[str]) -> Mapping[str, str]:
        """Whose these jobs are, by id."""
        ...

    def commands(self) -> Iterator[tuple[str, str]]:
        """Ids and commands of the jobs that are not done with, as lines, in order."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...
