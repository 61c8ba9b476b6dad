"""The event engine: a simulated cluster that knows the truth and drives the controller."""

from __future__ import annotations

import heapq
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl

from foresail.control.capacity import Capacity
from foresail.control.loop import Controller
from foresail.model.cluster import Cluster
from foresail.model.decision import (
    Instruction,
    Placement,
    Preempt,
    Start,
    TickAt,
    WakeAt,
    Withdraw,
)
from foresail.model.errors import InputError
from foresail.model.event import (
    Ended,
    EstimateExpired,
    Event,
    NodeDown,
    NodeUp,
    Submitted,
    Tick,
)
from foresail.model.job import Job
from foresail.model.outcome import EndedBecause, Outcome
from foresail.model.protocols import NeedsTruth
from foresail.model.reservation import Rejection, Reservation
from foresail.model.slowdown import Slowdowns
from foresail.model.watching import Measure, Watch
from foresail.simulator.surroundings import IDEAL, Surroundings
from foresail.traces import schema
from foresail.traces.schedule import Schedule, ScheduleMeta
from foresail.traces.workload import Workload

_END: Final = 0
_NODE: Final = 1
_EXPIRY: Final = 2
_SUBMISSION: Final = 3
_TICK: Final = 4

_MOST_VAIN_TICKS: Final = 100

_ATTEMPT: Final = (
    "attempt",
    "start_seconds",
    "end_seconds",
    "predicted_seconds",
    "predicted_low_seconds",
    "predicted_high_seconds",
    "corrections",
    "backfilled",
    "placement",
    "ended_because",
)
_SPECIFIED: Final = (
    "job_id",
    "submit_seconds",
    "cpus",
    "user",
    "requested_seconds",
    "deadline_seconds",
    "nominal_runtime_seconds",
    "accepted",
)
_ROW: Final = (*_ATTEMPT, *_SPECIFIED)
"""The columns of a row: what one attempt adds, and what is said of every job."""


@dataclass(slots=True)
class _Attempt:
    """One attempt of a job, from its start on."""

    job: Job
    number: int
    start_seconds: float
    end_seconds: float
    ended_because: EndedBecause
    placement: Placement
    backfilled: bool
    end: Ended | None = None

    def outcome(self) -> Outcome:
        return Outcome(
            job_id=self.job.job_id,
            start_seconds=self.start_seconds,
            end_seconds=self.end_seconds,
            ended_because=self.ended_because,
            attempt=self.number,
        )


@dataclass(frozen=True, slots=True)
class _TickFor:
    """A tick that nobody needs once the job waits no longer."""

    time: float
    job_id: str


