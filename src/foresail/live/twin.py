"""The twin: a fresh controller that is given a run's events must instruct what the run did.

The log may come from a simulation or from a live cluster. A difference means that the policy or the
loop depends on something that the log does not hold: a clock, an unseeded choice, a version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from foresail.control.loop import Controller
from foresail.model.decision import Instruction
from foresail.model.event import Event
from foresail.record import records as logged
from foresail.record.run_fold import folded


@dataclass(frozen=True, slots=True)
class Difference:
    """The first step of a session whose repetition brought other instructions than the log has.

    ``session`` counts the manifests of the log from 0, ``step`` the steps of that session.
    """

    session: int
    step: int
    time: float
    recorded: tuple[Instruction, ...]
    repeated: tuple[Instruction, ...]


def differences(
    records: Iterable[logged.Record], build: Callable[[logged.Manifest], Controller]
) -> Iterator[Difference]:
    """Repeat a log and compare; an empty result means that every decision was made again.

    A session, which a manifest begins, is compared up to its first difference. ``build`` makes the
    controller that a manifest describes; an oracle's truth and what a predictor had learned before
    are for it to provide, unless the log begins with that history.

    Raises ``ImpossibleTransition`` if the log's events cannot have happened.
    """
    for session, (manifest, steps) in enumerate(_sessions(records)):
        controller = build(manifest)
        for number, step in steps.items():
            if step.changed is not None:
                so_far, policy = step.changed
                controller = build(policy)
                controller.take_over(folded(so_far, controller.compares_with))
            if step.drained:
                controller.drain()
            if step.reopened:
                controller.reopen()
            if not step.events:
                continue
            recorded = tuple(step.instructions)
            repeated = tuple(controller.step(step.time, step.events))
            if repeated != recorded:
                yield Difference(session, number, step.time, recorded, repeated)
                break


@dataclass(slots=True)
class _Step:
    """A step: what happened before it, the events it took, and what was instructed."""

    time: float = 0.0
    changed: tuple[Sequence[logged.Record], logged.Manifest] | None = None
    drained: bool = False
    reopened: bool = False
    events: list[Event] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)


_Session: TypeAlias = tuple[logged.Manifest, dict[int, _Step]]


def _sessions(records: Iterable[logged.Record]) -> list[_Session]:
    sessions: list[_Session] = []
    so_far: list[logged.Record] = []
    for record in records:
        if isinstance(record, logged.Manifest):
            sessions.append((record, {}))
            so_far = [record]
            continue
        manifest, steps = sessions[-1]
        so_far.append(record)
        match record:
            case logged.PolicyChanged(step=number, policy=policy):
                then = replace(manifest, policy=policy, starts_tasks=record.starts_tasks)
                steps.setdefault(number, _Step()).changed = tuple(so_far), then
            case logged.Drained(step=number):
                steps.setdefault(number, _Step()).drained = True
            case logged.Reopened(step=number):
                steps.setdefault(number, _Step()).reopened = True
            case logged.EventTaken(step=number, time=now, event=event):
                step = steps.setdefault(number, _Step())
                step.time = now
                step.events.append(event)
            case logged.Instructed(step=number, instruction=instruction):
                steps.setdefault(number, _Step()).instructions.append(instruction)
    return sessions
