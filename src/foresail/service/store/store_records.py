"""What the store takes and tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from foresail.model.errors import ForesailError
from foresail.service.requests import NumberedRequest, Request

Row: TypeAlias = Mapping[str, Any]
"""Values by name of column."""


class StoreUnavailable(ForesailError):  # noqa: N818 - it says what it is
    """The store takes or tells nothing now: a full disk, no rights, no connection."""


@dataclass(frozen=True, slots=True)
class KeyedCall:
    """What one call asks for, all of it or nothing.

    Parameters
    ----------
    user
        Who asks.
    requests
        In order; the ids of jobs among them are given already.
    client_key
        The caller's own name for this call: asked again, it is answered as it was the first time.
    """

    user: str
    requests: tuple[Request, ...]
    client_key: str | None = None


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
    """What a step of the controller leaves, written at once or not at all.

    Parameters
    ----------
    lines
        The step's records, a line each.
    taken
        Number of the last request that has been handed to the controller.
    jobs
        What has changed of jobs, by id: values by column.
    """

    lines: Sequence[str]
    taken: int
    jobs: Mapping[str, Row] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobsWanted:
    """Which jobs are listed, newest first unless ``oldest_first``.

    Parameters
    ----------
    users, states, names
        One of these; empty for all.
    before, after
        Numbers of jobs between which they are (exclusive), for paging.
    limit
        At most so many.
    """

    users: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    before: int | None = None
    after: int | None = None
    limit: int = 100
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
    """How many things were told with a range of 80 %, and what became of them.

    Parameters
    ----------
    told
        How many have come about.
    within, below
        How many of these were in their range, and how many came before it began.
    """

    told: int
    within: int
    below: int
