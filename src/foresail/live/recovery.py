"""Recovery: the state of a run from its event log, whatever decided what is in it.

What happened and what was instructed is folded (``foresail.record.run_fold``), up to the last
step that is whole. Nothing of a later one was carried out, since a step is on disk before its
instructions are.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from foresail.control.loop import Controller
from foresail.live.run_log import RunLog, read_snapshot, snapshot_path
from foresail.model.errors import InputError
from foresail.model.event import Submitted
from foresail.model.protocols import ComparesWith
from foresail.record.compaction import Compaction
from foresail.record.job_life import ImpossibleTransition
from foresail.record.log import COMMITTED_LINE, EventLog, NullLog
from foresail.record.log_text import parse_record
from foresail.record.records import EventTaken, Forgotten, Manifest, Predicted
from foresail.record.run_fold import RunFold

_MARK: Final = COMMITTED_LINE.encode()
_TOLD_ONLY: Final = (b'{"kind":"reason', b'{"kind":"solution"', _MARK)
"""Records that the state does not follow from."""


def recover(
    path: Path, manifest: Manifest, build: Callable[[EventLog], Controller]
) -> tuple[Controller, RunLog]:
    """The controller as it was after the last whole step of a log, and the log, open at its end.

    What a crash left of a step that was being written is cut off: nothing of that one had been
    carried out, and its events are to be found out again. A log that does not exist yet, or whose
    first line is torn, begins with the manifest.

    ``manifest`` is what a new log begins with; ``build`` makes the run's controller, fresh, writing
    to a log; also one that is only asked what its scheduler compares with.

    Raises ``InputError`` if the log is damaged, or cannot be read or written.
    """
    content = _content(path)
    end = _end_of_whole_steps(content, path)
    compares_with = build(NullLog()).compares_with if end > 0 else None
    known = _known(content[:end], path, compares_with)
    _end_with_whole_step(path, content, end)
    first = manifest if end == 0 else None
    log = RunLog(path, first, known.compaction, known.since_snapshot)
    controller = build(log)
    if end > 0:
        controller.take_over(known.run)
    return controller, log


@dataclass(slots=True)
class KnownRun:
    """What the records of a run lead to, and what its log is to go on with.

    ``since_snapshot`` counts the records that matter behind the last snapshot; ``end`` is the
    number of the last record.
    """

    run: RunFold = field(default_factory=RunFold)
    compaction: Compaction = field(default_factory=Compaction)
    since_snapshot: int = 0
    end: int = 0

    def take(self, line: str, number: int, source: object, place: int | None = None) -> None:
        """Take a record of a whole step; with its number in the log, if it can be read by that."""
        record = parse_record(line, source, number)
        if number == 1 and not isinstance(record, Manifest):
            raise InputError(
                "does not begin with a manifest", source=source, expected="an event log"
            )
        try:
            self.run.take(record)
            self.compaction.take(record, line, place)
            if isinstance(record, Forgotten):
                self.run.forget(record.job_ids)
        except (ImpossibleTransition, KeyError, ValueError) as error:
            raise InputError(
                f"does not fit what comes before: {error}",
                source=source,
                line=number,
                expected="the log as the run left it",
            ) from error
        self.since_snapshot += 1
        self.end = number


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=path) from error


def _end_of_whole_steps(content: bytes, path: Path) -> int:
    """Where the last whole step ends; 0 if not even the manifest is whole."""
    mark = content.rfind(b"\n" + _MARK)
    if mark >= 0:
        return mark + 1 + len(_MARK)
    return _end_without_marks(content[: content.rfind(b"\n") + 1], path)


def _end_without_marks(content: bytes, path: Path) -> int:
    """The end of the last step of a log from before there were marks (0.1.0).

    That step counts as whole if none of its submissions lacks its prediction: of a job that it does
    not start, nothing is lost, and one that it started is found by its claim.
    """
    size, last = 0, None
    submitted, predicted = set[str](), set[str]()
    lines = content.splitlines(keepends=True)
    for number in range(len(lines), 1, -1):
        record = parse_record(lines[number - 1].decode(errors="replace"), path, number)
        step = getattr(record, "step", None)
        if last not in (None, step):
            break
        last = step
        size += len(lines[number - 1])
        match record:
            case Predicted(job_id=job_id):
                predicted.add(job_id)
            case EventTaken(event=Submitted(job=job)):
                submitted.add(job.job_id)
    return len(content) if submitted <= predicted else len(content) - size


def _known(content: bytes, path: Path, compares_with: ComparesWith | None) -> KnownRun:
    """What the records of whole steps lead to: those of a snapshot first, and what follows it."""
    snapshot = read_snapshot(snapshot_path(path), content)
    known, begin = KnownRun(RunFold(compares_with)), 0
    if snapshot is not None:
        try:
            _fold(known, snapshot.lines, 0, path)
            known.since_snapshot, begin = 0, snapshot.end
        except InputError:  # it is not what this version would have written: do without
            known = KnownRun(RunFold(compares_with))
    _fold(known, content, begin, path)
    return known


def _fold(known: KnownRun, content: bytes, begin: int, path: Path) -> None:
    """Take the records from a byte on."""
    lines = io.BytesIO(content)
    lines.seek(begin)
    for number, line in enumerate(lines, 1 + content.count(b"\n", 0, begin)):
        if line.startswith(_TOLD_ONLY):
            continue
        known.take(line.decode(errors="replace"), number, path)


def _end_with_whole_step(path: Path, content: bytes, end: int) -> None:
    """Cut off what is no whole step, and mark the last one if an older version did not."""
    missing = b"" if end == 0 or content[:end].endswith(b"\n" + _MARK) else _MARK
    if end == len(content) and not missing:
        return
    try:
        with path.open("r+b") as file:
            file.truncate(end)
            file.seek(end)
            file.write(missing)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", source=path) from error
