"""Attempts: starting a shim (by a spawner), finding one again, reading what it recorded."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import foresail
from foresail.live.accounts import Account
from foresail.live.adapters.local.machine import JobCgroup, kill_carriers
from foresail.live.adapters.local.shim_files import (
    START_TICKS,
    boot_id,
    contents,
    remove_cgroup,
    since_boot_seconds,
    stat_fields,
)
from foresail.live.command_job import CommandJob
from foresail.model.event import EndedBecause

_PACKAGES: Final = str(Path(foresail.__file__).parents[1])
_PROGRAM: Final = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from foresail.live.adapters.local.job_shim import serve; serve()"
)


class ProcessSpawner:
    """Forks shims; started with the first of them, and anew should it die."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def fork(self, request: Mapping[str, Any]) -> int:
        """Start a shim (see ``job_shim.serve``) and return its process id.

        The id stays that shim's until the next call, even if it ends at once.
        """
        line = json.dumps(dict(request)).encode() + b"\n"
        for _ in range(2):  # asking again does no harm: only one shim can claim an attempt
            answer = self._ask(line)
            if answer.endswith(b"\n"):
                return int(answer)
            self.close()
        raise OSError(errno.EAGAIN, "no process can be started")

    def close(self) -> None:
        """Let it go; its shims live on."""
        process, self._process = self._process, None
        if process is None or process.stdin is None or process.stdout is None:
            return
        with suppress(BrokenPipeError):  # what a dead one has not read
            process.stdin.close()
        process.stdout.close()
        process.wait()

    def _ask(self, line: bytes) -> bytes:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _PROGRAM, _PACKAGES],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={},
                cwd="/",
                start_new_session=True,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
            return self._process.stdout.readline()
        except BrokenPipeError:
            return b""


_MARK: Final = "FORESAIL_MARK"
"""Variable of an attempt's environment that no other's has: what carries it is that attempt's."""

