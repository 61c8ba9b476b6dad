"""The service that is spoken to, as whom, and the ids by which people name jobs."""

from __future__ import annotations

import os
import re
import socket
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from foresail.model.documents import parsed_toml, text_of
from foresail.model.errors import InputError
from foresail.model.whole_files import MACHINE_SOCKET, short_name, well_known_socket
from foresail.model.words import CLUSTER_JOB_ID

DEFAULT_ADDRESS: Final = "http://127.0.0.1:8451"
ADDRESS_VARIABLE: Final = "FORESAIL_SERVICE"
TOKEN_VARIABLE: Final = "FORESAIL_TOKEN"
_SOCKET_BESIDE: Final = Path("foresail-state/socket")
"""Socket of a service that was begun in this folder, with everything by default."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Address of a service, and the token of the one who asks.

    An address that is a path is a socket of this machine, where no token is needed.
    """

    address: str
    token: str

    def __repr__(self) -> str:
        """Without the token, which is nobody's to read."""
        return f"Connection({self.address!r})"


def _connection_file() -> Path:
    """Return where ``foresail login`` keeps address and token: the user's XDG configuration."""
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(configured) if configured.startswith("/") else Path.home() / ".config"
    return base / "foresail" / "service.toml"


def find_connection() -> Connection:
    """The service to speak to: the variables first, then the user's file, then a socket.

    Raises ``InputError`` if none is found, or the file cannot be used.
    """
    address = os.environ.get(ADDRESS_VARIABLE)
    token = os.environ.get(TOKEN_VARIABLE)
    if address is not None and is_socket(address):
        return Connection(address, token or "")
    path = _connection_file()
    if (address is None or token is None) and path.exists():
        kept = _kept(path)
        return Connection(address or kept.address, token or kept.token)
    if token is not None:
        return Connection(address or DEFAULT_ADDRESS, token)
    sockets = (well_known_socket(os.geteuid()), MACHINE_SOCKET, _SOCKET_BESIDE.absolute())
    found = None if address is not None else next(filter(_answers, sockets), None)
    if found is None:
        raise InputError(
            "no service runs on this machine, and there is no token for another"
            if address is None
            else "no token for the service",
            expected=f"`foresail serve`, `foresail login`, or {TOKEN_VARIABLE} in the environment",
        )
    return Connection(str(found), "")


def is_socket(address: str) -> bool:
    """Return whether an address is a socket of this machine."""
    return address.startswith("/")


def _answers(path: Path) -> bool:
    """Return whether root or the caller listens on a socket; others could only pretend to be."""
    try:
        if path.stat().st_uid not in (0, os.geteuid()):
            return False
        with short_name(path) as name, socket.socket(socket.AF_UNIX) as trial:
            trial.connect(name)
    except OSError:
        return False
    return True


def token_in(file: Path) -> str:
    """The token that a file holds; raises ``InputError`` if it cannot be read."""
    return text_of(file).strip()


def keep_connection(connection: Connection) -> Path:
    """Keep address and token for later commands, readable by their owner alone."""
    path = _connection_file()
    text = f'address = "{connection.address}"\ntoken = "{connection.token}"\n'
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".draft")
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(file, "w") as written:
            written.write(text)
        draft.replace(path)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", source=path) from error
    return path


def _kept(path: Path) -> Connection:
    if path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
        raise InputError(
            "others can read the token in it", source=path, expected=f"chmod 600 {path}"
        )
    document = parsed_toml(text_of(path), path)
    for name in ("address", "token"):
        value = document.get(name)
        if not isinstance(value, str) or not (value or is_socket(document["address"])):
            raise InputError("not a text", source=path, field=name, value=value)
    return Connection(document["address"], document["token"])


_WORD: Final = re.compile(r"((?:[a-z][a-z0-9-]*:)?\d{1,18})(?:_(\d{1,9}|\[[^\]]*\]))?")
_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::([1-9]\d{0,8}))?)?")
_MOST: Final = 10_000
_WIDEST: Final = 24


def job_ids(words: Iterable[str]) -> list[str]:
    """The ids that words mean, each once; that of an array stands for its members."""
    separated = (each for word in words for each in re.split(r",(?![^\[]*\])", word))
    return list(dict.fromkeys(job_id for each in separated for job_id in _ids(each)))


def _ids(word: str) -> Iterator[str]:
    found = _WORD.fullmatch(word)
    if found is None and CLUSTER_JOB_ID.fullmatch(word):
        yield word
        return
    if found is None:
        raise _no_id(word)
    number, member = found.groups()
    if member is None or not member.startswith("["):
        yield word
        return
    indices: list[int] = []
    for part in member[1:-1].partition("%")[0].split(","):
        of = _RANGE.fullmatch(part)
        if of is None:
            raise _no_id(word)
        some = range(int(of[1]), int(of[2] or of[1]) + 1, int(of[3] or 1))
        if not some or len(indices) + len(some) > _MOST:
            raise _no_id(word)
        indices += some
    yield from (f"{number}_{index}" for index in indices)


def _no_id(word: str) -> InputError:
    return InputError(
        "no id of a job", field="JOB", value=word, expected="17, or of an array 18, 18_3, 18_[1-3]"
    )


def together(members: Sequence[str]) -> str:
    """Members of an array as one word, such as ``18_[1-3,7]``; cut where that is long."""
    number = members[0].partition("_")[0]
    indices = sorted(int(each.partition("_")[2]) for each in members)
    parts: list[list[int]] = []
    for index in indices:
        if parts and index == parts[-1][-1] + 1:
            parts[-1][1:] = [index]
        else:
            parts.append([index])
    text = ",".join("-".join(map(str, part)) for part in parts)
    if len(text) > _WIDEST:
        text = text[:_WIDEST].rpartition(",")[0] + ",..."
    return f"{number}_[{text}]"
