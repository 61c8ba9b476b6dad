"""Recovery: the state of a run from its event log, whoever decided what is in it.

What happened and what was instructed is folded (``foresail.control.run_fold``), up to the last
step that is whole. Nothing of a later one was carried out, since a step is on disk before its
instructions are.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from foresail.control.jobs_fold import JobsFold
from foresail.control.log import COMMITTED_LINE, DurableLog, EventLog
from foresail.control.log_text import parse_record
from foresail.control.loop import Controller
from foresail.control.records import EventTaken, Manifest, Predicted, Record
from foresail.control.run_fold import RunFold
from foresail.control.state import ImpossibleTransition
from foresail.model.errors import InputError
from foresail.model.event import Submitted

_MARK: Final = COMMITTED_LINE.encode()
_TOLD_ONLY: Final = (b'{"kind":"reason"', b'{"kind":"solution"', _MARK)
"""Records that the state does not follow from."""


class RunLog(DurableLog):
    """The log of a run; ``jobs`` follows it.

    Parameters
    ----------
    path
        Where it is; what is there ends with a whole step.
    manifest
        What a new log begins with; None where one goes on.
    jobs
        What became of the jobs so far.
    """

    def __init__(self, path: Path, manifest: Manifest | None, jobs: JobsFold) -> None:
        self.jobs = jobs
        super().__init__(path, manifest)

    def append(self, record: Record) -> None:
        """Take one record."""
        super().append(record)
        self.jobs.take(record)


def recover(
    path: Path, manifest: Manifest, build: Callable[[EventLog], Controller]
) -> tuple[Controller, RunLog]:
    """The controller as it was after the last whole step of a log, and the log, open at its end.

    What a crash left of a step that was being written is cut off: nothing of that one had been
    carried out, and its events are to be found out again. A log that does not exist yet, or whose
    first line is torn, begins with the manifest.

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
        If the log is damaged, or cannot be read or written.
    """
    content = _content(path)
    end = _end_of_whole_steps(content, path)
    run = _folded(content[:end], path)
    _end_with_whole_step(path, content, end)
    log = RunLog(path, manifest if end == 0 else None, run.jobs)
    controller = build(log)
    if end > 0:
        controller.take_over(run)
    return controller, log


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


def _folded(content: bytes, path: Path) -> RunFold:
    """The state that the records of whole steps lead to."""
    run = RunFold()
    for number, line in enumerate(io.BytesIO(content), 1):
        if line.startswith(_TOLD_ONLY):
            continue
        record = parse_record(line.decode(errors="replace"), path, number)
        if number == 1 and not isinstance(record, Manifest):
            raise InputError("does not begin with a manifest", source=path, expected="an event log")
        try:
            run.take(record)
        except (ImpossibleTransition, KeyError) as error:
            raise InputError(
                f"does not fit what comes before: {error}",
                source=path,
                line=number,
                expected="the log as the run left it",
            ) from error
    return run


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