@dataclass(slots=True)
class _SimulatedCluster:
    """The heap of what will happen, the truth behind it, and the rows of what has."""

    submissions: Iterator[Job]
    cluster: Cluster
    runtime_seconds: dict[str, float]
    enforces_limits: bool
    surroundings: Surroundings
    reservations: Mapping[str, Reservation | Rejection]
    arrival: dict[str, int] = field(default_factory=dict)
    arrived: list[str] = field(default_factory=list)
    first: int = 0
    waiting: dict[str, Job] = field(default_factory=dict)
    running: dict[str, _Attempt] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    heap: list[tuple[float, int, int, Event | _TickFor]] = field(default_factory=list)
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    ends: Counter[EndedBecause] = field(default_factory=Counter)
    pushed: int = 0
    too_wide: list[Job] = field(default_factory=list)
    withdrawn: list[Job] = field(default_factory=list)
    now: float = 0.0
    next_tick: float = -math.inf
    vain_ticks: int = 0
    capacity: Capacity = field(init=False)
    slowdowns: Slowdowns = field(init=False)

    def __post_init__(self) -> None:
        self.capacity = Capacity(self.cluster)
        self.slowdowns = Slowdowns(self.cluster)
        nodes = {node.name for partition in self.cluster.partitions for node in partition.nodes}
        for outage in self.surroundings.outages:
            if outage.node not in nodes:
                raise InputError("no such node", field="outages", value=outage.node)
            self.push(_NODE, NodeDown(outage.down_seconds, outage.node))
            self.push(_NODE, NodeUp(outage.up_seconds, outage.node))
        self.push_next_submission()

    def push(self, order: int, event: Event | _TickFor) -> None:
        heapq.heappush(self.heap, (event.time, order, self.pushed, event))
        self.pushed += 1

    def push_next_submission(self) -> None:
        """Jobs come in order of submission: one of them in the heap at a time is enough."""
        job = next(self.submissions, None)
        if job is not None:
            self.push(_SUBMISSION, Submitted(job.submit_seconds, job))

    def happened(self) -> tuple[float, list[Event]]:
        """The next instant at which anything happens, and all that does."""
        self.now = now = self.heap[0][0]
        events: list[Event] = []
        while self.heap and self.heap[0][0] == now:
            event = heapq.heappop(self.heap)[3]
            if isinstance(event, _TickFor):
                if event.job_id not in self.waiting:
                    continue
                event = Tick(event.time)
            if isinstance(event, Submitted):
                self.enqueue(event.job)
                self.push_next_submission()
            if isinstance(event, NodeDown):
                events += [self.lose(attempt, now) for attempt in self.running_on(event.node)]
            if self.is_current(event):
                events.append(event)
        self.push_tick(now)
        return now, events

    def push_tick(self, now: float) -> None:
        """Have the scheduler asked at the next whole cycle, while there is anybody to ask about.

        If nobody runs, nothing is to come, and it has started nobody in many cycles, it never will.
        """
        cycle = self.surroundings.cycle_seconds
        if cycle is None or self.next_tick > now or not (self.waiting or self.running):
            return
        self.vain_ticks = 0 if self.running or self.heap else self.vain_ticks + 1
        if self.vain_ticks > _MOST_VAIN_TICKS:
            return
        self.next_tick = (math.floor(now / cycle) + 1) * cycle
        self.push(_TICK, Tick(self.next_tick))

    def running_on(self, node: str) -> list[_Attempt]:
        """Attempts that have a task on a node."""
        return [
            attempt
            for attempt in self.running.values()
            if any(name == node for name, _ in attempt.placement.tasks_by_node)
        ]

    def lose(self, attempt: _Attempt, now: float) -> Ended:
        """An attempt ends because a node of it does; its work is lost."""
        attempt.end_seconds = now
        attempt.ended_because = EndedBecause.LOST
        attempt.end = Ended(now, attempt.outcome())
        return attempt.end

    def enqueue(self, job: Job) -> None:
        """Note who waits; a job that can never start is not one whom others overtake."""
        self.arrival[job.job_id] = len(self.arrived)
        self.arrived.append(job.job_id)
        if self.capacity.could_hold(job):
            self.waiting[job.job_id] = job
        else:
            self.too_wide.append(job)

    def is_current(self, event: Event) -> bool:
        """Whether the event has not been made void by a preemption."""
        if isinstance(event, Ended):
            attempt = self.running.get(event.outcome.job_id)
            return attempt is not None and (
                attempt.end is event or attempt.outcome() == event.outcome
            )
        if isinstance(event, EstimateExpired):
            return event.job_id in self.running
        return True

    def apply(self, instruction: Instruction, now: float) -> None:
        match instruction:
            case Start():
                self.start(instruction, now)
            case WakeAt():
                if instruction.time < self.running[instruction.job_id].end_seconds:
                    expiry = EstimateExpired(instruction.time, instruction.job_id)
                    self.push(_EXPIRY, expiry)
            case Preempt():
                self.preempt(instruction.job_id, now)
            case Withdraw():
                withdrawn = self.waiting.pop(instruction.job_id, None)
                if withdrawn is not None:
                    self.withdrawn.append(withdrawn)
            case TickAt():
                time = max(self.cycle_from(instruction.time), now)
                self.push(_TICK, _TickFor(time, instruction.job_id))

    def cycle_from(self, time: float) -> float:
        """When the scheduler is asked at that time, or next after it."""
        cycle = self.surroundings.cycle_seconds
        return time if cycle is None else math.ceil(time / cycle - 1e-9) * cycle

    def start(self, start: Start, now: float) -> None:
        job_id = start.job_id
        first_waiting = self.first_waiting()
        job = self.waiting.pop(job_id)
        runtime, because = self.runtime_seconds[job_id], EndedBecause.COMPLETED
        limit = math.inf if job.requested_seconds is None else job.requested_seconds
        if self.enforces_limits and runtime > limit:
            runtime, because = limit, EndedBecause.LIMIT
        self.attempts[job_id] = self.attempts.get(job_id, 0) + 1
        number = self.attempts[job_id]
        runtime *= self.slowdowns.of(job, start.placement)
        attempt = _Attempt(
            job=job,
            number=number,
            start_seconds=now,
            end_seconds=now + self.surroundings.seconds_held(job_id, number, runtime),
            ended_because=because,
            placement=start.placement,
            backfilled=first_waiting != job_id,
        )
        self.running[job_id] = attempt
        attempt.end = Ended(attempt.end_seconds, attempt.outcome())
        self.push(_END, attempt.end)

    def first_waiting(self) -> str:
        """Who of those who wait came first."""
        while self.arrived[self.first] not in self.waiting:
            self.first += 1
        return self.arrived[self.first]

    def preempt(self, job_id: str, now: float) -> None:
        """The attempt ends at once and its work is lost; the job's next one starts anew."""
        attempt = self.running[job_id]
        attempt.end_seconds = now
        attempt.ended_because = EndedBecause.PREEMPTED
        attempt.end = Ended(now, attempt.outcome())
        self.push(_END, attempt.end)
        if self.surroundings.cycle_seconds is not None:
            self.push(_TICK, Tick(now))  # the same cycle goes on with what that frees

    def close(self, outcome: Outcome, controller: Controller) -> None:
        """Write the row of an attempt that is about to be reported as ended."""
        attempt = self.running.pop(outcome.job_id)
        job = attempt.job
        prediction = controller.submitted_job(job.job_id).prediction
        if outcome.ended_because in (EndedBecause.PREEMPTED, EndedBecause.LOST):
            self.requeue(job)
        self.ends[outcome.ended_because] += 1
        self.rows.append(
            (
                attempt.number,
                attempt.start_seconds,
                attempt.end_seconds,
                prediction.mean(),
                prediction.quantile(0.10),
                prediction.quantile(0.90),
                controller.running[job.job_id].corrections,
                attempt.backfilled,
                placement_text(attempt.placement),
                attempt.ended_because.value,
                *self.specified(job),
            )
        )

    def requeue(self, job: Job) -> None:
        """Back to its place in the queue: among those who wait, in order of submission."""
        self.waiting[job.job_id] = job
        self.first = min(self.first, self.arrival[job.job_id])

    def specified(self, job: Job) -> tuple[Any, ...]:
        """What a row says of a job whatever has become of it, as ``_SPECIFIED`` has it."""
        answer = self.reservations.get(job.job_id)
        return (
            job.job_id,
            job.submit_seconds,
            job.cpus,
            job.user,
            job.requested_seconds,
            job.deadline_seconds,
            self.runtime_seconds[job.job_id],
            None if answer is None else isinstance(answer, Reservation),
        )

    def all_rows(self) -> list[tuple[Any, ...]]:
        """A row per attempt, and one for each job that has had none; columns as in ``_ROW``."""
        waiting = sorted(self.waiting.values(), key=lambda each: self.arrival[each.job_id])
        left = [*waiting, *self.too_wide, *self.withdrawn]
        none = (None,) * len(_ATTEMPT)
        return self.rows + [
            (*none, *self.specified(job)) for job in left if job.job_id not in self.attempts
        ]


