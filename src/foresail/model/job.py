"""Job, stage and task: what was asked for, by whom and until when. Never what really happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from foresail.model.construction import quickly_made
from foresail.model.option import PlacementOption
from foresail.model.preference import Preference
from foresail.model.resources import Resources
from foresail.model.start_conditions import StartConditions
from foresail.model.value import DeadlineValue, ValueFunction


@quickly_made
@dataclass(frozen=True, slots=True)
class Stage:
    """Tasks of a job; a job's stages form a DAG through ``after``."""

    tasks: int
    """How many tasks the stage has."""
    request: Resources
    """Resources asked for *per task*."""
    name: str = "main"
    """Name within the job."""
    after: tuple[str, ...] = ()
    """Names of the stages that must have ended first."""
    together: bool = True
    """Whether its tasks need each other, and so start together. Those that do not may start one by
    one, under schedulers that do so (``StartsTasks``); any other starts them together too."""

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
    """When it was submitted, seconds from the workload's origin."""
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
    """Where it runs best; None if all nodes are alike to it."""
    options: tuple[PlacementOption, ...] = ()
    """Where it may run, and nowhere else; none if it says nothing of that. Only schedulers that
    place jobs by options (``PlacesByOptions``) are given jobs with some."""
    conditions: StartConditions | None = None
    """What else must hold before it may start; None if nothing."""

    @property
    def cpus(self) -> float:
        """Most cpus the job holds at once: the widest stage (its only one, for most jobs)."""
        first = self.stages[0]
        if len(self.stages) == 1:  # asked for many times a pass
            return first.request.cpus * first.tasks
        return max(stage.request.cpus * stage.tasks for stage in self.stages)

    @property
    def eligible_seconds(self) -> float:
        """From when on its wait counts: its submission, or its begin if that was to be later."""
        begin = None if self.conditions is None else self.conditions.begin_seconds
        return self.submit_seconds if begin is None else max(begin, self.submit_seconds)

    def ends_by(self, seconds: float, now: float) -> bool:
        """Whether it will have reached its requested time by then if it starts now."""
        return self.requested_seconds is not None and now + self.requested_seconds <= seconds

    @property
    def deadline_seconds(self) -> float | None:
        """When its result stops being worth its full value; None for a best-effort job."""
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
        """Whether its stages or its tasks may start at different times."""
        return len(self.stages) > 1 or not self.stages[0].together

    def part(self, stage: Stage, tasks: int) -> Job:
        """The job as if so many tasks of one of its stages were all of it: what these hold."""
        return replace(self, stages=(replace(stage, tasks=tasks),))

    def held(self, stage: str, tasks: tuple[int, ...]) -> Job:
        """The job as if what an allocation names of it were all of it.

        Raises
        ------
        KeyError
            If it has no such stage.
        """
        if not stage:
            return self
        of = self.stage(stage)
        return self.part(of, len(tasks) or of.tasks)

    def stage(self, name: str) -> Stage:
        """Its stage of this name.

        Raises
        ------
        KeyError
            If it has none.
        """
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
