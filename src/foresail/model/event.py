"""Events: what happened, as a cluster reports it, and conventions of their order at an instant."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

from foresail.model.cluster import Node
from foresail.model.construction import quickly_made
from foresail.model.job import Job
from foresail.model.outcome import Outcome
from foresail.model.registry import DEPRECATED


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
    """Who; empty where that is not known."""


@dataclass(frozen=True, slots=True)
class Held:
    """A job that waits is not to start until it is released; ``by`` is who wants it so."""

    time: float
    job_id: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class Released:
    """A job that was held may start."""

    time: float
    job_id: str


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
    """Which boot of the machine it was."""
    since_boot_seconds: float
    wall_seconds: float


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
    """An operator wants nothing new to start on a node; what runs there runs on."""

    time: float
    node: str
    by: str = ""
    """Who; empty where that is not known."""


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
    """A node is gone for good; what ran on it is reported as ended before, with ``LOST``."""

    time: float
    node: str
    known_from_seconds: float | None = None
    """From when on schedulers know that it will go; None: not before it has gone."""


NodeChange = NodeAdded | NodeChanged | NodeRemoved
"""What makes another cluster of a cluster (``foresail.model.changing_nodes``)."""

NodeEvent = NodeDown | NodeUp | NodeChange

OperatorEvent = NodeDrained | NodeResumed
"""What an operator wishes of a node; the cluster itself knows nothing of it."""

MAKES_ROOM: Final = frozenset(get_args(Ended | Cancelled | Held | NodeEvent | OperatorEvent))
"""What may leave jobs that wait more room than they were promised."""

Event = (
    Submitted
    | Ended
    | EstimateExpired
    | Cancelled
    | Held
    | Released
    | HistoryOutcome
    | NodeEvent
    | OperatorEvent
    | ClockRead
    | Tick
)


@dataclass(frozen=True, slots=True)
class Conventions:
    """Conventions on the order of events of the same instant, and on what counts as free then."""

    name: str
    """What a user calls them."""
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
"""The published study's simulator (spec section 2a). ``expected`` is a mistake of it, kept by name:
it may start a job on processors whose job ends later in the same second."""

IN_CYCLES: Final = Conventions("in_cycles", "per_tick", "ends_first", "actual")

CONVENTIONS: Final = {each.name: each for each in (STANDARD, PREDICTSIM)}
