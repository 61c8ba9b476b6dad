"""Writing a file so that it is there whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def write_durably(path: Path, content: bytes) -> None:
    """Write a file: on disk when this returns, and as it was before if this fails.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
