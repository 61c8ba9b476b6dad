"""Words, numbers and signs of a text of requests, each with its line and column."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from foresail.model.errors import InputError

NEWLINE: Final = "\n"
END: Final = ""

_UNIT_SECONDS: Final = {
    "ms": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 604800.0,
}
_TOKEN: Final = re.compile(
    r"""
      (?P<blank>[^\S\n]+|\#[^\n]*)
    | (?P<newline>\n)
    | (?P<quoted>"(?:[^"\\\n]|\\[^\n])*")
    | (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[A-Za-z]*(?![\w.\-\[]))
    | (?P<word>(?:[\w.]|\[[^\]\n]*\])(?:[\w.-]|\[[^\]\n]*\])*)
    | (?P<sign>[{}(),=+<>⟨⟩-])
    """,
    re.VERBOSE,
)
_NUMBER: Final = re.compile(r"([0-9.]+(?:[eE][+-]?[0-9]+)?)([A-Za-z]*)")
_ESCAPED: Final = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a text: line and column, both from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of text that means something.

    ``kind`` is ``word``, ``number``, ``quoted``, ``sign``, ``newline`` or ``end``.
    """

    kind: str
    text: str
    position: Position

    @property
    def content(self) -> str:
        """The text, of a quoted one without its quotes and escapes."""
        if self.kind != "quoted":
            return self.text
        return _ESCAPED.sub(lambda e: "\n" if e[1] == "n" else e[1], self.text[1:-1])


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as written, with the unit behind it (empty where there is none)."""

    amount: float
    unit: str


def wrong(
    problem: str, at: Token, expected: str | None = None, source: object | None = None
) -> InputError:
    """The error for a token: where it stands, what it is, and what should stand there."""
    said = {NEWLINE: "the end of the line", END: "the end of the text"}.get(at.text, at.text)
    return InputError(
        problem,
        source=source,
        line=at.position.line,
        column=at.position.column,
        value=said,
        expected=expected,
    )


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a text without blanks and comments (``# ...``), the last of kind ``end``.

    A character that begins nothing is a token of kind ``unknown``, for the parser to refuse.
    """
    at, line, line_begins = 0, 1, 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        kind, piece = (found.lastgroup or "", found.group()) if found else ("unknown", text[at])
        if kind != "blank":
            yield Token(kind, piece, Position(line, at - line_begins + 1))
        at += len(piece)
        if kind == "newline":
            line, line_begins = line + 1, at
    yield Token("end", END, Position(line, at - line_begins + 1))


def quantity(token: Token, source: object | None = None) -> Quantity:
    """Amount and unit of a number.

    Raises
    ------
    InputError
        If the token is not a finite number.
    """
    found = _NUMBER.fullmatch(token.text) if token.kind == "number" else None
    try:
        amount = float(found[1]) if found else math.inf
    except ValueError:
        amount = math.inf
    if found is None or not math.isfinite(amount):
        raise wrong("not a number", token, "a number", source)
    return Quantity(amount, found[2])


def seconds(token: Token, source: object | None = None) -> float:
    """Seconds of a time with or without a unit: ``90``, ``90s``, ``2h``.

    Raises
    ------
    InputError
        If it is no number, or its unit is not one of time.
    """
    found = quantity(token, source)
    factor = _UNIT_SECONDS.get(found.unit, 1.0 if found.unit == "" else None)
    if factor is None or not math.isfinite(found.amount * factor):
        known = ", ".join(_UNIT_SECONDS)
        raise wrong("not a unit of time", token, f"seconds, or a number with {known}", source)
    return found.amount * factor


def plain_number(token: Token, source: object | None = None) -> float:
    """A number without a unit.

    Raises
    ------
    InputError
        If it is no number or has a unit.
    """
    found = quantity(token, source)
    if found.unit:
        raise wrong("a unit where none can be", token, "a number without a unit", source)
    return found.amount