def simulate_events(
    workload: Workload,
    controller: Controller,
    policy: str,
    *,
    enforce_limits: bool = False,
    surroundings: Surroundings = IDEAL,
    elsewhere: Callable[[], Iterable[Event]] = tuple,
    watch: Watch | None = None,
) -> Schedule:
    """Run a workload under the controller, event by event, and say what happened.

    A job runs for its true runtime from its start on (one that was preempted, or lost with a node,
    starts from the beginning); where its placement is not a preferred one, longer by its slowdown.
    An oracle among the predictors is handed the truth first.

    Parameters
    ----------
    workload
        Jobs and their truth.
    controller
        A fresh one; its predictor may have learned before.
    policy
        What to call scheduler, predictor and correction in the schedule.
    enforce_limits
        Kill jobs at their requested time.
    surroundings
        What the cluster does that an ideal one does not.
    elsewhere
        Asked after every step for what is going to happen that is not the cluster's doing.
    watch
        Is given a measure of the seconds of the log that are simulated.

    Returns
    -------
    Schedule
        A row per attempt, and one for each job that never started, in order of submission. Its
        counters are those of the controller, ``preempted`` and ``lost`` attempts, and
        ``never_started``: jobs that were still waiting when nothing more could happen.

    Raises
    ------
    ImpossibleTransition
        If two jobs share an id.
    InputError
        If an outage is of a node that does not exist.
    """
    began = time.perf_counter()
    truth = workload.truth()
    if isinstance(controller.predictor, NeedsTruth):
        controller.predictor.reveal(truth)
    cluster = _SimulatedCluster(
        submissions=workload.specifications(),
        cluster=controller.cluster,
        runtime_seconds=truth,
        enforces_limits=enforce_limits,
        surroundings=surroundings,
        reservations=controller.reservations,
    )
    if watch is not None:
        watch(_measure(cluster, workload))
    while cluster.heap:
        now, events = cluster.happened()
        if not events:
            continue
        for event in events:
            if isinstance(event, Ended):
                cluster.close(event.outcome, controller)
        for instruction in controller.step(now, events):
            cluster.apply(instruction, now)
        for event in elsewhere():
            cluster.push(_END, event)
    return Schedule(
        jobs=_by_submission(cluster.all_rows(), workload),
        meta=ScheduleMeta(
            policy=policy,
            processors=controller.cluster.total.cpus,
            workload=workload.meta.source,
            conventions=controller.conventions.name,
            counters=_counters(controller, cluster),
            replay_seconds=time.perf_counter() - began,
        ),
    )