_BECAUSE: Final[Mapping[str, EndedBecause]] = {
    "limit": EndedBecause.LIMIT,
    "memory": EndedBecause.LIMIT,
    "stopped": EndedBecause.PREEMPTED,
}


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process and no other: its id, its start in clock ticks since boot, and which boot."""

    pid: int
    start_ticks: int
    boot: str

    def is_alive(self) -> bool:
        """Return whether this very process still runs (no, if it ended and is not reaped)."""
        fields = stat_fields(self.pid)
        if not fields or fields[0] in b"ZX":
            return False
        return int(fields[START_TICKS]) == self.start_ticks and self.boot == boot_id()


@dataclass(frozen=True, slots=True)
class AttemptStart:
    """Begin of an attempt: by the wall clock, and since which boot."""

    unix_seconds: float
    since_boot_seconds: float
    boot: str

    def by_clock_of(self, now: float) -> float:
        """Return that moment for one whose clock says ``now``, whatever was set since."""
        if self.boot == boot_id():
            return now - max(0.0, since_boot_seconds() - self.since_boot_seconds)
        return min(self.unix_seconds, now - since_boot_seconds())


@dataclass(frozen=True, slots=True)
class AttemptClaim:
    """Claim of an attempt: the process that runs it, since when, with which cpus, gpus, cgroup."""

    shim: ProcessIdentity
    command: ProcessIdentity
    start: AttemptStart
    cpus: tuple[int, ...]
    gpus: tuple[str, ...]
    cgroup: str | None
    script: str | None

    @property
    def lost_seconds_ago(self) -> float:
        """Return how long ago it can have been alive last, as its shim has gone without a word."""
        return 0.0 if self.shim.boot == boot_id() else since_boot_seconds()


@dataclass(frozen=True, slots=True)
class AttemptStatus:
    """Status of an ended attempt; its exit code is negative where a signal ended it.

    ``runtime_seconds`` was measured, whatever the wall clock was set to meanwhile; ``problem`` is
    what kept it from running, if something did; ``cpu_seconds`` is what it has used of cpus in all,
    where that was counted; ``is_over_memory`` says that it held more memory than it may.
    """

    exit_code: int | None
    start: AttemptStart
    runtime_seconds: float
    ended_because: EndedBecause
    problem: str | None = None
    cpu_seconds: float | None = None
    is_over_memory: bool = False

    @property
    def reason(self) -> str:
        """Return why it ended so, where the exit code does not say it; else empty."""
        if self.problem is not None:
            return f"cannot be run: {self.problem}"
        return "it held more memory than it may have" if self.is_over_memory else ""


class Attempt:
    """One attempt of a job: its files, and the shim's process while it is watched.

    Numbers count from 1; ``folder`` is where claim and status are, and ``identity`` whose it is:
    what files of another's say counts for nothing.
    """

    def __init__(self, job_id: str, number: int, folder: Path, identity: str = "") -> None:
        self.job_id = job_id
        self.number = number
        self._identity = identity
        self._prefix = folder / f"{job_id}.{number}"
        self._pidfd: int | None = None
        whose = f"{identity} {self._prefix.absolute()}"
        self._mark = hashlib.sha256(os.fsencode(whose)).hexdigest()

    def was_begun(self) -> bool:
        """Return whether a shim claimed it, as far as a crash of the machine left that readable."""
        return self.claim() is not None or self.status() is not None

    def claim(self) -> AttemptClaim | None:
        """The shim that claimed it, if one did (and a crash has left that readable)."""
        said = self._said("claim")
        if said is None:
            return None
        return AttemptClaim(
            _process(said, "shim"),
            _process(said, "command"),
            _start(said),
            tuple(said["cpus"]),
            tuple(said["gpus"]),
            said["cgroup"],
            said["script"],
        )

    def status(self) -> AttemptStatus | None:
        """Return how it ended, if that was recorded."""
        said = self._said("status")
        if said is None:
            return None
        code, why = said["exit_code"], said["why"]
        because = _BECAUSE.get(why, EndedBecause.COMPLETED if code == 0 else EndedBecause.FAILED)
        is_over = why == "memory" or (because is EndedBecause.PREEMPTED and self.is_over_memory())
        if is_over:
            because = EndedBecause.LIMIT
        runtime_seconds, named = said["runtime_seconds"], said["problem"]  # a path of the user's
        problem = named and "".join(each if each.isprintable() else "?" for each in named)
        start, cpu_seconds = _start(said), said["cpu_seconds"]
        return AttemptStatus(code, start, runtime_seconds, because, problem, cpu_seconds, is_over)

    def is_anothers(self) -> bool:
        """Return whether files of another store, or that nobody can read, are in its way."""
        found = [contents(self._path(kind)) for kind in ("claim", "status")]
        return any(said is not None and said.get("identity") != self._identity for said in found)

    def _said(self, kind: str) -> dict[str, Any] | None:
        said = contents(self._path(kind))
        return said if said is not None and said.get("identity") == self._identity else None

    def _path(self, kind: str) -> str:
        return f"{self._prefix}.{kind}"

    def is_under_way(self) -> bool:
        """Return whether it was claimed and its command has not ended."""
        claim = self.claim()
        return claim is not None and claim.command.is_alive()

    def obstacle(self) -> str | None:
        """Return why its shim cannot write what it must; None if nothing is in the way."""
        probe = self._prefix.with_name(self._prefix.name + ".probe")
        try:
            probe.write_text("\n")
        except OSError as error:
            return error.strerror
        finally:
            probe.unlink(missing_ok=True)
        return None

    def is_over_memory(self) -> bool:
        """Return whether it was stopped because it held more memory than it may."""
        return self._prefix.with_name(self._prefix.name + ".memory").exists()

    def end_for_memory(self) -> None:
        """Have it stopped for that, which whoever reads its end can see."""
        self._prefix.with_name(self._prefix.name + ".memory").touch()
        self.stop()

    def spawn(
        self,
        spawner: ProcessSpawner,
        job: CommandJob,
        *,
        limit_seconds: float,
        grace_seconds: float,
        cpus: Sequence[int],
        gpus: Sequence[str],
        cgroup: JobCgroup | None,
        environment: Mapping[str, str],
        logs: Path,
        log_bytes: float,
        account: Account | None = None,
    ) -> int:
        """Start a shim for it; returns a descriptor that becomes readable when it has gone."""
        text = job.file_text
        script = str(logs / f"{self._prefix.name}.script")
        log = str(logs / f"{self.job_id}.out")
        output, errors = job.output_paths
        self._pidfd = os.pidfd_open(
            spawner.fork(
                {
                    "prefix": str(self._prefix),
                    "identity": self._identity,
                    "account": None if account is None else asdict(account),
                    "command": job.words(script),
                    "script": None if text is None else script,
                    "script_text": text,
                    "limit_seconds": limit_seconds,
                    "grace_seconds": grace_seconds,
                    "cpus": list(cpus),
                    "gpus": list(gpus),
                    "cgroup": None if cgroup is None else cgroup.path,
                    "cgroup_limits": {} if cgroup is None else dict(cgroup.limits),
                    "directory": job.directory,
                    "environment": {**environment, _MARK: self._mark},
                    "log": log,
                    "output": output or log,
                    "errors": errors,
                    "begun_anew": [] if job.appends or self.number > 1 else [output, errors],
                    "log_bytes": log_bytes,
                }
            )
        )
        return self._pidfd

    def adopt(self) -> int | None:
        """Watch the shim that claimed it, which an earlier adapter started.

        Returns a descriptor that becomes readable when that shim has gone; None if it has.
        """
        claim = self.claim()
        if claim is None:
            return None
        try:
            pidfd = os.pidfd_open(claim.shim.pid)
        except ProcessLookupError:
            return None
        if not claim.shim.is_alive():  # asked once the descriptor holds on to the process
            os.close(pidfd)
            return None
        self._pidfd = pidfd
        return pidfd

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Have the shim end the command, gently first, firmly after the grace; or end the shim."""
        if self._pidfd is not None:
            with suppress(ProcessLookupError):  # it has just ended by itself
                signal.pidfd_send_signal(self._pidfd, number)

    def release(self) -> None:
        """Stop watching a shim that has gone."""
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None

    def clear_remains(self) -> None:
        """Kill what is left of a command whose shim died without a record; its script goes too."""
        claim = self.claim()
        if claim is None:
            return
        if claim.script is not None:
            with suppress(OSError):
                Path(claim.script).unlink()
        if claim.command.is_alive():
            with suppress(ProcessLookupError):
                os.killpg(claim.command.pid, signal.SIGKILL)
        if claim.shim.boot == boot_id():
            if claim.cgroup is not None:
                remove_cgroup(claim.cgroup)
            kill_carriers(f"{_MARK}={self._mark}")


def _start(said: Mapping[str, Any]) -> AttemptStart:
    return AttemptStart(said["start_unix_seconds"], said["start_since_boot_seconds"], said["boot"])


def _process(said: Mapping[str, Any], which: str) -> ProcessIdentity:
    pid, start_ticks = said[which]
    return ProcessIdentity(pid, start_ticks, said["boot"])
