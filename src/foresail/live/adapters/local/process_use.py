"""What the processes of running jobs use, as the kernel tells of each process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_SESSION, _USER_TICKS, _SYSTEM_TICKS, _PAGES = 3, 11, 12, 21


@dataclass(frozen=True, slots=True)
class ProcessesUse:
    """What the processes of a job have used by now: cpu seconds, and bytes of memory held."""

    cpu_seconds: float
    memory_bytes: float


def use_by_session(sessions: Mapping[int, object]) -> dict[int, ProcessesUse]:
    """The use of these sessions by id, of those that have a process.

    Memory that processes share counts once for each. Processes that have ended take their cpu
    seconds with them.
    """
    found: dict[int, ProcessesUse] = {}
    if not sessions:
        return found
    for entry in os.scandir(_PROC):
        if not entry.name.isdecimal():
            continue
        fields = _stat(int(entry.name))
        session = int(fields[_SESSION]) if fields else 0
        if session not in sessions:
            continue
        before = found.get(session, ProcessesUse(0.0, 0.0))
        ticks = int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])
        found[session] = ProcessesUse(
            before.cpu_seconds + ticks / _TICKS_PER_SECOND,
            before.memory_bytes + int(fields[_PAGES]) * _PAGE_BYTES,
        )
    return found


def memory_of(pid: int) -> float:
    """Bytes that a process holds; 0 if it has ended."""
    fields = _stat(pid)
    return float(int(fields[_PAGES]) * _PAGE_BYTES) if fields else 0.0


def _stat(pid: int) -> list[bytes]:
    """What is to be known of a process, behind its name; nothing if it has ended."""
    try:
        text = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return []
    return text.rpartition(b")")[2].split()
