"""The records of the event log: what happened, was believed, decided and refused; where they go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Protocol

from foresail.model.cluster import Cluster
from foresail.model.containers import quickly_made
from foresail.model.decision import AlikeReasons, Instruction, Refusal
from foresail.model.event import STANDARD, Conventions, Ended, Event, NodeEvent, Occupied, Submitted
from foresail.model.job import JobSize
from foresail.model.view import Rejection, Reservation


@dataclass(frozen=True, slots=True)
class Manifest:
    """The first record of every session: all that is needed to repeat it."""

    policy: str
    """Short form of scheduler, predictor and correction."""
    cluster: Cluster
    conventions: Conventions = STANDARD
    seed: int | None = None

    versions: Mapping[str, str] = field(default_factory=dict)
    """Version by name of Foresail, Python and what results depend on."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 by name of every input file."""
    origin_unix_seconds: float | None = None
    """Unix time of second zero, where it is known."""
    starts_tasks: bool = False
    """True if jobs start in parts whose stages and tasks may start apart."""


@quickly_made
@dataclass(frozen=True, slots=True)
class EventTaken:
    """An event, in the order in which it was handed to a step; ``step`` counts from 0."""

    step: int
    time: float
    event: Event


@quickly_made
@dataclass(frozen=True, slots=True)
class Predicted:
    """The belief about a job's runtime, and the runtime planned with.

    The first of a job is the one at its submission; a further one is what is believed from then on,
    while it waits. ``belief`` holds quantiles (``foresail.record.beliefs``); none of a point.
    """

    step: int
    time: float
    job_id: str
    mean_seconds: float
    low_seconds: float
    median_seconds: float
    high_seconds: float
    planned_seconds: float
    belief: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class ReservationAnswered:
    """Answer to the reservation of a job with a deadline at its submission."""

    step: int
    time: float
    job_id: str
    answer: Reservation | Rejection


