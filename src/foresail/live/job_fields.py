"""The fields of a job as people write them, each checked."""

from __future__ import annotations

import math
import os
import re
import shlex
import socket
import time
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from foresail.model.errors import InputError
from foresail.model.job import DEPENDENCY_FORM, Dependency, parse_dependencies
from foresail.model.preference import Preference
from foresail.traces.durations import DURATION_FORMS, parse_duration

_SIGN: Final = re.compile(r"%(\d{0,2})(.?)", re.DOTALL)
_KNOWN: Final = "jAauxN%"


@cache
def host_name() -> str:
    """The short name of this machine, as which jobs know their node; read once."""
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

    Raises ``ValueError`` if one is not; says which are.
    """
    for sign in _SIGN.finditer(pattern):
        if not sign[2] or sign[2] not in _KNOWN:
            known = ", ".join(f"%{each}" for each in _KNOWN)
            raise ValueError(f"the path of a file with {known}: {sign[0]} is not known")
    return pattern


NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")
"""What jobs may be called."""

_NAME_FORM: Final = "at most 100 letters, digits and . _ - +, for it names the log files too"
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])(i?)b?|b)", re.IGNORECASE)
SIZE_FORM: Final = "a size with its unit, such as 8GiB, 500M or 1.5 GB"


def _text(value: Any, expected: str) -> str:
    if not isinstance(value, str) or not value.strip() or not _can_be_handed_over(value):
        raise ValueError(expected)
    return value


def _can_be_handed_over(text: str) -> bool:
    """Return whether a process can be given this text: no NUL, and only what UTF-8 can encode."""
    return "\0" not in text and text.encode(errors="ignore").decode() == text


def _command(value: Any) -> str | tuple[str, ...]:
    if isinstance(value, list):
        expected = "a list of one or more strings"
        usable = all(isinstance(word, str) and _can_be_handed_over(word) for word in value)
        if not value or not value[0] or not usable:
            raise ValueError(expected)
        return tuple(value)
    return _text(value, "a command line, or a list of a program and its arguments")


def _script(value: Any) -> str:
    text = _text(value, "the text of a script")
    if "\r\n" in text:
        raise ValueError("lines that end as on Unix: a carriage return would be part of each")
    return text


def _arguments(value: Any) -> tuple[str, ...]:
    words = shlex.split(value) if isinstance(value, str) else value
    if not isinstance(words, list) or not all(
        isinstance(word, str) and _can_be_handed_over(word) for word in words
    ):
        raise ValueError("the words that the script is given, in a list")
    return tuple(words)


def _whole(value: Any, least: int) -> int:
    expected = f"a whole number, at least {least}"
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:10])
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(expected)
    return value


def memory_bytes(value: Any) -> float:
    """Bytes of a size; K, M, G, T are powers of 1024, as in Slurm, unless ``B`` alone follows.

    Raises ``ValueError`` if it is none, or has no unit.
    """
    found = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise ValueError(SIZE_FORM)
    number, unit, binary = found.groups()
    says_decimal = not binary and value.strip().lower().endswith("b")
    step = 1000.0 if says_decimal else 1024.0
    size = float(number) * step ** ("kmgt".index(unit.lower()) + 1 if unit else 0)
    if not 0.0 < size < 2.0**60:
        raise ValueError(SIZE_FORM)
    return size


def _number(value: Any, expected: str, least: float = 0.0) -> float:
    """A number that is finite, and at least so much."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(expected)
    try:
        number = float(value)
    except (ValueError, OverflowError) as error:  # the latter of whole numbers beyond all others
        raise ValueError(expected) from error
    if not least <= number < math.inf:
        raise ValueError(expected)
    return number


def _preferred(value: Any) -> str:
    expected = "partition:NAME,... or attribute:NAME,... or same:NAME or spread:NAME"
    if not isinstance(value, str):
        raise ValueError(expected)
    try:
        return Preference.parse(value).text
    except InputError as error:
        raise ValueError(expected) from error


def _duration(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(DURATION_FORMS)
    return parse_duration(value)


def _name(value: Any) -> str:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise ValueError(_NAME_FORM)
    return value


def _after(value: Any) -> tuple[Dependency, ...]:
    if not isinstance(value, str) and not (
        isinstance(value, list) and all(isinstance(name, str) for name in value)
    ):
        raise ValueError(DEPENDENCY_FORM)
    return parse_dependencies(value)


def _begin(value: Any) -> float:
    """Unix seconds; a duration is from now on."""
    if isinstance(value, str):
        return time.time() + parse_duration(value)
    return _number(value, "Unix seconds, or a duration from now such as 2h")


def _one_of(*words: object) -> Callable[[Any], Any]:
    """Something that is one of these, and of its type."""

    def checked(value: Any) -> Any:
        if not any(value is word or (isinstance(value, str) and value == word) for word in words):
            raise ValueError(" or ".join(str(word).lower() for word in words))
        return value

    return checked


def _environment(value: Any) -> Mapping[str, str]:
    expected = 'a table of variables, or "NAME=value" words'
    if isinstance(value, str):
        words = [word.partition("=") for word in shlex.split(value)]
        if not all(equals for _, equals, _ in words):
            raise ValueError(expected)
        value = {name: content for name, _, content in words}
    if not isinstance(value, dict):
        raise ValueError(expected)
    for name, content in value.items():
        if not _VARIABLE.fullmatch(name) or isinstance(content, bool | dict | list):
            raise ValueError(f"{expected} (wrong at {name!r})")
        if not _can_be_handed_over(str(content)):
            raise ValueError(f"{expected} in UTF-8 without NUL (wrong at {name!r})")
    return {name: str(content) for name, content in value.items()}


JOB_FIELDS: Final[Mapping[str, Callable[[Any], Any]]] = MappingProxyType(
    {
        "command": _command,
        "script": _script,
        "arguments": _arguments,
        "cpus": lambda value: _whole(value, 1),
        "tasks": lambda value: _whole(value, 1),
        "memory": memory_bytes,
        "gpus": lambda value: _whole(value, 0),
        "requested_time": _duration,
        "deadline": _duration,
        "decay": _duration,
        "worth": lambda value: _number(value, "a number, 0 or more"),
        "preferred": _preferred,
        "slowdown_elsewhere": lambda value: _number(value, "a number, 1 or more", 1.0),
        "after": _after,
        "begin": _begin,
        "requeue": _one_of(True, False),
        "output": lambda value: require_known_signs(_text(value, "the path of a file")),
        "errors": lambda value: require_known_signs(_text(value, "the path of a file")),
        "open_mode": _one_of("append", "truncate"),
        "name": _name,
        "user": lambda value: _text(value, "a user name"),
        "environment": _environment,
        "directory": lambda value: _text(value, "the path of a directory"),
        "strl": lambda value: _text(value, "a request in STRL"),
    }
)
"""What makes of each field what is meant; raises ``ValueError`` with what was expected."""
