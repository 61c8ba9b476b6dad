"""The twin: a fresh controller on a recorded cluster must instruct what the recorded run did.

What the cluster reports comes from an adapter that repeats the log, instruction by instruction.
What the log alone can tell is what came from elsewhere: jobs that were submitted or cancelled,
drains, outcomes of earlier runs, and when the driver looked at its clock.

The log may come from a simulation or from a live cluster. A difference means that the policy or the
loop depends on something that the log does not hold: a clock, an unseeded choice, a version.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final, Generic, TypeAlias, TypeVar

from foresail.control.loop import Controller
from foresail.model.adapter import Capabilities
from foresail.model.changing_nodes import changed
from foresail.model.cluster import Cluster
from foresail.model.decision import Instruction, Preempt, Start
from foresail.model.event import (
    Ended,
    Event,
    HistoryOutcome,
    NodeChange,
    NodeDown,
    NodeEvent,
    NodeRemoved,
)
from foresail.model.outcome import Allocation, EndedBecause, Outcome
from foresail.record.job_life import ImpossibleTransition
from foresail.record.records import (
    Drained,
    EventTaken,
    Instructed,
    Manifest,
    PolicyChanged,
    Record,
    Reopened,
)
from foresail.record.run_fold import folded

_Reported = TypeVar("_Reported", bound=Ended | NodeEvent)


@dataclass(frozen=True, slots=True)
class _News(Generic[_Reported]):
    """Report that is due at a time; the step of the run that heard it (-1: none)."""

    due_seconds: float
    event: _Reported
    step: int = -1
    position: int = -1


@dataclass(slots=True)
class _Told:
    """Record of an attempt in the log."""

    start_seconds: float | None = None
    stop_seconds: float | None = None
    end: _News[Ended] | None = None

    @property
    def was_stopped(self) -> bool:
        """Return whether it ended because that was instructed."""
        if self.end is None or self.stop_seconds is None:
            return False
        return self.end.event.outcome.ended_because is EndedBecause.PREEMPTED


@dataclass(slots=True)
class _RepeatedAttempt:
    """An attempt that runs, how much later than it did, and its end as far as that is known."""

    start: Start
    start_seconds: float
    later_seconds: float
    is_stopping: bool = False
    end: _News[Ended] | None = None


_Entry: TypeAlias = tuple[float, int, int, _News[Any]]
"""News by when it is due, its place in the log, and when it was expected."""


class RecordedAdapter:
    """A ``ClusterAdapter`` whose time is that of who drives it, and whose course is a log's.

    An attempt ends as it did, as long after its start as it did; one that was stopped, as long
    after that. If the log has no end of it, it runs on for ever, and if the log did not stop it,
    it ends at once when it is stopped. Nodes go and come when they did. A report has what one step
    of the run had heard, so that who instructs what was instructed hears the same, step by step.

    ``cluster`` is what there was to run on at first.
    """

    capabilities: Final = Capabilities(
        places=True, preempts=True, changes_nodes=True, starts_tasks=True
    )
    wake_descriptor: Final = None

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._told: dict[Allocation, _Told] = defaultdict(_Told)
        self._running: dict[Allocation, _RepeatedAttempt] = {}
        self._begun: set[Allocation] = set()
        self._coming: list[_Entry] = []  # a heap; some ends have moved since
        self._positions = count()
        self._pushes = count()

    def take(self, record: Record) -> None:
        """Take the next record of the log: what was instructed, and what the cluster reported."""
        match record:
            case Instructed(time=now, instruction=Start() as start):
                self._told[start.allocation].start_seconds = now
            case Instructed(time=now, instruction=Preempt() as preempt):
                self._told[preempt.allocation].stop_seconds = now
            case EventTaken(step=step, time=now, event=Ended() as event):
                news = _News(now, event, step, next(self._positions))
                self._told[event.outcome.allocation].end = news
            case EventTaken(step=step, time=now, event=event) if isinstance(event, NodeEvent):
                self._expect(_News(now, event, step, next(self._positions)))
            case _:
                pass

    def history(self) -> Sequence[HistoryOutcome]:
        """None: the log has them among the run's events, whoever knew them."""
        return ()

    def resume(self, running: Sequence[Start], now: float) -> Sequence[Event]:
        """Resume attempts: those that the log has start when it says, others now."""
        for start in running:
            began = self._told[start.allocation].start_seconds
            self._begin(start, now if began is None else began)
        events: list[Event] = []
        while self.next_seconds <= now:
            events += self.reports(now)
        return events

    def carry_out(self, instruction: Instruction, now: float) -> None:
        """Start or stop an attempt; the rest is not a cluster's to do."""
        match instruction:
            case Start():
                self._begin(instruction, now)
            case Preempt():
                self._stop(instruction.allocation, now)

    @property
    def next_seconds(self) -> float:
        """Return when the next attempt ends or node changes; infinity if none does."""
        while self._coming:
            news = self._coming[0][-1]
            if not isinstance(news.event, Ended):
                return news.due_seconds
            running = self._running.get(news.event.outcome.allocation)
            if running is not None and running.end is news:
                return news.due_seconds
            heapq.heappop(self._coming)
        return math.inf

    def reports(self, now: float) -> Sequence[Event]:
        """Report what the next step of the run heard, and all that is due."""
        events: list[Event] = []
        step = None
        while self.next_seconds <= now and step in (None, self._coming[0][-1].step):
            news = heapq.heappop(self._coming)[-1]
            events += self._happen(news.event)
            step = news.step
        return events

    def close(self) -> None:
        """Nothing is held open."""

    def _begin(self, start: Start, now: float) -> None:
        """Let an attempt run, once; if it was stopped in the log, until it is stopped."""
        if start.allocation in self._begun:
            return
        told = self._told[start.allocation]
        later = 0.0 if told.start_seconds is None else now - told.start_seconds
        running = _RepeatedAttempt(start, now, later)
        self._begun.add(start.allocation)
        self._running[start.allocation] = running
        if told.end is not None and not told.was_stopped:
            self._end_as_told(running, told.end, later)

    def _stop(self, allocation: Allocation, now: float) -> None:
        running, told = self._running.get(allocation), self._told[allocation]
        if running is None or running.is_stopping:
            return
        running.is_stopping = True
        if told.stop_seconds is None:
            running.end = _News(now, _cut_short(running, now, EndedBecause.PREEMPTED))
            self._expect(running.end)
        elif told.end is not None and told.was_stopped:
            self._end_as_told(running, told.end, now - told.stop_seconds)

    def _end_as_told(
        self, running: _RepeatedAttempt, told: _News[Ended], later_seconds: float
    ) -> None:
        outcome = told.event.outcome
        moved = replace(
            outcome,
            start_seconds=outcome.start_seconds + running.later_seconds,
            end_seconds=outcome.end_seconds + later_seconds,
        )
        event = Ended(told.event.time + later_seconds, moved)
        running.end = replace(told, due_seconds=told.due_seconds + later_seconds, event=event)
        self._expect(running.end)

    def _expect(self, news: _News[Any]) -> None:
        heapq.heappush(self._coming, (news.due_seconds, news.position, next(self._pushes), news))

    def _happen(self, event: Ended | NodeEvent) -> Iterator[Event]:
        """An event, after what a node takes along that has run elsewhere in the log."""
        match event:
            case Ended(outcome=outcome):
                del self._running[outcome.allocation]
            case NodeDown(node=node) | NodeRemoved(node=node):
                for allocation, running in list(self._running.items()):
                    if node in dict(running.start.placement.tasks_by_node):
                        del self._running[allocation]
                        yield _cut_short(running, event.time, EndedBecause.LOST)
        if isinstance(event, NodeChange):
            self.cluster = changed(self.cluster, event)
        yield event


