"""Numbers of jobs: given once in a state folder, whatever becomes of the database beside it."""

from __future__ import annotations

import json
import re
from typing import Final

from foresail.model.errors import InputError
from foresail.model.whole_files import write_durably
from foresail.service.session import StateFolder
from foresail.service.store.protocol import StoreUnavailable
from foresail.service.store.sql_store import SqlStore

_AT_ONCE: Final = 200
"""So many numbers more are set aside at a time, that no file is written for each."""

_NUMBER: Final = re.compile("[0-9]+")


class GivenNumbers:
    """Which store a folder belongs to, and up to which number jobs may have come by one in it.

    The folder says both in a file, beside the attempts and logs that are named by these numbers.
    So an older copy of the database goes on with new numbers, and another one is not taken for it.

    A folder without that file belongs to the first store that comes.

    Raises ``InputError`` if they do not belong together.
    """

    def __init__(self, folder: StateFolder, store: SqlStore) -> None:
        self._path = folder.identity
        self._identity = store.identity
        self._given = _given(folder, store)
        store.pass_over(self._given)
        self._write(max(self._given, store.next_number() - 1))

    def set_aside(self, number: int) -> None:
        """Let jobs have numbers up to this one: durable when it returns."""
        if number > self._given:
            self._write(number + _AT_ONCE)

    def settle(self, number: int) -> None:
        """Say that this is the last one, and those set aside behind it were not given."""
        self._write(number)

    def _write(self, given: int) -> None:
        try:
            write_durably(self._path, _text(self._identity, given))
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
