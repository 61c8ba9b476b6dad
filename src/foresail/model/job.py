"""Job, stage and task: what was asked for, by whom and until when. Never what really happened.

With it what a job says of itself: its worth over time, and what must hold before it may start.
Kinds of dependencies, their names and what they mean are those of Slurm's ``sbatch``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Protocol, runtime_checkable

from foresail.model.cluster import Resources
from foresail.model.containers import quickly_made
from foresail.model.errors import require, require_at_least
from foresail.model.preference import PlacementOption, Preference


@runtime_checkable
class ValueFunction(Protocol):
    """Worth of a result as a function of its completion time."""

    def at(self, completion_seconds: float) -> float:
        """Value of completing at this time (seconds from the workload's origin)."""


@dataclass(frozen=True, slots=True)
class DeadlineValue:
    """Full value up to the deadline, nothing after it (an SLO job).

    Raises ``InputError`` if the deadline is no number, or the value negative or no number.
    """

    deadline_seconds: float
    value: float = 1.0

    def __post_init__(self) -> None:
        sound = not math.isnan(self.deadline_seconds)
        require(sound, self, "deadline_seconds", "seconds from the workload's origin")
        require_at_least(self, 0, "value")

    def at(self, completion_seconds: float) -> float:
        """Value of completing at this time (seconds from the workload's origin)."""
        return self.value if completion_seconds <= self.deadline_seconds else 0.0


@dataclass(frozen=True, slots=True)
class DecayingValue:
    """Value that falls linearly from ``value`` at ``start_seconds`` to zero (a best-effort job).

    Raises ``InputError`` if it does not fall (zero not after the start), or is negative or no
    number.
    """

    start_seconds: float
    zero_seconds: float
    value: float = 1.0

    def __post_init__(self) -> None:
        falls = -math.inf < self.start_seconds < self.zero_seconds < math.inf
        require(falls, self, "zero_seconds", "a finite time after start_seconds")
        require_at_least(self, 0, "value")

    def at(self, completion_seconds: float) -> float:
        """Value of completing at this time (seconds from the workload's origin)."""
        span = self.zero_seconds - self.start_seconds
        left = (self.zero_seconds - completion_seconds) / span
        return self.value * min(1.0, max(0.0, left))


class DependencyKind(StrEnum):
    """Kind of dependency: what must have become of the jobs that another depends on."""

    AFTER_OK = "afterok"
    """Starts once they have completed."""
    AFTER_ANY = "afterany"
    """Starts once they have ended, in whichever way."""
    AFTER_NOT_OK = "afternotok"
    """Starts once they have ended, and one of them at least has not completed."""
    AFTER = "after"
    """Starts once they have begun, or ended without."""
    SINGLETON = "singleton"
    """Starts once all jobs of its name and user that were submitted before it have ended."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """Jobs that another depends on, all members of an array together, and how; no singleton."""

    kind: DependencyKind
    job_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StartConditions:
    """Conditions for a job's start, beside its ``afterok`` dependencies.

    An array's limit is of jobs that start as a whole.
    """

    dependencies: tuple[Dependency, ...] = ()
    """Dependencies of other kinds; their jobs are in ``Job.after`` too."""
    singleton: bool = False
    """True if it waits for jobs of its name and user."""
    begin_seconds: float | None = None
    """Time before which it does not start."""
    array: str = ""
    most_at_once: int | None = None
    """The array it is of, and how many of that run at once."""
    once: bool = False
    """True if it may start only once: lost or preempted, it has ended."""

    @property
    def keep_out_of_line(self) -> bool:
        """Return whether others going first is no delay: the job is kept back by its own wish."""
        return self.begin_seconds is not None or self.most_at_once is not None


DEPENDENCY_FORM: Final = (
    "names or ids of jobs, afterok:ID, afterany:ID, afternotok:ID or after:ID (ID:ID... of "
    "several), and singleton, all of which must hold"
)
_JOB: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")
_REFUSED: Final = {
    "aftercorr": "aftercorr is not supported: of an array, wait for all or for one by its id",
    "afterburstbuffer": "afterburstbuffer is not supported: there are no burst buffers",
    "expand": "expand is not supported: jobs do not grow",
}


def parse_dependencies(words: str | Iterable[str]) -> tuple[Dependency, ...]:
    """Dependencies as people write them: one for each job named, and one for ``singleton``.

    Commas or spaces separate them; one without a kind is ``afterok``. Raises ``ValueError`` with
    what was expected if they are none, or of a kind that is not supported.
    """
    found: dict[str, Dependency] = {}
    text = words if isinstance(words, str) else " ".join(words)
    for word in filter(None, re.split(r"[,\s]+", text)):
        if "?" in word:
            raise ValueError("? is not supported: all dependencies must hold, separated by commas")
        first, *job_ids = word.split(":")
        if first in _REFUSED:
            raise ValueError(_REFUSED[first])
        if word == DependencyKind.SINGLETON:
            found[word] = Dependency(DependencyKind.SINGLETON, ())
            continue
        kind = DependencyKind.AFTER_OK
        if job_ids:
            if first not in tuple(DependencyKind) or first == DependencyKind.SINGLETON:
                raise ValueError(DEPENDENCY_FORM)
            kind = DependencyKind(first)
        for job_id in job_ids or [first]:
            if job_ids and "+" in job_id and job_id.partition("+")[0].isdigit():
                raise ValueError("ID+MINUTES is not supported: give begin a time")
            if not _JOB.fullmatch(job_id):
                raise ValueError(DEPENDENCY_FORM)
            if found.setdefault(job_id, Dependency(kind, (job_id,))).kind is not kind:
                raise ValueError(f"one kind of dependency on job {job_id}")
    return tuple(found.values())


@quickly_made
@dataclass(frozen=True, slots=True)
class Stage:
    """Tasks of a job; a job's stages form a DAG through ``after``."""

    tasks: int
    """Number of tasks in the stage."""
    request: Resources
    """Resources asked for *per task*."""
    name: str = "main"
    """Name within the job."""
    after: tuple[str, ...] = ()
    """Names of the stages that must have ended first."""
    together: bool = True
    """True if its tasks need each other, and so start together. Those that do not may start one by
    one, under schedulers that do so (``starts_tasks``); any other starts them together too."""

    @property
    def total(self) -> Resources:
        """Resources of all tasks together."""
        return self.request * self.tasks


@quickly_made
@dataclass(frozen=True, slots=True)
class Job:
    """The specification of a job: all that a scheduler or a predictor may know of it."""

    job_id: str
    """Unique within a workload."""
    submit_seconds: float
    """Submission, seconds from the workload's origin."""
    stages: tuple[Stage, ...]
    """At least one; most jobs have exactly one, whose tasks are a gang."""
    requested_seconds: float | None = None
    """The user's limit; None when none was given."""
    user: str | None = None
    group: str | None = None
    queue: str | None = None
    partition: str | None = None
    name: str | None = None

    after: tuple[str, ...] = ()
    """Ids of the jobs that must have completed before this one may start, but for those that its
    conditions want otherwise."""
    value: ValueFunction | None = None

    attributes: Mapping[str, str] = field(default_factory=dict)
    """Further fields of the source (executable, application, ...) that predictors may use."""
    preference: Preference | None = None
    """Nodes where it runs best; None if all are alike to it."""
    options: tuple[PlacementOption, ...] = ()
    """Places where it may run, and nowhere else; none if it names no such places. Only schedulers
    that place jobs by options (``places_by_options``) are given jobs with some."""
    conditions: StartConditions | None = None
    """Further conditions that must hold before it may start; None if there are none."""

    @property
    def likeness(self) -> tuple[str | None, str | None, float | None, float]:
        """User, name, requested seconds and cpus; of jobs alike in these much may be the same."""
        return self.user, self.name, self.requested_seconds, self.cpus

    @property
    def cpus(self) -> float:
        """Most cpus the job holds at once: the widest stage (its only one, for most jobs)."""
        stages = self.stages
        if len(stages) == 1:  # asked for many times a pass
            return stages[0].request.cpus * stages[0].tasks
        return max(stage.request.cpus * stage.tasks for stage in stages)

    @property
    def eligible_seconds(self) -> float:
        """From when on its wait counts: its submission, or its begin if that was to be later."""
        begin = None if self.conditions is None else self.conditions.begin_seconds
        return self.submit_seconds if begin is None else max(begin, self.submit_seconds)

    def ends_by(self, seconds: float, now: float) -> bool:
        """Return whether it will have reached its requested time by then if it starts now."""
        return self.requested_seconds is not None and now + self.requested_seconds <= seconds

    @property
    def deadline_seconds(self) -> float | None:
        """Return when its result loses value; None for a best-effort job."""
        return self.value.deadline_seconds if isinstance(self.value, DeadlineValue) else None

    @property
    def total(self) -> Resources:
        """Component-wise most resources the job holds at once."""
        if len(self.stages) == 1:  # asked for of each job that waits
            return self.stages[0].total
        totals = [stage.total for stage in self.stages]
        return Resources(
            max(t.cpus for t in totals),
            max(t.memory_bytes for t in totals),
            max(t.gpus for t in totals),
        )

    @property
    def tasks(self) -> int:
        """Tasks of all stages together."""
        if len(self.stages) == 1:  # asked for many times a pass
            return self.stages[0].tasks
        return sum(stage.tasks for stage in self.stages)

    @property
    def starts_in_parts(self) -> bool:
        """Return whether its stages or its tasks may start at different times."""
        return len(self.stages) > 1 or not self.stages[0].together

    def part(self, stage: Stage, tasks: int) -> Job:
        """The job as if so many tasks of one of its stages were all of it: what these hold."""
        return replace(self, stages=(replace(stage, tasks=tasks),))

    def held(self, stage: str, tasks: tuple[int, ...]) -> Job:
        """The job as if what an allocation names of it were all of it.

        Raises ``KeyError`` if it has no such stage.
        """
        if not stage:
            return self
        of = self.stage(stage)
        return self.part(of, len(tasks) or of.tasks)

    def stage(self, name: str) -> Stage:
        """Its stage of this name; raises ``KeyError`` if it has none."""
        for each in self.stages:
            if each.name == name:
                return each
        raise KeyError(name)

    @classmethod
    def gang(
        cls,
        job_id: str,
        submit_seconds: float,
        cpus: int,
        requested_seconds: float | None = None,
        user: str | None = None,
    ) -> Job:
        """A one-stage job of ``cpus`` single-cpu tasks that start together."""
        stage = Stage(tasks=cpus, request=Resources(cpus=1.0))
        return cls(job_id, submit_seconds, (stage,), requested_seconds, user)


@dataclass(frozen=True, slots=True)
class JobSize:
    """The queue of a job whose first tasks show how large it is, and what they have shown."""

    job_id: str

    queue: int
    """Queue of its tasks, from 0 on: the later, the larger the job is taken to be."""
    tasks: int
    """Number of tasks in all its stages."""
    stage: str = ""
    """The one that pilots are drawn from."""
    pilots: tuple[int, ...] = ()
    """Numbers of its pilots, in the order in which they start; none of a job without samples."""
    told: tuple[float, ...] = ()
    """Runtimes of these (seconds), in order of ending; none as long as some have not ended."""
    seconds: float | None = None
    """Runtime of all tasks together, by these; None before that."""
