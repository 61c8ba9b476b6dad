"""Files of attempts, as a shim writes them: a claim, which only one can make, and a status.

Shims run without the package's dependencies: this module and the others that they share with the
adapter import nothing but small modules of Python's own.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_PATIENCE_SECONDS = 1.0


def boot_id() -> str:
    """Which boot of the machine this is."""
    with open("/proc/sys/kernel/random/boot_id") as boot:  # noqa: PTH123 - pathlib is slow to import
        return boot.read().strip()


def since_boot_seconds() -> float:
    """How long the machine has been up, suspended or not: no setting of its clock changes that."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def patiently(act: Callable[[], _T]) -> _T:
    """Do what needs room on a disk, however long it takes until there is some."""
    while True:
        try:
            return act()
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
        time.sleep(_PATIENCE_SECONDS)


def claim(prefix: str, content: dict[str, Any]) -> bool:
    """Make ``prefix.claim`` appear, whole; False if the attempt was claimed before.

    It is not forced to the disk: a crash of the machine that takes the claim takes the command too.
    """
    draft = f"{prefix}.claim.{os.getpid()}"
    write(draft, _line(content))
    try:
        os.link(draft, prefix + ".claim")
    except FileExistsError:
        return False
    finally:
        os.unlink(draft)  # noqa: PTH108
    return True


def record(prefix: str, content: dict[str, Any]) -> None:
    """Make ``prefix.status`` appear, whole, and on disk when this returns."""
    draft = f"{prefix}.status.{os.getpid()}"
    write(draft, _line(content))
    _force_to_disk(draft)
    os.rename(draft, prefix + ".status")  # noqa: PTH104
    _force_to_disk(os.path.dirname(prefix))  # noqa: PTH120


def write(path: str, text: str) -> None:
    """Write a file that its owner alone may read."""
    content = text.encode()
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    file = os.open(path, flags, 0o600)
    try:
        while content:
            content = content[os.write(file, content) :]
    finally:
        os.close(file)


def contents(path: str) -> dict[str, Any] | None:
    """What a claim or a status says; None if there is none, or a crash has left it incomplete."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            line = file.read()
    except FileNotFoundError:
        return None
    try:
        found = json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return {}
    return found if isinstance(found, dict) else None


def _line(content: dict[str, Any]) -> str:
    return json.dumps(content) + "\n"


def _force_to_disk(path: str) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
