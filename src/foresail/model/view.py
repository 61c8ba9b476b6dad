"""ClusterView: the read-only snapshot a scheduler decides from, and what is said in it of jobs."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from foresail.model.cluster import Cluster, Resources
from foresail.model.containers import quickly_made
from foresail.model.decision import Placement, PlannedStart
from foresail.model.distribution import Distribution
from foresail.model.event import Allocation, Part, Unit
from foresail.model.job import Job, Stage


@dataclass(frozen=True, slots=True)
class TaskNumbers(Collection[int]):
    """Some tasks of a stage, by their numbers within it, in ascending order.

    They are kept as ranges. To take out the first of ten thousand, or any other, costs as much as
    there are gaps between those that are left.
    """

    ranges: tuple[range, ...] = ()
    """Ascending, none empty, none touching the next."""

    @classmethod
    def below(cls, count: int) -> TaskNumbers:
        """All of the first ``count`` tasks."""
        return cls((range(count),) if count > 0 else ())

    def __len__(self) -> int:
        return sum(map(len, self.ranges))

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(self.ranges)

    def __contains__(self, task: object) -> bool:
        if not isinstance(task, int) or not self.ranges:
            return False
        return task in self.ranges[max(bisect_right(self.ranges, task, key=_start) - 1, 0)]

    def first(self, count: int) -> tuple[int, ...]:
        """The lowest numbers, so many of them or as many as there are."""
        return tuple(islice(self, count))

    def without(self, tasks: Iterable[int]) -> TaskNumbers:
        """All but these; raises ``KeyError`` if one of them is not among these."""
        ranges = list(self.ranges)
        for task in tasks:
            at = max(bisect_right(ranges, task, key=_start) - 1, 0)
            if not ranges or task not in ranges[at]:
                raise KeyError(task)
            whole = ranges[at]
            parts = (range(whole.start, task), range(task + 1, whole.stop))
            ranges[at : at + 1] = [each for each in parts if each]
        return TaskNumbers(tuple(ranges))

    def including(self, tasks: Iterable[int]) -> TaskNumbers:
        """Union of both."""
        ranges = list(self.ranges)
        for task in tasks:
            at = bisect_right(ranges, task, key=_start)
            if at and task in ranges[at - 1]:
                continue
            low, high, begin, end = task, task + 1, at, at
            if at and ranges[at - 1].stop == low:
                low, begin = ranges[at - 1].start, at - 1
            if at < len(ranges) and ranges[at].start == high:
                high, end = ranges[at].stop, at + 1
            ranges[begin:end] = [range(low, high)]
        return TaskNumbers(tuple(ranges))


def _start(numbers: range) -> int:
    return numbers.start


@dataclass(frozen=True, slots=True)
class Reservation:
    """Containers promised to a job from one time up to another (seconds)."""

    job_id: str
    start_seconds: float
    end_seconds: float
    containers: int

    def covers(self, time: float) -> bool:
        """Return whether a moment is within it, give or take a microsecond."""
        return self.start_seconds - 1e-6 <= time < self.end_seconds - 1e-6


@dataclass(frozen=True, slots=True)
class Rejection:
    """Refusal of a reservation; why, in words for a person."""

    because: str


@dataclass(frozen=True, slots=True)
class Due:
    """Due times of a job by a schedule of the same jobs under EASY (seconds)."""

    turn_seconds: float
    """Time at which EASY would have come to it: it was next in line there, or started."""
    due_seconds: float
    """Time from which it goes first."""
    latest_seconds: float
    """Time beyond which no start may, by requests, put it off."""


@quickly_made
@dataclass(frozen=True, slots=True)
class StartableTasks:
    """Tasks of a stage that may start now: each by itself, or all at once as a gang."""

    stage: Stage
    tasks: TaskNumbers


@quickly_made
@dataclass(frozen=True, slots=True)
class PendingJob:
    """A job that waits; ``arrival`` numbers submissions, so that ties have one order.

    ``planned_seconds`` is the runtime to plan with: the scheduler's own choice where it has one
    (``planned_seconds``), else the prediction's mean. ``reservation`` is the answer to its request
    for one (``reserve``); None if it never asked. ``startable`` is what of it may start now where
    its stages or tasks start apart (only who ``starts_tasks`` is shown that), by stage, some of the
    job running already, maybe; empty: it starts as a whole. ``due`` is what a schedule that the
    scheduler compares with (``reference``) has said of the job; None as long as it has not.
    """

    job: Job
    arrival: int
    prediction: Distribution
    planned_seconds: float
    reservation: Reservation | Rejection | None = None
    startable: tuple[StartableTasks, ...] = ()
    due: Due | None = None


@quickly_made
@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that runs, or a part of one, with what is believed of its total runtime.

    ``prediction`` is the one made at submission (condition it on ``elapsed_seconds``), of the
    runtime where it runs best; ``slowdown`` is how many times longer it takes where it is;
    ``expected_end_seconds`` is the current point estimate, after corrections.
    ``start_order`` numbers starts; ``reservation`` is that of the pending job. ``stage`` and
    ``tasks`` say what of the job runs; empty: all of it.
    """

    job: Job
    start_seconds: float
    start_order: int
    placement: Placement
    prediction: Distribution
    expected_end_seconds: float
    corrections: int = 0
    slowdown: float = 1.0
    reservation: Reservation | Rejection | None = None
    attempt: int = 1
    backfilled: bool = False
    """True if one that was submitted earlier waited when it started."""
    stage: str = ""
    tasks: tuple[int, ...] = ()
    ours: bool = True
    """True if it was instructed; work that was not is never stopped to make room."""
    went_first: bool = False
    """True if it was due when it started (``Due``)."""

    def protected_until(self, back_off_seconds: float) -> float:
        """Return until when (seconds) the job is not to be stopped again; -inf if it never was.

        So long after its start, twice as long after each further stop: what it loses stays within
        about its own runtime.
        """
        if self.attempt == 1 or not back_off_seconds:
            return -math.inf
        return self.start_seconds + math.ldexp(back_off_seconds, min(self.attempt, 64) - 2)

    @property
    def allocation(self) -> Allocation:
        """Return the allocation of the job that runs."""
        return Allocation(self.job.job_id, self.stage, self.tasks, self.attempt)

    @property
    def unit(self) -> Unit:
        """Return the unit of the job that runs, whichever attempt it is."""
        job_id = self.job.job_id
        return Part(job_id, self.stage, self.tasks) if self.stage else job_id

    @property
    def held(self) -> Job:
        """The job as if what runs were all of it: what its place is held for."""
        return self.job.held(self.stage, self.tasks)

    def elapsed_seconds(self, now: float) -> float:
        """Seconds since the start."""
        return now - self.start_seconds


