"""The machine: cgroups (version 2) that it permits, cpus, memory, gpus, and what jobs use.

A cgroup holds all processes of an attempt, whatever sessions they make: it is killed as a whole,
and counts what they use, those that have ended among them. Where the controllers are there, it
limits memory and cpus as well. Kernel documentation: ``admin-guide/cgroup-v2``.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final, Generic, TypeVar

from foresail.live.adapters.local.shim_files import counters, descendants, members, stat_fields
from foresail.live.command_job import CommandJob

_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_PAGES: Final = 21
_OF_ALL, _OF_CHILDREN = slice(11, 15), slice(13, 15)
"""Ticks by user and system, of a process and of its children; of its children alone."""


@dataclass(frozen=True, slots=True)
class ProcessesUse:
    """Use of a job's processes by now: cpu seconds, and bytes of memory held."""

    cpu_seconds: float
    memory_bytes: float


def use_by_shim(shims: Mapping[int, object]) -> dict[int, ProcessesUse]:
    """The use of all that is below these processes by their ids, of those that have a process.

    Memory that processes share counts once for each. What has ended is counted by who waited for
    it, a shim at last.
    """
    if not shims:
        return {}
    found: dict[int, ProcessesUse] = {}
    for shim, processes in descendants(*shims).items():
        own = stat_fields(shim)
        if not (own and processes):
            continue
        ticks = sum(map(int, own[_OF_CHILDREN]))
        ticks += sum(int(each) for fields in processes.values() for each in fields[_OF_ALL])
        pages = sum(int(fields[_PAGES]) for fields in processes.values())
        found[shim] = ProcessesUse(ticks / _TICKS_PER_SECOND, float(pages * _PAGE_BYTES))
    return found


def _memory_of(pid: int) -> float:
    """Bytes that a process holds; 0 if it has ended."""
    fields = stat_fields(pid)
    return float(int(fields[_PAGES]) * _PAGE_BYTES) if fields else 0.0


_ENDING_SECONDS: Final = 5.0


def kill_carriers(variable: str) -> None:
    """Kill all that was begun with a variable (``NAME=value``), and what that begins meanwhile.

    Processes of accounts whose environment may not be read are left alone. One that is turning
    into another program shows no environment for a moment: two looks have to find nothing.
    """
    sought = os.fsencode(f"\0{variable}\0")
    until, looks = time.monotonic() + _ENDING_SECONDS, 2
    while looks and time.monotonic() < until:
        looks -= 1
        for process in Path("/proc").glob("[1-9]*"):
            with suppress(OSError):
                if _carries(process, sought):
                    looks = 2
                    held = os.pidfd_open(int(process.name))
                    try:
                        if _carries(process, sought):  # still, now that the id is held on to
                            signal.pidfd_send_signal(held, signal.SIGKILL)
                    finally:
                        os.close(held)
        time.sleep(0.002)


def _carries(process: Path, sought: bytes) -> bool:
    return sought in b"\0" + (process / "environ").read_bytes()


_CONTROLLERS: Final = ("memory", "cpu", "cpuset")
_DELEGATED: Final = ("trusted.delegate", "user.delegate")
"""Attributes by which systemd marks a cgroup that is handed to who runs in it."""

_PERIOD_MICROSECONDS: Final = 100_000
_MOUNTS: Final = Path("/proc/self/mountinfo")
_OWN: Final = Path("/proc/self/cgroup")


@dataclass(frozen=True, slots=True)
class JobCgroup:
    """A cgroup to be: its folder, and what its files are to say before a process is in it."""

    path: str
    limits: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class JobCgroups:
    """Place where cgroups of attempts may be made."""

    parent: Path
    controllers: frozenset[str] = frozenset()

    def of_attempt(
        self, job: CommandJob, attempt: int, attempts: Path, cpus: Sequence[int]
    ) -> JobCgroup:
        """The cgroup of one attempt, like no other's of this machine.

        ``attempts`` is the folder of what is known of the run's; ``cpus`` are those that it is
        bound to.
        """
        run = hashlib.sha256(os.fsencode(attempts.absolute())).hexdigest()[:12]
        limits: dict[str, str] = {}
        if "memory" in self.controllers and job.memory_bytes is not None:
            limits["memory.max"] = str(int(job.memory_bytes))
            limits["memory.oom.group"] = "1"
        if "cpu" in self.controllers:
            limits["cpu.max"] = f"{job.cpus * _PERIOD_MICROSECONDS} {_PERIOD_MICROSECONDS}"
        if "cpuset" in self.controllers and cpus:
            limits["cpuset.cpus"] = ",".join(map(str, cpus))
        return JobCgroup(str(self.parent / f"foresail-{run}-{job.job_id}.{attempt}"), limits)