def _measure(cluster: _SimulatedCluster, workload: Workload) -> Measure:
    """Seconds from the first submission, and to the last; what comes after it counts no more."""
    submit = workload.jobs["submit_seconds"].to_numpy()
    first, last = (float(submit.min()), float(submit.max())) if submit.size else (0.0, 0.0)

    def measure() -> tuple[float, float]:
        return min(cluster.now, last) - first, last - first

    return measure


def placement_text(placement: Placement) -> str:
    """The place, or ``place:tasks`` separated by commas if several; nodes where they are named."""
    places = placement.tasks_by_node or placement.tasks_by_partition
    if len(places) == 1:
        return places[0][0]
    return ",".join(f"{name}:{tasks}" for name, tasks in places)


def _by_submission(rows: list[tuple[Any, ...]], workload: Workload) -> pl.DataFrame:
    submitted = workload.jobs.select("job_id").with_row_index("submission")
    columns = zip(_ROW, zip(*rows, strict=True), strict=True) if rows else ()
    table = pl.DataFrame(
        {name: pl.Series(values, dtype=schema.SCHEDULE[name]) for name, values in columns},
        schema=None if rows else schema.SCHEDULE,
    )
    return (
        table.select(*schema.SCHEDULE)
        .join(submitted, on="job_id", how="left")
        .sort("submission", "attempt")
        .drop("submission")
    )


def _counters(controller: Controller, cluster: _SimulatedCluster) -> dict[str, float]:
    counters, ends = controller.counters, cluster.ends
    return {
        "passes": counters.passes,
        "corrections": counters.corrections,
        "refusals": counters.refusals,
        "delayed_heads": counters.delayed_heads,
        "preempted": ends[EndedBecause.PREEMPTED],
        "lost": ends[EndedBecause.LOST],
        "never_started": len(cluster.waiting) + len(cluster.too_wide),
    }
