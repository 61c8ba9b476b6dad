"""Text, TOML, JSON and CSV that a user hands in: read, or refused with its line; JSON answers.

What the libraries raise ends here: other modules ask for the content and see ``InputError`` only.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from foresail.model.errors import InputError

_LINE: Final = re.compile(r"\(at line (\d+), column (\d+)\)")


def require_end(path: Path) -> None:
    """Refuse what may never end when it is read; that there is nothing is for others to say.

    Raises ``InputError`` if it is a device.
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise InputError("is a device", source=path, expected="a file, or a pipe")


def text_of(path: Path) -> str:
    """The text of a file, without the mark that some editors put first.

    Raises ``InputError`` if it cannot be read or is not UTF-8.
    """
    return decoded(bytes_of(path), path)


def bytes_of(path: Path) -> bytes:
    """The content of a file; raises ``InputError`` if it cannot be read, or is a device."""
    require_end(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=path) from error


def decoded(content: bytes, source: object) -> str:
    """Bytes as text, without the mark that some editors put first.

    Raises ``InputError`` if they are not UTF-8; with the line.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            "not text in UTF-8",
            source=source,
            line=content.count(b"\n", 0, error.start) + 1,
            value=content[max(0, error.start - 20) : error.end + 20],
        ) from error


def toml_of(path: Path) -> dict[str, Any]:
    """The tables of a TOML file; raises as ``text_of`` and ``parsed_toml`` do."""
    return parsed_toml(text_of(path), path)


def parsed_toml(text: str, source: object) -> dict[str, Any]:
    """The tables of a TOML text.

    Raises ``InputError`` if it is none; with line and column where they are known.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _LINE.search(str(error))
        line, column = map(int, place.groups()) if place else (None, None)
        problem = _LINE.sub("", str(error)).strip()
        raise InputError(
            f"is not TOML: {problem}", source=source, line=line, column=column
        ) from error
    except (ValueError, RecursionError) as error:  # a number too long, tables too deep
        raise InputError(f"is not TOML that can be used: {error}", source=source) from error


def json_of(path: Path) -> Any:
    """The value in a JSON file; raises as ``text_of`` and ``parsed_json`` do."""
    return parsed_json(text_of(path), path)


def parsed_json(text: str, source: object, line: int | None = None) -> Any:
    """The value of a JSON text: all of one, or the line of this number.

    Raises ``InputError`` if it is none; with line and column.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        at = error.lineno if line is None else line
        raise InputError(
            f"is not JSON: {error.msg}", source=source, line=at, column=error.colno
        ) from error
    except (ValueError, RecursionError) as error:
        problem = f"is not JSON that can be used: {error}"
        raise InputError(problem, source=source, line=line) from error
    _demand_text(value, text, source, line)
    return value


def _demand_text(value: object, text: str, source: object, line: int | None) -> None:
    """Refuse a JSON value with half a character, which no file could hold again."""
    if "\\ud" not in text and "\\uD" not in text:
        return
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            "half a character",
            source=source,
            line=line,
            value=error.object[error.start : error.end],
            expected="text that UTF-8 can hold",
        ) from error


def csv_rows(text: str, source: object) -> Iterator[tuple[int, list[str]]]:
    """The rows of a table with commas that are not blank, each with the line on which it ends.

    Raises ``InputError`` if quotes do not match; with the line.
    """
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in rows:
            if any(row):
                yield rows.line_num, row
    except csv.Error as error:
        raise InputError(
            f"is not CSV: {error}", source=source, line=max(1, rows.line_num)
        ) from error


ANSWER_VERSION: Final = 1
"""Grows when a key leaves an answer or means something else, not when one is added."""


def json_answer(content: Mapping[str, Any]) -> str:
    """Return an answer as text: an object with its version first, null where a number is unknown.

    What has a version of its own keeps it.
    """
    document = {"version": ANSWER_VERSION, **_finite(content)}
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    """Return a value with None for numbers that are not finite, throughout lists and objects."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value
