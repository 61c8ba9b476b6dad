"""The twin: a fresh controller on a recorded cluster must instruct what the recorded run did.

What the cluster reports comes from its adapter (``foresail.live.adapters.recorded``), which does
what it is told. What the log alone can tell is what came from elsewhere: jobs that were submitted
or cancelled, drains, outcomes of earlier runs, and when the driver looked at its clock.

The log may come from a simulation or from a live cluster. A difference means that the policy or the
loop depends on something that the log does not hold: a clock, an unseeded choice, a version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from foresail.control.loop import Controller
from foresail.live.adapters.recorded.adapter import RecordedAdapter
from foresail.model.decision import Instruction
from foresail.model.event import Ended, Event, NodeEvent
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


class ImpossibleReport(Exception):  # noqa: N818 - it says what it is
    """A log tells of what its cluster cannot have reported, if it did as it was told."""

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

    Parameters
    ----------
    records
        A log from its manifest on; each further manifest begins a session of its own.
    build
        Makes the controller that a manifest describes. An oracle's truth and what a predictor had
        learned before are for it to provide, unless the log begins with that history.

    Raises
    ------
    ImpossibleReport, ImpossibleTransition
        If the log's events cannot have happened, though all instructions before were the same.
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
    """What the cluster reports in a step: as is recorded, until decisions differ."""
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
    """A step: what the service was told, what the cluster reported, and what was instructed."""

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
