"""The socket of a live service on its own machine: where it is, and how long paths are used."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

MACHINE_SOCKET: Final = Path("/run/foresail/socket")
"""Of the service that root runs for all accounts of a machine."""

_LONGEST_BYTES: Final = 107


def well_known_socket(uid: int) -> Path:
    """Return the socket of an account's service, whatever its folder."""
    return MACHINE_SOCKET if uid == 0 else Path(f"/run/user/{uid}/foresail/socket")


@contextmanager
def short_name(path: Path) -> Iterator[str]:
    """A name of a socket that is short enough for the kernel, as long as it is needed.

    Raises ``OSError`` if its folder cannot be opened.
    """
    if len(os.fsencode(path)) <= _LONGEST_BYTES:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
