"""Decisions (what a scheduler wants, and why a job is still pending) and instructions to a cluster.

A reason is a code, the numbers behind it and one sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from foresail.model.cluster import Placement as Placement
from foresail.model.containers import quickly_made
from foresail.model.event import Allocation
from foresail.model.words import LEFT_TO, count, is_or_are, listed, memory_size


class ReasonCode(StrEnum):
    """The closed list of reasons."""

    RESERVED = "reserved"
    NO_ROOM = "no_room"
    WOULD_DELAY = "would_delay"
    BEHIND = "behind"
    TOO_WIDE = "too_wide"
    DEPENDENCY = "dependency"
    DRAINING = "draining"
    NOT_CHOSEN = "not_chosen"
    LEFT_OUT = "left_out"
    GOES_FIRST = "goes_first"
    AMONG_FIRST = "among_first"
    HELD = "held"
    DEPENDENCY_ANY = "dependency_any"
    DEPENDENCY_FAILURE = "dependency_failure"
    DEPENDENCY_BEGIN = "dependency_begin"
    SINGLETON = "singleton"
    BEGIN = "begin"
    ARRAY_LIMIT = "array_limit"
    FRAGMENTED = "fragmented"
    NODES_OUT = "nodes_out"
    NOT_STARTED = "not_started"
    UNAVAILABLE = "unavailable"


_SENTENCES: Mapping[ReasonCode, str] = MappingProxyType(
    {
        ReasonCode.RESERVED: "next in line: {cpus_said} should be free at {start:.0f} s",
        ReasonCode.NO_ROOM: "needs {cpus_said} and {free:g} {free_verb} free",
        ReasonCode.WOULD_DELAY: "would delay job {head}, which should start at {start:.0f} s",
        ReasonCode.BEHIND: "{ahead_said} {ahead_verb} ahead of it and no job is backfilled",
        ReasonCode.TOO_WIDE: "asks for {cpus_said} and the cluster has {total:g}",
        ReasonCode.DEPENDENCY: "waits for job {after} to complete (afterok)",
        ReasonCode.DRAINING: "nothing new is started: the run is being drained",
        ReasonCode.GOES_FIRST: "goes first: EASY would have come to it at {turn:.0f} s;"
        " {cpus_said} should be free at {start:.0f} s",
        ReasonCode.AMONG_FIRST: "goes first once {cpus_said} {cpus_verb} free:"
        " EASY would have come to it at {turn:.0f} s",
        ReasonCode.HELD: "held by {by} until it is released",
        ReasonCode.FRAGMENTED: "needs {cpus_said}; enough is free, but nowhere for a whole task",
        ReasonCode.UNAVAILABLE: "nothing is started: the cluster cannot be reached ({why})",
        ReasonCode.NOT_STARTED: "could not be started: {why}",
        ReasonCode.NODES_OUT: "has room only on nodes that are out of use: {nodes}",
        ReasonCode.DEPENDENCY_ANY: "waits for job {after} to end, however it ends (afterany)",
        ReasonCode.DEPENDENCY_FAILURE: "waits for job {after} to fail (afternotok)",
        ReasonCode.DEPENDENCY_BEGIN: "waits for job {after} to begin (after)",
        ReasonCode.SINGLETON: "waits for job {after}, of its name and user, to end (singleton)",
        ReasonCode.BEGIN: "is not to begin before {begin:.0f} s",
        ReasonCode.ARRAY_LIMIT: "of its array at most {most:.0f} may run at once",
        ReasonCode.NOT_CHOSEN: "not chosen by the scheduler; {ahead_said} {ahead_verb} ahead of it",
        ReasonCode.LEFT_OUT: (
            "left out of this cycle, which looked at {considered:.0f} of {waiting:.0f} waiting "
            "jobs; the others come in turn"
        ),
    }
)


_FITS_NOWHERE = (
    "asks for {cpus_said}; there are {total:g}, but even free they have no room for its tasks, "
    "each whole on one node with its memory and gpus"
)
"""Too wide, though not by cpus alone."""

_KEPT_FOR_ANOTHER = "what is free is kept for another job, which goes before its turn"
"""Behind, though first in the queue."""

_HELD_BY_SOMEBODY = "held until it is released"
"""Held by whom is not known."""

_COUNTED: Mapping[str, str] = MappingProxyType(
    {"cpus": "cpu", "free": "cpu", "ahead": "job", "gpus": "gpu", "free_gpus": "gpu"}
)
"""Numbers that are of things; a sentence has them as ``cpus_said``, and ``cpus_verb`` behind."""


@quickly_made
@dataclass(frozen=True, slots=True)
class Reason:
    """Reason why one job waits."""

    code: ReasonCode
    numbers: Mapping[str, float | str] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """The reason in words, with its numbers."""
        amounts = [
            (name, noun, amount)
            for name, noun in _COUNTED.items()
            if isinstance(amount := self.numbers.get(name), float | int)
        ]
        said = {f"{name}_said": count(amount, noun) for name, noun, amount in amounts}
        verbs = {f"{name}_verb": is_or_are(amount) for name, _, amount in amounts}
        if "cpus" in self.numbers:
            said["cpus_said"], verbs["cpus_verb"] = needed_words(self.numbers)
        return self._words.format(**self.numbers, **said, **verbs)

    @property
    def _words(self) -> str:
        match self.code, dict(self.numbers):
            case ReasonCode.TOO_WIDE, {"cpus": float() | int() as cpus, "total": total} if (
                cpus <= float(total)
            ):
                return _FITS_NOWHERE
            case ReasonCode.NO_ROOM, {"gpus": float() as gpus, "free_gpus": free} if gpus > float(
                free
            ):
                return "needs {gpus_said} and {free_gpus:g} {free_gpus_verb} free"
            case ReasonCode.NO_ROOM, {"memory_bytes": float() as asked, "free_memory_bytes": free}:
                there = memory_size(max(0.0, float(free)))
                return f"needs {memory_size(asked)} of memory and {there} is free"
            case ReasonCode.BEHIND, {"ahead": 0}:
                return _KEPT_FOR_ANOTHER
            case ReasonCode.HELD, {"by": ""}:
                return _HELD_BY_SOMEBODY
            case ReasonCode.HELD, {"by": str(by)} if by.startswith(LEFT_TO):
                return "left to {by}"
        return _SENTENCES[self.code]


def needed_words(numbers: Mapping[str, float | str]) -> tuple[str, str]:
    """Return a job's needs by the numbers of its reason, and the verb that goes with them."""
    cpus, memory, gpus = (
        float(numbers.get(name, 0.0)) for name in ("cpus", "memory_bytes", "gpus")
    )
    parts = [count(cpus, "cpu")]
    if memory:
        parts.append(f"{memory_size(memory)} of memory")
    if gpus:
        parts.append(count(gpus, "gpu"))
    return listed(parts), is_or_are(cpus) if len(parts) == 1 else "are"


