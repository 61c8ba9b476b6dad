"""What the processes of running jobs use: one look at all processes, told by their session."""

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
class SessionUse:
    """What the processes of a session have used by now: cpu seconds, and bytes of memory held."""

    cpu_seconds: float
    memory_bytes: float


def use_by_session(sessions: Mapping[int, object]) -> dict[int, SessionUse]:
    """The use of these sessions by id, of those that have a process.

    Memory that processes share counts once for each. Processes that have ended take their cpu
    seconds with them.
    """
    found: dict[int, SessionUse] = {}
    if not sessions:
        return found
    for entry in os.scandir(_PROC):
        if not entry.name.isdecimal():
            continue
        try:
            text = Path(entry.path, "stat").read_bytes()
        except OSError:  # it has just ended
            continue
        fields = text.rpartition(b")")[2].split()
        session = int(fields[_SESSION])
        if session not in sessions:
            continue
        before = found.get(session, SessionUse(0.0, 0.0))
        ticks = int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])
        found[session] = SessionUse(
            before.cpu_seconds + ticks / _TICKS_PER_SECOND,
            before.memory_bytes + int(fields[_PAGES]) * _PAGE_BYTES,
        )
    return found