def _cut_short(running: _RepeatedAttempt, now: float, because: EndedBecause) -> Ended:
    """An end that the log does not have."""
    start, began = running.start, min(running.start_seconds, now)
    outcome = Outcome(start.job_id, began, now, because, attempt=start.attempt)
    return Ended(now, replace(outcome, stage=start.stage, tasks=start.tasks))


class ImpossibleReport(Exception):  # noqa: N818 - it says what it is
    """A log has what its cluster cannot have reported, had it followed its instructions."""

    def __init__(self, step: int, now: float, events: Iterable[Event]) -> None:
        jobs = [each.outcome.job_id for each in events if isinstance(each, Ended)]
        what = f"job {jobs[0]!r} cannot have ended" if jobs else "nodes cannot have changed"
        super().__init__(f"{what} at {now:g} s (step {step})")


@dataclass(frozen=True, slots=True)
class Difference:
    """A step whose repetition brought other instructions than the log has.

    ``session`` counts the manifests of the log from 0, ``step`` the steps of that session.
    """

    session: int
    step: int
    time: float
    recorded: tuple[Instruction, ...]
    repeated: tuple[Instruction, ...]


def differences(
    records: Iterable[Record], build: Callable[[Manifest], Controller]
) -> Iterator[Difference]:
    """Repeat a log and compare; an empty result means that every decision was made again.

    After a difference the cluster goes the way that it is led: each attempt that starts runs as
    long as it did. The rest of a session is compared as far as the log's events still make sense (a
    job that runs cannot be cancelled).

    ``records`` begin with a manifest; each further one begins a session of its own. ``build`` makes
    the controller that a manifest describes. An oracle's truth and what a predictor had learned
    before are for it to provide, unless the log begins with that history.

    Raises ``ImpossibleReport`` or ``ImpossibleTransition`` if the log's events cannot have
    happened, though all instructions before were the same.
    """
    for session, (manifest, cluster, steps) in enumerate(_sessions(records)):
        yield from _differences_of(session, build, manifest, cluster, steps.values())


