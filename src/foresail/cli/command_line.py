"""The command line as it was typed."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping

from foresail.model.errors import InputError


def made_by() -> str:
    """The command line, as a report tells it."""
    return shlex.join(["foresail", *sys.argv[1:]])


def refuse(options: Mapping[str, object], problem: str, expected: str) -> None:
    """Raise an ``InputError`` about the first of these options that was given (is not None)."""
    for option, value in options.items():
        if value is not None:
            raise InputError(problem, field=option, value=value, expected=expected)
