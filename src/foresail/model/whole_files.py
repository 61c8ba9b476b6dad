"""Files that are there whole or not at all, and their folders."""

from __future__ import annotations

import os
from contextlib import suppress
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
    """Write a file as ``write_durably`` does.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    try:
        write_durably(path, content)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}",
            source=path,
            expected="a folder that may be written to",
        ) from error


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
