"""Events, as a cluster reports them, outcomes of attempts, and conventions of order at an instant.

An allocation is what is started, moved, stopped and ends as one; an outcome, how an attempt ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias, get_args

from foresail.model.cluster import Node, Placement, Resources
from foresail.model.containers import quickly_made
from foresail.model.job import Job
from foresail.model.registry import DEPRECATED


class Allocation(NamedTuple):
    """One attempt of a job, of a stage of it, or of some tasks of a stage."""

    job_id: str
    """Id of the job."""
    stage: str = ""
    """Name of the stage; empty: all of the job, whose tasks start together."""
    tasks: tuple[int, ...] = ()
    """Numbers of the tasks within the stage, from 0 on; empty: all of them."""
    attempt: int = 1
    """Counts from 1; an attempt that is requeued has a next one."""


class Part(NamedTuple):
    """Part of a job that runs as one, where that is not all of it, whichever attempt it is.

    ``tasks`` are empty where it is a stage whose tasks start together.
    """

    job_id: str
    stage: str
    tasks: tuple[int, ...] = ()


Unit: TypeAlias = str | Part
"""Unit that starts, runs and ends as one: a whole job, known by its id, or a part of one."""


def job_of(unit: Unit) -> str:
    """Return the id of the job that a unit belongs to."""
    return unit if isinstance(unit, str) else unit.job_id


class OfUnit(Protocol):
    """A record that says, or asks, something of a whole job or of a part of one."""

    @property
    def job_id(self) -> str:
        """Return the id of the job."""

    @property
    def stage(self) -> str:
        """Name of the stage; empty: all of the job."""

    @property
    def tasks(self) -> tuple[int, ...]:
        """Numbers of the tasks within the stage; empty: all of them."""


def unit_of(record: OfUnit) -> Unit:
    """Return the unit of a job that a record is about."""
    if not record.stage:
        return record.job_id
    return Part(record.job_id, record.stage, record.tasks)


class EndedBecause(StrEnum):
    """Reason why an attempt ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    LIMIT = "limit"
    CANCELLED = "cancelled"
    PREEMPTED = "preempted"
    LOST = "lost"
    REVOKED = "revoked"
    """Its place was taken back, which is no failure of anything."""


REQUEUED: Final = frozenset({EndedBecause.PREEMPTED, EndedBecause.LOST, EndedBecause.REVOKED})
"""An attempt that ended so was not the job's last: the job is requeued in its place."""


@quickly_made
@dataclass(frozen=True, slots=True)
class Outcome:
    """One ended attempt; times in seconds from the workload's origin.

    ``slowdown`` is how many times longer it ran where it was than where the job runs best. ``used``
    is what was measured of each of its tasks, on average, by the names of
    ``foresail.traces.measured``; of an attempt that is requeued, the most cpu time and memory
    of any task. ``reason`` says why it ended, where that is not plain from the rest.
    """

    job_id: str
    start_seconds: float
    end_seconds: float
    ended_because: EndedBecause = EndedBecause.COMPLETED
    exit_code: int | None = None
    attempt: int = 1
    slowdown: float = 1.0
    stage: str = ""
    tasks: tuple[int, ...] = ()
    used: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""

    @property
    def allocation(self) -> Allocation:
        """Return the allocation that has ended."""
        return Allocation(self.job_id, self.stage, self.tasks, self.attempt)

    @property
    def runtime_seconds(self) -> float:
        """Seconds the attempt really ran."""
        return self.end_seconds - self.start_seconds

    @property
    def preferred_runtime_seconds(self) -> float:
        """Seconds it would have run where the job runs best: what there is to learn from it."""
        return self.runtime_seconds / self.slowdown


@quickly_made
@dataclass(frozen=True, slots=True)
class Submitted:
    """A job arrived in the queue."""

    time: float
    job: Job


@quickly_made
@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt of a job ended."""

    time: float
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Began:
    """An attempt runs, since when and where the cluster says: by our start, or by no start of ours.

    What is not ours holds its room and is believed in as any other; it is never stopped to make
    room.
    """

    time: float
    job_id: str
    attempt: int
    placement: Placement
    start_seconds: float
    ours: bool = True
    """True if it was instructed."""
    stage: str = ""
    tasks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class NotStarted:
    """A start was not carried out: nothing ran of it, and the job is requeued in its place."""

    time: float
    job_id: str
    attempt: int
    sentence: str
    """Reason, for people."""
    again_after_seconds: float
    """Time from then until the job may be started again."""
    stage: str = ""
    tasks: tuple[int, ...] = ()


@quickly_made
@dataclass(frozen=True, slots=True)
class EstimateExpired:
    """Expiry of an estimate: a job has run as long as the estimate said, and runs on."""

    time: float
    job_id: str
    stage: str = ""
    tasks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Somebody wants a job no more: one that waits has ended, what runs of it is to stop."""

    time: float
    job_id: str
    by: str = ""
    """Person who did it; empty where that is not known."""


@dataclass(frozen=True, slots=True)
class Held:
    """A job that waits is not to start until it is released; ``by`` is who wants it so.

    What a cluster alone understands, and nobody here may start, is held by ``LEFT_TO`` and why.
    """

    time: float
    job_id: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class Released:
    """A job that was held may start."""

    time: float
    job_id: str


@dataclass(frozen=True, slots=True)
class JobChanged:
    """A job is another from now on: its limit, partition, width or name, and what follows of it.

    Who submitted it and when, and what it waits for, are as they were; so are width and partition
    of one that runs, be it in part. One that has ended stays as it is.
    """

    time: float
    job: Job

    @property
    def job_id(self) -> str:
        """Return the id of the job."""
        return self.job.job_id


