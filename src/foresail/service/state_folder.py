"""The folder of a service: what it holds, the store that belongs to it, numbers given in it."""

from __future__ import annotations

import fcntl
import json
import os
import re
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from foresail.model.errors import InputError
from foresail.model.whole_files import to_be_written, write_durably
from foresail.service.configuration import ServiceConfiguration
from foresail.service.store.protocol import StoreUnavailable
from foresail.service.store.sql_store import SqlStore

_AT_ONCE: Final = 200
"""Numbers set aside at a time, so that no file is written for each."""

_NUMBER: Final = re.compile("[0-9]+")


def opened_store(configuration: ServiceConfiguration) -> SqlStore:
    """The store of a service, its schema up to date; raises ``InputError`` if it cannot be used."""
    store = existing_store(configuration)
    if store.moved_to is not None:
        store.close()
        raise InputError(
            f"was moved to {store.moved_to}", field="database", expected="that one, or a new one"
        )
    return store


def existing_store(configuration: ServiceConfiguration) -> SqlStore:
    """The same, though it may have been moved; raises ``InputError`` if it cannot be used."""
    if configuration.database == "sqlite":
        return SqlStore.in_file(StateFolder(configuration.state.absolute()).database)
    return SqlStore.at_address(configuration.database)


def passage_mode() -> int:
    """Return the mode of folders through which others reach theirs, where root runs the service."""
    return 0o711 if os.geteuid() == 0 else 0o700


class StateFolder:
    """The service's folder, besides its database where that is elsewhere.

    ``attempts`` is what is to be known of attempts after their adapter has gone, ``logs`` what
    commands write, ``archive`` the log of jobs that have left the database, ``socket`` where its
    own account reaches the service; ``lock`` is locked while a service uses the folder;
    ``identity`` says which store it belongs to and which numbers of jobs were given in it;
    ``database`` is the store, where it is a file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.attempts = path / "attempts"
        self.logs = path / "logs"
        self.archive = path / "archive"
        self.socket = path / "socket"
        self.lock = path / "lock"
        self.identity = path / "store.json"
        self.database = path / "foresail.db"

    def make(self) -> None:
        """Lay it out; only its owner may look into it.

        Of root's, others can reach what is theirs by its whole path: the folders of their logs.

        Raises ``InputError`` where others could put another in the place of root's.
        """
        if os.geteuid() == 0:
            self._require_that_only_root_replaces_it()
        passage = passage_mode()
        for folder, mode in ((self.path, passage), (self.attempts, 0o700), (self.logs, passage)):
            with to_be_written(folder, "the folder cannot be made"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with to_be_written(folder):
                for file in folder.iterdir() if folder == self.path else ():
                    if file.is_file() and not file.is_symlink():
                        file.chmod(0o600)
                folder.chmod(mode)

    def _require_that_only_root_replaces_it(self) -> None:
        """Whoever can write what is in it has jobs run as anybody."""
        path = self.path.absolute()
        for each in (path, *path.parents, *path.resolve().parents):
            with suppress(FileNotFoundError, NotADirectoryError):
                about = each.lstat()
                is_kept = stat.S_ISLNK(about.st_mode) or about.st_mode & stat.S_ISVTX
                writers = about.st_mode & (0o002 if about.st_gid == 0 else 0o022)
                if about.st_uid != 0 or (writers and not is_kept):
                    raise InputError(
                        f"others than root could replace what is in {each}",
                        field="state",
                        value=self.path,
                        expected="a folder of root's in folders of root's, as /var/lib/foresail",
                    )

    def is_in_use(self) -> bool:
        """Return whether a service uses it."""
        if not self.lock.exists():
            return False
        try:
            with self.alone():
                return False
        except InputError:
            return True

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep every service away from it; raises ``InputError`` if one uses it."""
        descriptor = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError as error:
            raise InputError(
                "another service uses this folder", field="state", value=self.path
            ) from error
        finally:
            os.close(descriptor)


class GivenNumbers:
    """Identity of a folder's store, and the highest job number given in it, kept in a file there.

    So an older copy of the database goes on with new numbers, and another one is not taken for it.
    A folder without that file belongs to the first store that comes.

    Raises ``InputError`` if they do not belong together.
    """

    def __init__(self, folder: StateFolder, store: SqlStore) -> None:
        self._path = folder.identity
        self._store = store
        self._given = _given(folder, store)
        store.pass_over(self._given)
        self._last = self._seen = store.next_number() - 1
        self._writing = threading.Lock()
        self._write(max(self._given, self._last))

    def set_aside(self, number: int) -> None:
        """Let jobs have numbers up to this one: durable when it returns."""
        self._last = number
        if number > self._given:
            with self._writing:
                if number > self._given:
                    self._write(number + _AT_ONCE)

    def look_ahead(self) -> None:
        """Set numbers aside before they are asked for, by how many were since the last look.

        Callers wait for the disk only where suddenly more jobs arrive.
        """
        lately, self._seen = self._last - self._seen, self._last
        if self._given - self._last < 2 * lately:
            with self._writing, suppress(StoreUnavailable):  # whoever needs them hears of it
                self._write(self._last + _AT_ONCE + 4 * lately)

    def close(self) -> None:
        """Say which is the last one: those set aside behind it were not given, if that is known."""
        with suppress(StoreUnavailable):  # they stay set aside
            self._write(self._store.next_number() - 1)

    def _write(self, given: int) -> None:
        try:
            write_durably(self._path, _text(self._store.identity, given))
        except OSError as error:
            raise StoreUnavailable(
                f"{self._path} cannot be written: {error.strerror}; nothing was done"
            ) from error
        self._given = given


def adopt(folder: StateFolder, store: SqlStore) -> None:
    """Let a folder that belongs to no store belong to this one."""
    if folder.identity.exists():
        _given(folder, store)
    else:
        write_durably(folder.identity, _text(store.identity, store.next_number() - 1))


def _text(identity: str, given: int) -> bytes:
    return (json.dumps({"identity": identity, "given": given}) + "\n").encode()


def _given(folder: StateFolder, store: SqlStore) -> int:
    """The last number that may have been given in a folder, if it is the store's."""
    begun = [each.name for each in folder.attempts.iterdir()]
    if not folder.identity.exists():
        if not begun and store.counts().get("running"):
            raise InputError(
                "holds nothing of the jobs that run by its database",
                field="state",
                value=folder.path,
                expected="the folder that the service had before",
            )
        found = (_NUMBER.match(name) for name in begun)
        return max((int(each[0]) for each in found if each), default=0)
    try:
        known = json.loads(folder.identity.read_text())
        identity, given = str(known["identity"]), int(known["given"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"cannot be read: {error}", source=folder.identity) from error
    if identity != store.identity:
        raise InputError(
            f"is of another store ({identity[:8]}) than its database ({store.identity[:8]}), "
            "whose jobs would be taken for those of the former",
            field="state",
            value=folder.path,
            expected="the database of before (`foresail db restore` puts a backup of it back), "
            "or a new folder",
        )
    return given
