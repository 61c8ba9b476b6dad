"""The mail hook: a program of the operator's that is called when jobs begin and end.

It is run by the service's account, one at a time, as ``PROGRAM -s SUBJECT TO`` (as Slurm calls its
``MailProg``) with further values in its environment, and no shell. It can neither hold up the
daemon nor fail it: what comes while many wait is dropped, and one that does not end in time is
killed. About what mail may be asked for has the names of ``sbatch``.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from queue import Full, Queue
from typing import Final

from foresail.live.command_job import CommandJob
from foresail.model.errors import InputError
from foresail.model.event import REQUEUED, EndedBecause, Outcome

_ALL: Final = ("BEGIN", "END", "FAIL", "REQUEUE")
_KNOWN: Final = (*_ALL, "TIME_LIMIT", "ARRAY_TASKS")
_FORM: Final = "NONE, ALL, or some of " + ", ".join(_KNOWN) + ", with commas"
_ADDRESS: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@-]{0,253}")
_OF_ENDS: Final[Mapping[EndedBecause, tuple[str, ...]]] = {
    EndedBecause.COMPLETED: ("END",),
    EndedBecause.CANCELLED: ("END",),
    EndedBecause.FAILED: ("FAIL", "END"),
    EndedBecause.LIMIT: ("TIME_LIMIT", "FAIL", "END"),
    EndedBecause.PREEMPTED: ("REQUEUE",),
    EndedBecause.LOST: ("REQUEUE",),
    EndedBecause.REVOKED: ("REQUEUE",),
}


def mail_types(words: str | Iterable[str]) -> str:
    """Return the kinds of mail asked for, with commas; nothing for ``NONE``.

    Raises ``ValueError`` if there is no such type; says which there are.
    """
    text = words if isinstance(words, str) else ",".join(words)
    asked = [each.strip().upper() for each in text.split(",")]
    if asked == ["NONE"]:
        return ""
    types = dict.fromkeys(known for each in asked for known in (_ALL if each == "ALL" else (each,)))
    if not types.keys() <= set(_KNOWN):
        raise ValueError(_FORM)
    return ",".join(types)


def checked_mail(
    words: str | Iterable[str], to: str, *, is_set_up: bool, is_array: bool
) -> tuple[str, str]:
    """About what mail is to be sent and to whom; raises ``InputError`` if it would not be.

    No program takes an address for an option or several words; mail about an array is about each
    of its members, as nobody wants thousands unasked.
    """
    try:
        types = mail_types(words)
    except ValueError as error:
        raise InputError(
            "is not known", field="mail_type", value=words, expected=str(error)
        ) from error
    if not types:
        return "", ""
    if not is_set_up:
        raise InputError("mail is not set up here", field="mail_type", value=types)
    if is_array and "ARRAY_TASKS" not in types.split(","):
        raise InputError(
            "mail about an array as a whole is not supported",
            field="mail_type",
            value=types,
            expected="ARRAY_TASKS too, for mail about each of its members",
        )
    if not _ADDRESS.fullmatch(to):
        raise InputError(
            "is no address", field="mail_user", value=to, expected="a user's name, or a@b.c"
        )
    return types, to


_LOG: Final = logging.getLogger("foresail.service")
_MOST_WAITING: Final = 1_000
_PATIENCE_SECONDS: Final = 30.0
_ASKS_FOR_MAIL: Final = re.compile('"mail_type": ?"[^"]')
"""In the line of a job, of a former version with spaces."""
_KEPT: Final = ("PATH", "HOME", "LANG", "TZ")


class MailHook:
    """Has mail sent about jobs that ask for it.

    ``stored`` are ids and lines of jobs that were accepted before, of which some may run.
    """

    def __init__(
        self,
        program: Sequence[str],
        commands: Mapping[str, CommandJob],
        stored: Iterable[tuple[str, str]],
        patience_seconds: float = _PATIENCE_SECONDS,
    ) -> None:
        self._program = tuple(program)
        self._commands = commands
        self._patience_seconds = patience_seconds
        self._wanted = {
            job_id: CommandJob.from_json(line)
            for job_id, line in stored
            if _ASKS_FOR_MAIL.search(line)
        }
        self._calls: Queue[tuple[list[str], dict[str, str]]] = Queue(_MOST_WAITING)
        self._is_dropping = False
        self._problem: str | None = None
        self._thread = threading.Thread(target=self._work, name="mail", daemon=True)
        self._thread.start()

    def started(self, job_id: str, attempt: int) -> None:
        """An attempt of a job starts."""
        job = self._commands.get(job_id)
        if job is None or not job.mail_type:
            return
        self._wanted[job_id] = job
        if attempt == 1 and "BEGIN" in job.mail_type.split(","):
            self._send(job, "BEGIN", "Began", {})

    def ended(self, outcome: Outcome) -> None:
        """An attempt of a job has ended."""
        job = self._wanted.get(outcome.job_id)
        if job is None:
            return
        because, code = outcome.ended_because, outcome.exit_code
        if because not in REQUEUED:
            del self._wanted[outcome.job_id]
        asked = job.mail_type.split(",")
        kind = next((each for each in _OF_ENDS[because] if each in asked), None)
        if kind is not None:
            said = str(because) if code is None else f"{because}, exit code {code}"
            more = {
                "FORESAIL_MAIL_STATE": str(because),
                "FORESAIL_MAIL_EXIT_CODE": "" if code is None else str(code),
                "FORESAIL_MAIL_RUNTIME_SECONDS": f"{outcome.runtime_seconds:.3f}",
            }
            self._send(job, kind, f"Ended ({said}), run time {outcome.runtime_seconds:.0f} s", more)

    def _send(self, job: CommandJob, kind: str, happened: str, more: Mapping[str, str]) -> None:
        name = "".join(sign if sign.isprintable() else "?" for sign in job.name)
        subject, to = f"Foresail Job_id={job.job_id} Name={name} {happened}", job.mail_user
        own = {each: os.environ[each] for each in _KEPT if each in os.environ}
        values = {
            "FORESAIL_MAIL_TYPE": kind,
            "FORESAIL_MAIL_TO": to,
            "FORESAIL_MAIL_SUBJECT": subject,
            "FORESAIL_MAIL_JOB_ID": job.job_id,
            "FORESAIL_MAIL_JOB_NAME": name,
            "FORESAIL_MAIL_USER": job.user,
            **more,
        }
        try:
            self._calls.put_nowait(([*self._program, "-s", subject, to], {**own, **values}))
            self._is_dropping = False
        except Full:
            if not self._is_dropping:
                _LOG.error("mail is dropped: %d calls of %s wait", _MOST_WAITING, self._program[0])
            self._is_dropping = True

    def _work(self) -> None:
        while True:
            words, environment = self._calls.get()
            try:
                problem = self._call(words, environment)
            except (OSError, ValueError) as error:
                problem = f"cannot be run: {error}"
            if problem is not None and problem != self._problem:  # said once until it is another
                _LOG.error("mail: %s %s", words[0], problem)
            self._problem = problem
            self._calls.task_done()

    def _call(self, words: Sequence[str], environment: Mapping[str, str]) -> str | None:
        """Run the program; what has gone wrong, if anything did."""
        process = subprocess.Popen(
            words,
            env=environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            code = process.wait(self._patience_seconds)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return f"has not ended in {self._patience_seconds:g} s"
        return f"has failed with exit code {code}" if code else None
