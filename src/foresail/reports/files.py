"""Files of a report, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from foresail.model.errors import InputError


def make_folder(folder: Path) -> None:
    """Create a folder unless it is there.

    Raises
    ------
    InputError
        If it cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"the folder cannot be made: {error.strerror}",
            source=folder,
            expected="a folder that may be written to",
        ) from error


def write_whole(path: Path, content: bytes) -> None:
    """Write beside the file, then rename, so that nobody ever sees half of it.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise InputError(
            f"cannot be written: {error.strerror}",
            source=path,
            expected="a folder that may be written to",
        ) from error