@quickly_made
@dataclass(frozen=True, slots=True)
class Decided:
    """One scheduling pass: what the scheduler saw in numbers, what it started and plans anew.

    ``plan`` holds the planned starts (seconds by job id) that differ from the pass before, and
    ``places`` the tasks by partition of those planned elsewhere than before or anew; ``dropped``
    are planned no more. All others are planned as before or, if the plan ``slides``, by as much
    later as this pass is later than that one. ``head`` is the job planned first; ``head_delayed``
    says that it was so before, and is planned for later now.
    """

    step: int
    time: float
    pending: int
    running: int
    free_cpus: float
    starts: tuple[str, ...]
    preemptions: tuple[str, ...]
    plan: Mapping[str, float]
    places: Mapping[str, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    slides: bool = False
    head: str | None = None
    head_delayed: bool = False


@dataclass(frozen=True, slots=True)
class Solved:
    """Quality of a pass's plan, as the scheduler says.

    ``value`` is what the plan is worth, ``bound`` what no plan exceeds, ``gap`` by what share of
    its value the best one may be better, ``columns`` the size of the last program (0: none was
    needed), ``failure`` what the solver said if it failed, ``left_out`` how many waiting jobs were
    not looked at. The rest depends on how quick the machine was: runs that are equal otherwise
    differ in it.
    """

    step: int
    time: float
    value: float
    bound: float
    gap: float
    columns: int
    cycle_seconds: float
    failure: str = ""
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Remembered:
    """Memory of the scheduler from a pass to the next, in its own words (plain values)."""

    step: int
    time: float
    memory: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sized:
    """Size of a job to the scheduler: when it is sampled, and when that is over."""

    step: int
    time: float
    size: JobSize


@dataclass(frozen=True, slots=True)
class Refused:
    """A part of a decision that did not reach the cluster."""

    step: int
    time: float
    refusal: Refusal


@quickly_made
@dataclass(frozen=True, slots=True)
class ReasonsChanged:
    """Reasons of waiting jobs that differ from before; one record for each kind."""

    step: int
    time: float
    reasons: AlikeReasons


@quickly_made
@dataclass(frozen=True, slots=True)
class Instructed:
    """An instruction to the cluster."""

    step: int
    time: float
    instruction: Instruction


@dataclass(frozen=True, slots=True)
class Corrected:
    """Next estimate of the total runtime of what runs; ``count`` is 1 at the first."""

    step: int
    time: float
    job_id: str
    count: int
    previous_seconds: float
    next_seconds: float
    stage: str = ""
    tasks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Drained:
    """From this step on nothing new is started."""

    step: int


@dataclass(frozen=True, slots=True)
class Reopened:
    """From this step on jobs are started again: the end of a drain."""

    step: int


@dataclass(frozen=True, slots=True)
class PolicyChanged:
    """From this step on another policy decides, which knows what the one before had learned.

    What that one kept and had promised is forgotten. ``starts_tasks`` is as in a manifest.
    """

    step: int
    policy: str
    starts_tasks: bool = False


@dataclass(frozen=True, slots=True)
class Forgotten:
    """From this step on a run that goes on knows nothing more of these jobs, which have ended.

    The log still has them: what reads it to know what happened skips this record.
    """

    step: int
    job_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Committed:
    """All records since the last of these are there: the step was whole when it was written.

    Logs of live runs have one after every step: a crash may leave a part of one.
    """


@dataclass(slots=True)
class Counters:
    """Counters of a controller's decisions; in a log, those so far where records are left out.

    ``passes`` in which a job could start (ticks without news pass by a scheduler that
    ``ignores_time``); ``corrections``; ``refusals``: parts of decisions that
    were let through to no job; ``delayed_heads``: passes after which the job planned first is the
    same as before and its planned start is later.
    """

    passes: int = 0
    corrections: int = 0
    refusals: int = 0
    delayed_heads: int = 0

    def take(self, record: Record) -> None:
        """Count the next record of a run."""
        match record:
            case Decided():
                self.passes += 1
                self.delayed_heads += record.head_delayed
            case Corrected():
                self.corrections += 1
            case Refused():
                self.refusals += 1
            case Counters():
                for name, count in asdict(record).items():
                    setattr(self, name, count)


Record = (
    Manifest
    | EventTaken
    | Predicted
    | ReservationAnswered
    | Decided
    | Solved
    | Remembered
    | Sized
    | Refused
    | ReasonsChanged
    | Instructed
    | Corrected
    | Drained
    | Reopened
    | PolicyChanged
    | Forgotten
    | Committed
    | Counters
)


class EventLog(Protocol):
    """Destination of records."""

    def append(self, record: Record) -> None:
        """Take one record."""

    def commit(self) -> None:
        """Called once at the end of every step, before its instructions reach a cluster."""


class NullLog:
    """Keeps nothing; control does not even make the records."""

    def append(self, record: Record) -> None:
        """Forget the record."""

    def commit(self) -> None:
        """Do nothing."""


NODES: Final = "nodes"
"""Subject of records about nodes; no job's id."""

_NOBODY: Final = ""


def about(record: Record) -> str | None:
    """The id of the job that a record is about, or ``NODES``; None where there may be several."""
    match record:
        case EventTaken(event=Submitted(job=job)):
            return job.job_id
        case EventTaken(event=Ended(outcome=outcome)):
            return outcome.job_id
        case EventTaken(event=event) if isinstance(event, NodeEvent | Occupied):
            return NODES
        case EventTaken(event=event):
            return getattr(event, "job_id", _NOBODY)
        case Instructed(instruction=instruction):
            return instruction.job_id
        case Refused(refusal=refusal):
            return refusal.job_id
        case Sized(size=size):
            return size.job_id
        case ReasonsChanged(reasons=reasons):
            return reasons.job_ids[0] if len(reasons.job_ids) == 1 else None
        case Decided():
            return None
    return getattr(record, "job_id", _NOBODY)
