"""Words, numbers and signs of a text of requests, with their places, and names of nodes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Final

from foresail.model.errors import InputError

MOST_NODES: Final = 1_000_000
"""Ranges that stand for more names than this are refused."""

_LONGEST_LIST: Final = 40
_PIECE: Final = re.compile(r"\[([^\]]*)\]|([^\[\]]+)")
_RUN: Final = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_PLAIN: Final = re.compile(r"[^\W][\w.-]*")
_NUMBERED: Final = re.compile(r"(.*?)([0-9]+)")
_LONGEST_NUMBER: Final = 15
_SHORTEST_RUN: Final = 3


def expand(text: str) -> tuple[str, ...]:
    """The names that a text stands for: ``r[1-2]n[01-03,7]`` is eight of them.

    Numbers have at least as many digits as the first one of their run is written with.

    Raises ``ValueError`` if a bracket holds no numbers or runs of them, a run goes backwards, or
    there are more than ``MOST_NODES`` names; the message says what is expected.
    """
    found = list(_PIECE.finditer(text))
    if sum(len(piece.group()) for piece in found) != len(text):
        raise ValueError("brackets in pairs, as in n[1-256]")
    parts = [
        (piece.group(2),) if piece.group(1) is None else tuple(_runs(piece.group(1)))
        for piece in found
    ]
    if prod(map(len, parts)) > MOST_NODES:
        raise ValueError(f"at most {MOST_NODES:,} nodes")
    return tuple("".join(choice) for choice in product(*parts))


def _runs(text: str) -> Iterator[str]:
    for run in text.split(","):
        ends = _RUN.fullmatch(run.strip())
        if ends is None or len(run) > 2 * _LONGEST_NUMBER + 1:
            raise ValueError("numbers and runs of numbers, as in n[1-16,20]")
        first, last = int(ends[1]), int(ends[2] or ends[1])
        if last < first:
            raise ValueError(f"a run that goes upwards, as in [{last}-{first}]")
        if last - first >= MOST_NODES:
            raise ValueError(f"at most {MOST_NODES:,} nodes")
        yield from (str(number).zfill(len(ends[1])) for number in range(first, last + 1))


def quoted(name: str) -> str:
    """The name as it is written in a text: as it is if it is plain, else in double quotes."""
    if _PLAIN.fullmatch(name):
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def compress(names: Iterable[str]) -> str:
    """The names separated by commas, in natural order, with runs of three or more as ranges.

    ``n1, n2, n3, gpu-7`` becomes ``gpu-7, n[1-3]``; every name that is not plain is quoted.
    """
    numbered: dict[str, list[str]] = {}
    written: list[tuple[str, int, str]] = []
    for name in set(names):
        parts = _NUMBERED.fullmatch(name) if _PLAIN.fullmatch(name) else None
        if parts is None or len(parts[2]) > _LONGEST_NUMBER:
            written.append((name, 0, quoted(name)))
        else:
            numbered.setdefault(parts[1], []).append(parts[2])
    for prefix, numbers in numbered.items():
        padded = {len(number) for number in numbers if number.startswith("0") and number != "0"}
        for digits in (*padded, 0):
            same = [n for n in numbers if (len(n) if len(n) in padded else 0) == digits]
            written.extend(_compressed(prefix, digits, sorted(map(int, same))))
    return ", ".join(text for _, _, text in sorted(written))


def listed(names: Iterable[str]) -> str:
    """The names as ``compress`` writes them, cut short where they are many; for people."""
    text = compress(names)
    return text if len(text) <= _LONGEST_LIST else text[: _LONGEST_LIST - 1] + "…"


def _compressed(prefix: str, digits: int, values: list[int]) -> Iterator[tuple[str, int, str]]:
    """Prefix, first number and text of each run of consecutive numbers, for sorting."""
    begin = 0
    for at in range(1, len(values) + 1):
        if at < len(values) and values[at] == values[at - 1] + 1:
            continue
        run = [str(value).zfill(digits) for value in values[begin:at]]
        if len(run) >= _SHORTEST_RUN:
            yield prefix, values[begin], f"{prefix}[{run[0]}-{run[-1]}]"
        else:
            yield from (
                (prefix, value, f"{prefix}{text}")
                for value, text in zip(values[begin:at], run, strict=True)
            )
        begin = at


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


def _amount_and_unit(token: Token, source: object | None) -> tuple[float, str]:
    """Amount and unit of a finite number as written; the unit is empty where there is none."""
    found = _NUMBER.fullmatch(token.text) if token.kind == "number" else None
    try:
        amount = float(found[1]) if found else math.inf
    except ValueError:
        amount = math.inf
    if found is None or not math.isfinite(amount):
        raise wrong("not a number", token, "a number", source)
    return amount, found[2]


def seconds(token: Token, source: object | None = None) -> float:
    """Seconds of a time with or without a unit: ``90``, ``90s``, ``2h``.

    Raises ``InputError`` if it is no number, or its unit is not one of time.
    """
    amount, unit = _amount_and_unit(token, source)
    factor = _UNIT_SECONDS.get(unit or "s")
    if factor is None or not math.isfinite(amount * factor):
        known = ", ".join(_UNIT_SECONDS)
        raise wrong("not a unit of time", token, f"seconds, or a number with {known}", source)
    return amount * factor


def plain_number(token: Token, source: object | None = None) -> float:
    """A number without a unit.

    Raises ``InputError`` if it is no number or has a unit.
    """
    amount, unit = _amount_and_unit(token, source)
    if unit:
        raise wrong("a unit where none can be", token, "a number without a unit", source)
    return amount
