"""Files that are there whole or not at all, their folders, and sockets of a service."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Final

from foresail.model.errors import InputError


@contextmanager
def to_be_written(path: Path, problem: str = "cannot be written") -> Iterator[None]:
    """Make what the system refuses within an ``InputError`` that names the path."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{problem}: {error.strerror}", source=path, expected="a folder that may be written to"
        ) from error


def make_folder(folder: Path) -> None:
    """Create a folder unless it is there; raises ``InputError`` if it cannot be created."""
    with to_be_written(folder, "the folder cannot be made"):
        folder.mkdir(parents=True, exist_ok=True)


def require_folder(folder: Path) -> None:
    """Refuse a folder that could not be made; what is made to find out goes again.

    Raises ``InputError`` if it cannot be created.
    """
    absent = _absent(folder)
    make_folder(folder)
    _remove_empty(absent)


def _absent(folder: Path) -> list[Path]:
    """The folder and those that it is in, as far as they are not there, the innermost first."""
    with to_be_written(folder, "the folder cannot be made"):
        return [each for each in (folder, *folder.parents) if not each.exists()]


def _remove_empty(folders: list[Path]) -> None:
    for each in folders:
        with suppress(OSError):
            each.rmdir()


@contextmanager
def all_or_none(folder: Path) -> Iterator[Path]:
    """Yield a folder for files of which all come into ``folder``, made if need be, or none.

    A folder that was made for them goes again where none come.

    Raises ``InputError`` if they cannot be written, or one would take the place of something that
    is no file.
    """
    absent = _absent(folder)
    make_folder(folder)
    try:
        with to_be_written(folder):
            drafts = Path(mkdtemp(prefix=".drafts-", dir=folder))
    except InputError:
        _remove_empty(absent)
        raise
    try:
        yield drafts
        names = sorted(each.name for each in drafts.iterdir())
        for name in names:
            require_replaceable(folder / name)
        with to_be_written(folder):
            for name in names:
                (drafts / name).replace(folder / name)
    except InputError as error:
        if isinstance(error.source, Path) and drafts in error.source.parents:
            source = folder / error.source.name
            raise InputError(error.problem, source=source, expected=error.expected) from error
        raise
    finally:
        rmtree(drafts, ignore_errors=True)
        _remove_empty(absent)


def require_replaceable(path: Path) -> None:
    """Refuse a path of something that a file must not take the place of, such as a device.

    Raises ``InputError`` if there is anything but a file.
    """
    with to_be_written(path):
        taken = path.exists() and not path.is_file()
    if taken:
        raise InputError("is no file", source=path, expected="a new file, or one to replace")


def write_whole(path: Path, content: bytes) -> None:
    """Write a file as ``write_durably`` does.

    Raises ``InputError`` if it cannot be written, or something that is no file is there.
    """
    require_replaceable(path)
    with to_be_written(path):
        write_durably(path, content)


def write_durably(path: Path, content: bytes) -> None:
    """Write a file: on disk when this returns, and as it was before if this fails.

    Raises ``OSError`` if it cannot be written.
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


MACHINE_SOCKET: Final = Path("/run/foresail/socket")
"""Socket of the service that root runs for all accounts of a machine."""

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
