"""Decisions (what a scheduler wants) and instructions (what control lets through to a cluster)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, runtime_checkable

from foresail.model.construction import quickly_made
from foresail.model.outcome import Allocation
from foresail.model.reason import AlikeReasons, Reason


@quickly_made
@dataclass(frozen=True, slots=True)
class Placement:
    """Placement of a job's tasks: by partition, and by node once nodes are named."""

    tasks_by_partition: tuple[tuple[str, int], ...]
    tasks_by_node: tuple[tuple[str, int], ...] = ()

    @classmethod
    def whole(cls, partition: str, tasks: int) -> Placement:
        """All tasks in one partition."""
        return cls(((partition, tasks),))


@quickly_made
@dataclass(frozen=True, slots=True)
class Start:
    """Start this allocation now, there; which attempt it is, the state of the jobs says."""

    job_id: str
    placement: Placement
    attempt: int = 1
    stage: str = ""
    tasks: tuple[int, ...] = ()

    @property
    def allocation(self) -> Allocation:
        """Return the allocation that starts."""
        return Allocation(self.job_id, self.stage, self.tasks, self.attempt)


@quickly_made
@dataclass(frozen=True, slots=True)
class Preempt:
    """Stop this running allocation; it is requeued."""

    job_id: str
    attempt: int = 1
    stage: str = ""
    tasks: tuple[int, ...] = ()

    @property
    def allocation(self) -> Allocation:
        """Return the allocation that is stopped."""
        return Allocation(self.job_id, self.stage, self.tasks, self.attempt)


@quickly_made
@dataclass(frozen=True, slots=True)
class PlannedStart:
    """Planned later start: a reservation."""

    job_id: str
    start_seconds: float
    placement: Placement


@quickly_made
@dataclass(frozen=True, slots=True)
class WakeAt:
    """Report ``EstimateExpired`` for this job, or this part of it, if it still runs then."""

    job_id: str
    time: float
    stage: str = ""
    tasks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Never start this pending job: what it depends on failed, or it runs elsewhere."""

    job_id: str
    because: str


@dataclass(frozen=True, slots=True)
class TickAt:
    """Report a ``Tick`` at this time: this job is promised something then, or its patience ends."""

    job_id: str
    time: float


@quickly_made
@dataclass(frozen=True, slots=True)
class Decision:
    """One scheduling pass: starts in order, preemptions, the plan, and reasons of those that wait.

    ``withdrawals`` are of pending jobs that are not to start here any more; ``ticks`` are when the
    scheduler asks to be asked again, whatever happens until then.
    """

    starts: tuple[Start, ...] = ()
    preemptions: tuple[Preempt, ...] = ()
    plan: tuple[PlannedStart, ...] = ()
    reasons: Mapping[str, Reason] = field(default_factory=dict)
    withdrawals: tuple[Withdraw, ...] = ()
    ticks: tuple[TickAt, ...] = ()


@runtime_checkable
class TellsChanges(Protocol):
    """Reasons that know how they differ from those of an earlier decision of the same scheduler."""

    def changed_since(self, mark: object) -> tuple[object, Sequence[AlikeReasons] | None]:
        """A mark of this decision, and the reasons that differ in kind.

        ``mark`` is that of the decision that they are compared with. None: all may differ.
        """

    def tells_of(self, job_id: str) -> bool:
        """Return whether it reports this job whenever its reason differs."""


Instruction = Start | Preempt | WakeAt | Withdraw | TickAt


class RefusalCode(StrEnum):
    """Reason why a start, a preemption or a withdrawal is refused."""

    UNKNOWN_JOB = "unknown_job"
    NOT_PENDING = "not_pending"
    NOT_RUNNING = "not_running"
    TWICE = "twice"
    NO_SUCH_PLACE = "no_such_place"
    NOT_WHOLE = "not_whole"
    NO_ROOM = "no_room"
    NO_SUCH_TASK = "no_such_task"


@dataclass(frozen=True, slots=True)
class Refusal:
    """One part of a decision that does not reach the cluster, with a sentence that says why."""

    job_id: str
    code: RefusalCode
    sentence: str