@quickly_made
@dataclass(frozen=True, slots=True)
class ClusterView:
    """View of the cluster that a scheduler gets.

    ``pending``, ``running`` and ``blocked`` never change, whatever becomes of the jobs; one that is
    ``foresail.model.containers.Listed`` can be asked what has changed since an earlier view.
    """

    now: float
    """Seconds from the workload's origin."""
    cluster: Cluster

    free: Mapping[str, Resources]
    """Unused resources by partition name."""
    pending: Sequence[PendingJob]
    """Waiting jobs that may start (their dependencies have ended), in order of arrival."""
    running: Sequence[RunningJob]
    """Running jobs in order of start."""
    free_nodes: Mapping[str, Resources] = field(default_factory=dict)
    """Unused resources by node name, of the nodes that are up; empty where nodes are not known."""
    blocked: Sequence[PendingJob] = ()
    """Waiting jobs that may not start yet: others that they depend on have not ended."""
    planned: Sequence[PlannedStart] = ()
    """The plan as the last decision stated it."""
    room_came: bool = True
    """True if anything has happened since that may have made room (``MAKES_ROOM``)."""
    leaving: Mapping[str, float] = field(default_factory=dict)
    """Times at which nodes will go (seconds), by name, of those that are known to go: what could
    still run then does not start there."""
    touched: Mapping[str, bool] | None = None
    """Names of the partitions that any event since the last decision is of, expired estimates left
    out, and whether room may have come there; None: events may be of all."""

    @property
    def plan(self) -> dict[str, float]:
        """Planned start (seconds) by job id, as the last decision stated it."""
        return {each.job_id: each.start_seconds for each in self.planned}
