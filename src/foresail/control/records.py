"""The records of the event log: what happened, what was believed, decided, refused and told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from foresail.control.check import Refusal
from foresail.control.conventions import FORESAIL, Conventions
from foresail.model.cluster import Cluster
from foresail.model.decision import Instruction
from foresail.model.event import Event
from foresail.model.reason import Reason


@dataclass(frozen=True, slots=True)
class Manifest:
    """The first record of every session: all that is needed to repeat it.

    Parameters
    ----------
    policy
        Short form of scheduler, predictor and correction.
    versions
        Version by name of Foresail, Python and what results depend on.
    inputs
        SHA-256 by name of every input file.
    origin_unix_seconds
        Unix time of second zero, where it is known.
    """

    policy: str
    cluster: Cluster
    conventions: Conventions = FORESAIL
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    origin_unix_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class EventTaken:
    """An event, in the order in which it was handed to a step; ``step`` counts from 0."""

    step: int
    time: float
    event: Event


@dataclass(frozen=True, slots=True)
class Predicted:
    """The belief about a job's runtime at its submission, and the runtime planned with."""

    step: int
    time: float
    job_id: str
    mean_seconds: float
    low_seconds: float
    median_seconds: float
    high_seconds: float
    planned_seconds: float


@dataclass(frozen=True, slots=True)
class Decided:
    """One scheduling pass: what the scheduler saw in numbers, what it started and plans anew.

    ``plan`` holds the planned starts (seconds by job id) that differ from the pass before.
    """

    step: int
    time: float
    pending: int
    running: int
    free_cpus: float
    starts: tuple[str, ...]
    preemptions: tuple[str, ...]
    plan: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Refused:
    """A part of a decision that did not reach the cluster."""

    step: int
    time: float
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class ReasonChanged:
    """Why a job waits, where that differs from before."""

    step: int
    time: float
    job_id: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Instructed:
    """An instruction to the cluster."""

    step: int
    time: float
    instruction: Instruction


@dataclass(frozen=True, slots=True)
class Corrected:
    """A running job's next estimate of its total runtime; ``count`` is 1 at the first."""

    step: int
    time: float
    job_id: str
    count: int
    previous_seconds: float
    next_seconds: float


@dataclass(frozen=True, slots=True)
class Drained:
    """From this step on nothing new is started."""

    step: int


@dataclass(frozen=True, slots=True)
class Reopened:
    """From this step on jobs are started again: the end of a drain."""

    step: int


Record = (
    Manifest
    | EventTaken
    | Predicted
    | Decided
    | Refused
    | ReasonChanged
    | Instructed
    | Corrected
    | Drained
    | Reopened
)
