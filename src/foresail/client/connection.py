"""Which service is spoken to, and as whom: options, variables, or a file of the user's."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from foresail.model.documents import parsed_toml, text_of
from foresail.model.errors import InputError

DEFAULT_ADDRESS: Final = "http://127.0.0.1:8451"
ADDRESS_VARIABLE: Final = "FORESAIL_SERVICE"
TOKEN_VARIABLE: Final = "FORESAIL_TOKEN"


@dataclass(frozen=True, slots=True)
class Connection:
    """Where a service is, and the token that says who asks."""

    address: str
    token: str

    def __repr__(self) -> str:
        """Without the token, which is nobody's to read."""
        return f"Connection({self.address!r})"


def connection_file() -> Path:
    """Where ``foresail login`` keeps address and token: under the user's XDG configuration."""
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(configured) if configured.startswith("/") else Path.home() / ".config"
    return base / "foresail" / "service.toml"


def find_connection() -> Connection:
    """The service to speak to: the variables first, then the user's file.

    Raises
    ------
    InputError
        If no token is found, or the file cannot be used.
    """
    address = os.environ.get(ADDRESS_VARIABLE)
    token = os.environ.get(TOKEN_VARIABLE)
    path = connection_file()
    if (address is None or token is None) and path.exists():
        kept = _kept(path)
        return Connection(address or kept.address, token or kept.token)
    if token is None:
        raise InputError(
            "no token for the service",
            expected=f"`foresail login`, or {TOKEN_VARIABLE} in the environment",
        )
    return Connection(address or DEFAULT_ADDRESS, token)


def keep_connection(connection: Connection) -> Path:
    """Keep address and token for later commands, readable by their owner alone.

    Raises
    ------
    InputError
        If they cannot be written.
    """
    path = connection_file()
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
        if not isinstance(value, str) or not value:
            raise InputError("not a text", source=path, field=name, value=value)
    return Connection(document["address"], document["token"])
