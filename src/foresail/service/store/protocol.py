"""What people ask of the service, what it hands to its store, and what the store tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias

from foresail.live.command_job import CommandJob
from foresail.model.errors import ForesailError


@dataclass(frozen=True, slots=True)
class Submit:
    """A job is to run; in state held if ``held``."""

    job: CommandJob
    held: bool = False


class JobWish(StrEnum):
    """What may be wished of a job that is not done with."""

    CANCEL = "cancel"
    HOLD = "hold"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class ForJob:
    """Something is wished of a job."""

    wish: JobWish
    job_id: str


class NodeWish(StrEnum):
    """What may be wished of a node."""

    DRAIN = "drain"
    RESUME = "resume"


@dataclass(frozen=True, slots=True)
class ForNode:
    """Something is wished of a node."""

    wish: NodeWish
    node: str


Request: TypeAlias = Submit | ForJob | ForNode


@dataclass(frozen=True, slots=True)
class NumberedRequest:
    """A request as it was accepted."""

    number: int
    """Its place in the order of all requests, from 1."""
    unix_seconds: float
    """When it was accepted."""
    user: str
    """Who asked."""
    request: Request
    """What was asked for."""


Row: TypeAlias = Mapping[str, Any]
"""Values by name of column."""

LIVING_STATES: Final = ("running", "pending", "held")
"""States that a job leaves again."""


OUT_OF_MEMORY: Final = "out_of_memory"
"""Asked for as a state: jobs in state ``limit`` that ended at their limit of memory."""


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
    """The job that each record is about, as ``record.records.about`` has it; () says nothing."""


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