@quickly_made
@dataclass(frozen=True, slots=True)
class AlikeReasons:
    """Reasons of several waiting jobs, for one kind of reason.

    ``numbers`` are those of all; ``by_job`` has a column, with a value for each job, of every
    number that is its own. Columns are tuples, or as good as one (``foresail.model.containers``).
    """

    code: ReasonCode
    job_ids: Sequence[str]
    numbers: Mapping[str, float | str] = field(default_factory=dict)
    by_job: Mapping[str, Sequence[float | str]] = field(default_factory=dict)

    def reason(self, job_id: str) -> Reason | None:
        """The reason of a job; None if it is not among these."""
        return self._at(self.job_ids.index(job_id)) if job_id in self.job_ids else None

    def items(self) -> Iterator[tuple[str, Reason]]:
        """Each job's id and reason."""
        for place, job_id in enumerate(self.job_ids):
            yield job_id, self._at(place)

    def _at(self, place: int) -> Reason:
        own = {name: values[place] for name, values in self.by_job.items()}
        return Reason(self.code, {**self.numbers, **own})


def alike(reasons: Mapping[str, Reason]) -> list[AlikeReasons]:
    """The reasons of jobs, by id, in groups of one kind and the same numbers each."""
    groups: dict[tuple[ReasonCode, frozenset[str]], list[str]] = {}
    for job_id, reason in reasons.items():
        groups.setdefault((reason.code, frozenset(reason.numbers)), []).append(job_id)
    return [
        AlikeReasons(
            code,
            tuple(job_ids),
            by_job={
                name: tuple(reasons[job_id].numbers[name] for job_id in job_ids)
                for name in reasons[job_ids[0]].numbers
            },
        )
        for (code, _), job_ids in groups.items()
    ]


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
    NOT_OURS = "not_ours"


@dataclass(frozen=True, slots=True)
class Refusal:
    """One part of a decision that does not reach the cluster, with a sentence that says why."""

    job_id: str
    code: RefusalCode
    sentence: str
