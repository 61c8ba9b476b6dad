"""Output paths: patterns of the files that jobs write to, as those of ``sbatch``."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from typing import Final

_SIGN: Final = re.compile(r"%(\d{0,2})(.?)", re.DOTALL)
_KNOWN: Final = "jAauxN%"


def host_name() -> str:
    """The short name of this machine, as which jobs know their node."""
    return socket.gethostname().partition(".")[0] or "localhost"


def output_path(pattern: str, directory: str, values: Mapping[str, str]) -> str:
    """The absolute path that a pattern stands for, of a job in this directory.

    ``values`` are of its signs; a number between ``%`` and the sign is of the digits to fill.
    """

    def meant(sign: re.Match[str]) -> str:
        text = values[sign[2]]
        return text.zfill(int(sign[1] or 0)) if text.isdigit() else text

    return os.path.join(directory, _SIGN.sub(meant, pattern))  # noqa: PTH118 - a text it stays


def require_known_signs(pattern: str) -> str:
    """The pattern, if all its signs are known.

    Raises
    ------
    ValueError
        If one is not; says which are.
    """
    for sign in _SIGN.finditer(pattern):
        if not sign[2] or sign[2] not in _KNOWN:
            known = ", ".join(f"%{each}" for each in _KNOWN)
            raise ValueError(f"the path of a file with {known}: {sign[0]} is not known")
    return pattern
