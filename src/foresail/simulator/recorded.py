"""The twin: the events of a recorded run, fed to a fresh controller, must bring its instructions.

The log may come from a simulation or from a live cluster. A difference means that the policy or
the loop depends on something that the log does not hold: a clock, an unseeded choice, a version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from foresail.control.loop import Controller
from foresail.model.decision import Instruction
from foresail.model.event import Event
from foresail.record.records import Drained, EventTaken, Instructed, Manifest, Record, Reopened
from foresail.record.state import ImpossibleTransition


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

    After a difference the rest of a session is compared as far as its events still make sense (a
    job that was not started again cannot end).

    Parameters
    ----------
    records
        A log from its manifest on; each further manifest begins a session of its own.
    build
        Makes the controller that a manifest describes. An oracle's truth and what a predictor had
        learned before are for it to provide, unless the log begins with that history.

    Raises
    ------
    ImpossibleTransition
        If the log's events cannot have happened, though all instructions before were the same.
    """
    for session, (manifest, steps) in enumerate(_sessions(records)):
        yield from _differences_of(session, build(manifest), steps)


def _differences_of(
    session: int, controller: Controller, steps: Iterable[_Step]
) -> Iterator[Difference]:
    differs = False
    for step in steps:
        if step.drained:
            controller.drain()
        if step.reopened:
            controller.reopen()
        if not step.events:
            continue
        try:
            repeated = tuple(controller.step(step.time, step.events))
        except ImpossibleTransition:
            if differs:
                return
            raise
        if repeated != tuple(step.instructions):
            differs = True
            yield Difference(session, step.number, step.time, tuple(step.instructions), repeated)


@dataclass(slots=True)
class _Step:
    number: int
    time: float = 0.0
    drained: bool = False
    reopened: bool = False
    events: list[Event] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)


def _sessions(records: Iterable[Record]) -> list[tuple[Manifest, list[_Step]]]:
    sessions: list[tuple[Manifest, dict[int, _Step]]] = []
    for record in records:
        match record:
            case Manifest():
                sessions.append((record, {}))
            case Drained(step=number):
                _step(sessions[-1][1], number).drained = True
            case Reopened(step=number):
                _step(sessions[-1][1], number).reopened = True
            case EventTaken(step=number, time=now, event=event):
                step = _step(sessions[-1][1], number)
                step.time = now
                step.events.append(event)
            case Instructed(step=number, instruction=instruction):
                _step(sessions[-1][1], number).instructions.append(instruction)
            case _:
                pass
    return [(manifest, list(steps.values())) for manifest, steps in sessions]


def _step(steps: dict[int, _Step], number: int) -> _Step:
    return steps.setdefault(number, _Step(number))