def _differences_of(
    session: int,
    build: Callable[[Manifest], Controller],
    manifest: Manifest,
    cluster: RecordedAdapter,
    steps: Iterable[_Step],
) -> Iterator[Difference]:
    controller = build(manifest)
    differs = False
    for step in steps:
        if step.changed is not None:
            so_far, policy = step.changed
            controller = build(policy)
            controller.take_over(folded(so_far, controller.compares_with))
        if step.drained:
            controller.drain()
        if step.reopened:
            controller.reopen()
        reports = _reported(cluster, step, differs=differs)
        if not (step.events or reports):
            continue
        try:
            repeated = tuple(controller.step(step.time, [*step.events, *reports]))
        except ImpossibleTransition:
            if differs:
                return
            raise
        for instruction in repeated:
            cluster.carry_out(instruction, step.time)
        if repeated != tuple(step.instructions):
            differs = True
            yield Difference(session, step.number, step.time, tuple(step.instructions), repeated)


def _reported(cluster: RecordedAdapter, step: _Step, *, differs: bool) -> list[Event]:
    """Return the cluster's reports in a step: as recorded, until decisions differ."""
    if not differs:
        reports = list(cluster.reports(step.time)) if step.reports else []
        if reports != step.reports:
            unheard = [each for each in step.reports if each not in reports]
            raise ImpossibleReport(step.number, step.time, unheard)
        return reports
    reports = []
    while cluster.next_seconds <= step.time:
        reports += cluster.reports(step.time)
    return reports


@dataclass(slots=True)
class _Step:
    """A step: the service's events, what the cluster reported, and what was instructed."""

    number: int
    time: float = 0.0
    changed: tuple[Sequence[Record], Manifest] | None = None
    drained: bool = False
    reopened: bool = False
    events: list[Event] = field(default_factory=list)
    reports: list[Event] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)


_Session: TypeAlias = tuple[Manifest, RecordedAdapter, dict[int, _Step]]


def _sessions(records: Iterable[Record]) -> list[_Session]:
    sessions: list[_Session] = []
    so_far: list[Record] = []
    for record in records:
        if isinstance(record, Manifest):
            sessions.append((record, RecordedAdapter(record.cluster), {}))
            so_far = [record]
            continue
        manifest, cluster, steps = sessions[-1]
        cluster.take(record)
        so_far.append(record)
        match record:
            case PolicyChanged(step=number, policy=policy):
                then = replace(manifest, policy=policy, starts_tasks=record.starts_tasks)
                _step(steps, number).changed = tuple(so_far), then
            case Drained(step=number):
                _step(steps, number).drained = True
            case Reopened(step=number):
                _step(steps, number).reopened = True
            case EventTaken(step=number, time=now, event=event):
                step = _step(steps, number)
                step.time = now
                is_report = isinstance(event, Ended | NodeEvent)
                (step.reports if is_report else step.events).append(event)
            case Instructed(step=number, instruction=instruction):
                _step(steps, number).instructions.append(instruction)
            case _:
                pass
    return sessions


def _step(steps: dict[int, _Step], number: int) -> _Step:
    return steps.setdefault(number, _Step(number))
