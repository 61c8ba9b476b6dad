"""Recovery: the state of a run rebuilt from its event log, by taking every logged step again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from foresail.clusters.ledger import Ledger
from foresail.control.log import DurableLog, EventLog
from foresail.control.log_text import parse_record, record_line
from foresail.control.loop import Controller
from foresail.control.records import EventTaken, Manifest, Record, Solved
from foresail.control.state import ImpossibleTransition
from foresail.model.errors import InputError
from foresail.model.event import Event

_DRAINED: Final = "drained"
_REOPENED: Final = "reopened"
_SOLUTION: Final = "solution"
"""Depends on how quick the machine was: it is not made again."""


class RunLog:
    """The log of a run: while steps are taken again it only keeps the last one for comparison."""

    def __init__(self) -> None:
        self._file: DurableLog | None = None
        self._lines: list[str] = []
        self.last_step: list[str] = []
        """The lines of the last step that was taken again."""

    def append(self, record: Record) -> None:
        """Take one record."""
        if self._file is None:
            if not isinstance(record, Solved):
                self._lines.append(record_line(record))
        else:
            self._file.append(record)

    def commit(self) -> None:
        """End a step: on disk when this returns, once the log goes on."""
        if self._file is None:
            self.last_step, self._lines = self._lines, []
        else:
            self._file.commit()

    def go_on(self, path: Path, manifest: Manifest | None) -> None:
        """Write from now on, to the end of a file; a manifest makes it a new session."""
        self._file = DurableLog(path, manifest)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


@dataclass(slots=True)
class _LoggedStep:
    """One step as the log has it, from byte ``begin`` on."""

    begin: int
    time: float = 0.0
    kinds: set[str] = field(default_factory=set)
    events: list[Event] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def recover(
    path: Path, manifest: Manifest, build: Callable[[EventLog], Controller]
) -> tuple[Controller, Ledger, RunLog]:
    """The controller and the ledger as they were after the last whole step of a log.

    The log is left open at its end, without what a crash left of a step that was being written:
    nothing of that one had been carried out, and its events are to be found out again. A log that
    does not exist yet begins with the manifest.

    Parameters
    ----------
    path
        The log.
    manifest
        What a new log begins with.
    build
        Makes the run's controller, fresh, writing to a log.

    Raises
    ------
    InputError
        If the log is damaged, or its decisions are not made again (another version, say).
    """
    steps = list(_logged_steps(path))
    controller, ledger, log, repeated = _take_again(steps, build)
    if repeated == len(steps) - 1 and _was_being_written(steps[-1], log):
        os.truncate(path, steps[-1].begin)
        controller, ledger, log, _ = _take_again(steps[:-1], build)
    elif repeated < len(steps):
        raise InputError(
            f"its decisions are not made again (step {repeated})",
            source=path,
            expected="the version of Foresail that the run was begun with",
        )
    log.go_on(path, None if _has_manifest(path) else manifest)
    return controller, ledger, log


def _take_again(
    steps: list[_LoggedStep], build: Callable[[EventLog], Controller]
) -> tuple[Controller, Ledger, RunLog, int]:
    """Take steps again for as long as they leave the lines that are in the log; how many did."""
    log = RunLog()
    controller, ledger = build(log), Ledger()
    for repeated, step in enumerate(steps):
        if _DRAINED in step.kinds:
            controller.drain()
        if _REOPENED in step.kinds:
            controller.reopen()
        try:
            ledger.take_events(step.time, step.events, controller)
            ledger.take_instructions(controller.step(step.time, step.events))
        except (
            ImpossibleTransition,
            KeyError,
        ):  # what is logged cannot follow from what came first
            return controller, ledger, log, repeated
        if log.last_step != step.lines or not step.events:
            return controller, ledger, log, repeated
    return controller, ledger, log, len(steps)


def _was_being_written(step: _LoggedStep, log: RunLog) -> bool:
    """Whether a step that was taken again had only begun to be written (events come first)."""
    return log.last_step[: len(step.lines)] == step.lines


def _has_manifest(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.readline().endswith(b"\n")
    except FileNotFoundError:
        return False


def _logged_steps(path: Path) -> Iterator[_LoggedStep]:
    if not _has_manifest(path):
        return
    offset, current, step = 0, -1, _LoggedStep(0)
    for number, raw in enumerate(path.read_bytes().splitlines(keepends=True), 1):
        if not raw.endswith(b"\n"):
            break
        begin, offset = offset, offset + len(raw)
        if number == 1:
            continue
        line = raw.decode(errors="replace")
        try:
            plain = json.loads(line)
            kind, at = str(plain["kind"]), int(plain["step"])
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                "not a record of an event log", source=path, line=number, value=line[:80]
            ) from error
        if kind == _SOLUTION:
            continue
        if at != current:
            if step.lines:
                yield step
            current, step = at, _LoggedStep(begin)
        step.lines.append(line)
        step.kinds.add(kind)
        if kind == "event":
            record = parse_record(line, path, number)
            if isinstance(record, EventTaken):
                step.time = record.time
                step.events.append(record.event)
    if step.lines:
        yield step
