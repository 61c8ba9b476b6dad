"""The files of one cgroup: its members, its counters, and its end. See ``job_cgroups``."""

from __future__ import annotations

import errno
import os
import time

_EMPTYING_SECONDS = 5.0


def make_cgroup(cgroup: str, limits: dict[str, str], member: int) -> None:
    """Make a cgroup with these limits and put a process into it.

    Raises ``OSError`` if that cannot be done; nothing of it is left.
    """
    try:
        os.mkdir(cgroup)  # noqa: PTH102
        for name, value in limits.items():
            put(os.path.join(cgroup, name), value)  # noqa: PTH118
        put(os.path.join(cgroup, "cgroup.procs"), str(member))  # noqa: PTH118
    except OSError:
        remove_cgroup(cgroup)
        raise


def put(path: str, value: str) -> None:
    """Write into a file of the kernel's."""
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, value.encode())
    finally:
        os.close(file)


def members(cgroup: str) -> list[int]:
    """Ids of the processes in a cgroup; none where there is no such cgroup."""
    return [int(line) for line in _lines(cgroup, "cgroup.procs")]


def counters(cgroup: str, name: str) -> dict[str, int]:
    """What a file of counters says, such as ``cpu.stat``; nothing where there is none."""
    return {key: int(value) for key, value in map(str.split, _lines(cgroup, name))}


def _lines(cgroup: str, name: str) -> list[str]:
    try:
        with open(os.path.join(cgroup, name)) as file:  # noqa: PTH118, PTH123
            return file.read().splitlines()
    except OSError:
        return []


def kill_cgroup(cgroup: str) -> None:
    """Kill whatever is in a cgroup; raises ``OSError`` if there is no such cgroup."""
    put(os.path.join(cgroup, "cgroup.kill"), "1")  # noqa: PTH118


def remove_cgroup(cgroup: str) -> None:
    """Kill whatever is in a cgroup, and take it away; what cannot be killed stays in it."""
    until = time.monotonic() + _EMPTYING_SECONDS
    try:
        kill_cgroup(cgroup)
    except OSError:  # it is not there
        return
    for folder, _, _ in os.walk(cgroup, topdown=False):  # a job may have made some of its own
        while True:
            try:
                os.rmdir(folder)  # noqa: PTH106
                break
            except OSError as error:
                if error.errno != errno.EBUSY or time.monotonic() > until:
                    return
            time.sleep(0.002)  # until the last one has gone