@dataclass(frozen=True, slots=True)
class HistoryOutcome:
    """An outcome of an earlier run, given to the predictors before this one begins."""

    time: float
    job: Job
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed; asks for a scheduling pass."""

    time: float


@dataclass(frozen=True, slots=True)
class ClockRead:
    """The run's clock beside those of the machine, for who goes on; of no job's business."""

    time: float
    boot: str
    """Boot of the machine, by its id."""
    since_boot_seconds: float
    wall_seconds: float


@dataclass(frozen=True, slots=True)
class ClusterUnavailable:
    """The control plane of the cluster is away: nothing is started until it is back."""

    time: float
    because: str


@dataclass(frozen=True, slots=True)
class ClusterAvailable:
    """The control plane of the cluster is back."""

    time: float


@dataclass(frozen=True, slots=True)
class NodeDown:
    """A node is gone; what ran on it is reported as ended apart, with ``LOST``."""

    time: float
    node: str


@dataclass(frozen=True, slots=True)
class NodeUp:
    """A node is back, empty."""

    time: float
    node: str


@dataclass(frozen=True, slots=True)
class NodeDrained:
    """An operator, or the cluster, wants nothing new to start on a node; what runs runs on."""

    time: float
    node: str
    """Its name; of processors that belong to no nodes, that of their partition."""
    by: str = ""
    """Person who drained it; empty where that is not known."""
    until_seconds: float | None = None
    """Time from which it should be used again; None: nobody has said."""


@dataclass(frozen=True, slots=True)
class NodeResumed:
    """A node that was drained is used again."""

    time: float
    node: str


@dataclass(frozen=True, slots=True)
class NodeAdded:
    """A node has come, empty, to a partition (which it begins, if there is none of that name)."""

    time: float
    node: Node
    partition: str


@dataclass(frozen=True, slots=True)
class NodeChanged:
    """The node of this name offers something else now; what has no room any more has ended apart.

    It stays in its partition, and down if it is; such ends are reported before it, with ``LOST``.
    """

    time: float
    node: Node


@dataclass(frozen=True, slots=True)
class NodeRemoved:
    """A node is gone for good; what ran on it is reported as ended before.

    With ``REVOKED``, or with ``LOST`` where the node has failed.
    """

    time: float
    node: str
    known_from_seconds: float | None = None
    """Time from which schedulers know that it will go; None: not before it has gone."""


@dataclass(frozen=True, slots=True)
class Occupied:
    """So much of a node is held by what is no job, from now on; before it was something else."""

    time: float
    node: str
    resources: Resources


NodeChange = NodeAdded | NodeChanged | NodeRemoved
"""Changes that make another cluster of a cluster (``foresail.model.changing_nodes``)."""

NodeEvent = NodeDown | NodeUp | NodeChange

OperatorEvent = NodeDrained | NodeResumed
"""Changes of a node's use by an operator, of which the cluster knows nothing, or by the cluster."""

MAKES_ROOM: Final = frozenset(
    get_args(
        Ended | NotStarted | Cancelled | Held | JobChanged | Occupied | NodeEvent | OperatorEvent
    )
)
"""Events that may leave jobs that wait more room than they were promised."""

Event = (
    Submitted
    | Ended
    | Began
    | NotStarted
    | EstimateExpired
    | Cancelled
    | Held
    | Released
    | JobChanged
    | HistoryOutcome
    | NodeEvent
    | Occupied
    | OperatorEvent
    | ClusterUnavailable
    | ClusterAvailable
    | ClockRead
    | Tick
)


@dataclass(frozen=True, slots=True)
class Conventions:
    """Conventions on the order of events of the same instant, and on what counts as free then."""

    name: str
    """Name among users."""
    passes: Literal["per_instant", "per_event", "per_tick"]
    """``per_instant``: one scheduling pass after all events of an instant. ``per_event``: one after
    every single submission, end, cancellation and tick. ``per_tick``: one after a tick, for
    schedulers that plan in cycles."""
    ties: Literal["ends_first", "submissions_first"]
    """``ends_first``: ends, expired estimates, cancellations, submissions, ticks.
    ``submissions_first``: expired estimates, cancellations, submissions, ends, ticks. Ends of an
    instant come in order of start, submissions in the order given."""
    free: Literal["actual", "expected"]
    """``actual``: all that no running job holds. ``expected``: also what running jobs hold whose
    expected end is not after now; those jobs are not shown to the scheduler as running."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", recorded_name(self.name))

    def in_cycles(self) -> Conventions:
        """The same, but that there is a pass after a tick alone."""
        if self.passes == "per_tick":
            return self
        name = IN_CYCLES.name if self == STANDARD else f"{self.name}_{IN_CYCLES.name}"
        return replace(self, name=name, passes="per_tick")


def recorded_name(name: str) -> str:
    """The name that conventions have now which a record of an earlier version names."""
    return DEPRECATED["--conventions"].get(name, name)


STANDARD: Final = Conventions("standard", "per_instant", "ends_first", "actual")

PREDICTSIM: Final = Conventions("predictsim", "per_event", "submissions_first", "expected")
"""The published study's simulator. ``expected`` is a mistake of it, kept by name:
it may start a job on processors whose job ends later in the same second."""

IN_CYCLES: Final = Conventions("in_cycles", "per_tick", "ends_first", "actual")

CONVENTIONS: Final = {each.name: each for each in (STANDARD, PREDICTSIM)}
