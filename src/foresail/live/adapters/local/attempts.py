"""Attempts: starting a shim, finding one again, and reading what it recorded."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from foresail.live.adapters.local import job_shim
from foresail.live.adapters.local.job_cgroups import JobCgroup
from foresail.live.adapters.local.process_spawner import ProcessSpawner
from foresail.live.command_job import CommandJob
from foresail.model.outcome import EndedBecause

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
        """Whether this very process still runs (one that has ended and waits to be reaped: no)."""
        try:
            state, ticks = job_shim.state_and_start_ticks(self.pid)
        except OSError:
            return False
        return state not in "ZX" and ticks == self.start_ticks and self.boot == job_shim.boot_id()


@dataclass(frozen=True, slots=True)
class AttemptClaim:
    """What runs an attempt, since when (Unix seconds), with which cpus and gpus and cgroup."""

    shim: ProcessIdentity
    command: ProcessIdentity
    start_seconds: float
    cpus: tuple[int, ...]
    gpus: tuple[str, ...]
    cgroup: str | None


@dataclass(frozen=True, slots=True)
class AttemptStatus:
    """How an attempt ended; Unix seconds, exit code negative where a signal ended it.

    ``cpu_seconds`` is what it has used of cpus in all, where that was counted.
    """

    exit_code: int | None
    start_seconds: float
    end_seconds: float
    ended_because: EndedBecause
    cpu_seconds: float | None = None


class Attempt:
    """One attempt of a job: its files, and the shim's process while it is watched.

    Parameters
    ----------
    job_id, number
        Which attempt of which job; numbers count from 1.
    folder
        Where the claim and the status are.
    """

    def __init__(self, job_id: str, number: int, folder: Path) -> None:
        self.job_id = job_id
        self.number = number
        self._prefix = folder / f"{job_id}.{number}"
        self._pidfd: int | None = None

    def was_begun(self) -> bool:
        """Whether a shim claimed it, as far as a crash of the machine has left that readable."""
        return self.claim() is not None or self.status() is not None

    def claim(self) -> AttemptClaim | None:
        """The shim that claimed it, if one did (and a crash has left that readable)."""
        text = _text_of(self._prefix, ".claim")
        if text is None or not text.endswith("\n"):
            return None
        boot, pid, ticks, command_pid, command_ticks, start, slots, *cgroup = text.split(maxsplit=7)
        cpus, _, gpus = slots.partition("/")
        return AttemptClaim(
            ProcessIdentity(int(pid), int(ticks), boot),
            ProcessIdentity(int(command_pid), int(command_ticks), boot),
            float(start),
            () if cpus == "-" else tuple(int(cpu) for cpu in cpus.split(",")),
            tuple(gpus.split(",")) if gpus else (),
            None if not cgroup or cgroup[0] == "-\n" else cgroup[0].removesuffix("\n"),
        )

    def status(self) -> AttemptStatus | None:
        """How it ended, if that was recorded."""
        text = _text_of(self._prefix, ".status")
        if text is None or not text.endswith("\n"):
            return None
        code, start, end, why, *spent = text.split()
        because = _BECAUSE.get(why, EndedBecause.COMPLETED if code == "0" else EndedBecause.FAILED)
        if because is EndedBecause.PREEMPTED and self.is_over_memory():
            because = EndedBecause.LIMIT
        cpu_seconds = None if not spent or spent == ["-"] else float(spent[0])
        return AttemptStatus(int(code), float(start), float(end), because, cpu_seconds)

    def is_under_way(self) -> bool:
        """Whether it was claimed and its command has not ended."""
        claim = self.claim()
        return claim is not None and claim.command.is_alive()

    def obstacle(self) -> str | None:
        """Why its shim cannot write what it must; None if nothing is in the way."""
        probe = self._prefix.with_name(self._prefix.name + ".probe")
        try:
            probe.write_text("\n")
        except OSError as error:
            return error.strerror
        finally:
            probe.unlink(missing_ok=True)
        return None

    def is_over_memory(self) -> bool:
        """Whether it was told to stop because it held more memory than it may."""
        return self._prefix.with_name(self._prefix.name + ".memory").exists()

    def end_for_memory(self) -> None:
        """Have it stopped for that, which whoever reads how it ended can tell."""
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
        directory: str,
        environment: Mapping[str, str],
        logs: Path,
    ) -> int:
        """Start a shim for it; returns a descriptor that becomes readable when it has gone.

        Raises
        ------
        OSError
            If no process can be started.
        """
        script = f"{self._prefix}.script"
        log = str(logs / f"{self.job_id}.out")
        output, errors = job.output_paths
        self._pidfd = os.pidfd_open(
            spawner.fork(
                {
                    "prefix": str(self._prefix),
                    "command": job.words(script),
                    "script": script,
                    "script_text": job.file_text,
                    "limit_seconds": limit_seconds,
                    "grace_seconds": grace_seconds,
                    "cpus": list(cpus),
                    "gpus": list(gpus),
                    "cgroup": None if cgroup is None else cgroup.path,
                    "cgroup_limits": {} if cgroup is None else dict(cgroup.limits),
                    "directory": directory,
                    "environment": dict(environment),
                    "log": log,
                    "output": output or log,
                    "errors": errors or output or str(logs / f"{self.job_id}.err"),
                    "begun_anew": [] if job.appends or self.number > 1 else [output, errors],
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

    def stop(self) -> None:
        """Have the shim end the command: gently first, firmly after the grace."""
        if self._pidfd is not None:
            try:
                signal.pidfd_send_signal(self._pidfd, signal.SIGTERM)
            except ProcessLookupError:  # it has just ended by itself
                return

    def release(self) -> None:
        """Stop watching a shim that has gone."""
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None

    def clear_remains(self) -> None:
        """Kill what is left of a command whose shim died without a record."""
        claim = self.claim()
        if claim is None:
            return
        if claim.command.is_alive():
            with suppress(ProcessLookupError):
                os.killpg(claim.command.pid, signal.SIGKILL)
        if claim.cgroup is not None and claim.shim.boot == job_shim.boot_id():
            job_shim.remove_cgroup(claim.cgroup)


def _text_of(prefix: Path, suffix: str) -> str | None:
    try:
        return prefix.with_name(prefix.name + suffix).read_text()
    except FileNotFoundError:
        return None