def permitted_cgroups() -> JobCgroups | None:
    """Return where this process may make cgroups; None where it may not, or the kernel is too old.

    They are made in the nearest cgroup above this process that was delegated to it, or in its own.
    Controllers are enabled there if that is possible: in a cgroup that holds processes it is not.
    """
    parent = _delegated()
    if parent is None or not os.access(parent / "cgroup.procs", os.W_OK):
        return None
    probe = parent / f"foresail-probe-{os.getpid()}"
    try:
        probe.mkdir()
    except OSError:
        return None
    try:
        if not (probe / "cgroup.kill").exists():  # Linux 5.14
            return None
    finally:
        probe.rmdir()
    return JobCgroups(parent, frozenset(filter(lambda each: _enabled(parent, each), _CONTROLLERS)))


def _delegated() -> Path | None:
    mounts = [line.split() for line in _MOUNTS.read_text().splitlines() if " - cgroup2 " in line]
    own = [line for line in _OWN.read_text().splitlines() if line.startswith("0::/")]
    if not mounts or not own:
        return None
    root = Path(mounts[0][4])
    cgroup = root / own[0].removeprefix("0::/")
    for each in (cgroup, *cgroup.parents):
        if each == root:
            break
        for attribute in _DELEGATED:
            with suppress(OSError):
                if os.getxattr(each, attribute) == b"1":
                    return each
    return cgroup


def _enabled(parent: Path, controller: str) -> bool:
    """Return whether cgroups below this one have a controller; enable it if possible."""
    switch = parent / "cgroup.subtree_control"
    if controller not in (parent / "cgroup.controllers").read_text().split():
        return False
    with suppress(OSError):
        switch.write_text(f"+{controller}")
    return controller in switch.read_text().split()


def use_of_cgroup(cgroup: str) -> ProcessesUse | None:
    """Return what a cgroup's processes have used by now; None where there is no such cgroup.

    Memory is that of the controller without what the kernel would give up first (the working set),
    or, without a controller, what the processes hold, where what they share counts for each.
    """
    spent = counters(cgroup, "cpu.stat").get("usage_usec")
    if spent is None:
        return None
    try:
        held = float(Path(cgroup, "memory.current").read_text())
    except OSError:
        memory = sum(_memory_of(pid) for pid in members(cgroup))
    else:
        memory = held - counters(cgroup, "memory.stat").get("inactive_file", 0)
    return ProcessesUse(spent / 1e6, memory)


_Slot = TypeVar("_Slot")


class Slots(Generic[_Slot]):
    """Hands things of a kind to jobs, each to one job at a time.

    ``slots`` are all there are, the first ones first; none where nothing is handed out.
    """

    def __init__(self, slots: Iterable[_Slot]) -> None:
        self._slots = tuple(slots)
        self._held: dict[str, tuple[_Slot, ...]] = {}

    def take(self, job_id: str, count: int) -> tuple[_Slot, ...]:
        """Take ``count`` slots for a job, or none where so many are not free."""
        held = {*chain.from_iterable(self._held.values())}
        free = [each for each in self._slots if each not in held]
        taken = tuple(free[:count]) if len(free) >= count else ()
        self.hold(job_id, taken)
        return taken

    def hold(self, job_id: str, slots: Iterable[_Slot]) -> None:
        """Note what a job has already."""
        self._held[job_id] = tuple(slots)

    def give_back(self, job_id: str) -> None:
        """The job has ended: what it had is free."""
        self._held.pop(job_id, None)


_RESERVED_SHARE: Final = 0.05
_MOST_RESERVED_BYTES: Final = 2.0 * 2**30
_VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
_NO_DEVICE: Final = "-1"
_LIST_GPUS: Final = ("nvidia-smi", "--query-gpu=index", "--format=csv,noheader")
_PATIENCE_SECONDS: Final = 30.0


def machine_cpus() -> tuple[int, ...]:
    """Numbers of the cpus that this process may use, ascending."""
    return tuple(sorted(os.sched_getaffinity(0)))


def machine_memory_bytes() -> float:
    """Memory for jobs: the machine's, less a twentieth (2 GiB at most) for all that is no job."""
    whole = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return float(int(whole - min(whole * _RESERVED_SHARE, _MOST_RESERVED_BYTES)))


def machine_gpus() -> tuple[str, ...]:
    """Return the gpus as CUDA names them; none where the driver names none."""
    visible = os.environ.get(_VISIBLE)
    if visible is not None:
        names = [name.strip() for name in visible.split(",")]
        return tuple(name for name in names if name and name != _NO_DEVICE)
    try:
        listed = subprocess.run(
            _LIST_GPUS, capture_output=True, text=True, timeout=_PATIENCE_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(line.strip() for line in listed.stdout.splitlines() if line.strip().isdigit())


def gpu_variables(gpus: tuple[str, ...]) -> dict[str, str]:
    """Return variables that show a job these gpus only; numbers are those of ``nvidia-smi``."""
    return {_VISIBLE: ",".join(gpus), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
