"""RDL, Rayon's reservation language: a gang of containers for a time, within a window of time.

Source: TetriSched (EuroSys 2016), section 4.4; spec tetrisched sections 3.1 and 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from foresail.model.errors import InputError
from foresail.model.resources import Resources
from foresail.model.value import ValueFunction
from foresail.strl.expression import Expression
from foresail.strl.requests import Gang, Nodes, StartWindow, either, unconstrained, within
from foresail.strl.tokens import Token, exact, plain_number, quantity, seconds, tokens, wrong

_MEMORY: Final = MappingProxyType(
    {
        "TB": 1e12,
        "GB": 1e9,
        "MB": 1e6,
        "kB": 1e3,
        "TiB": 2.0**40,
        "GiB": 2.0**30,
        "MiB": 2.0**20,
        "KiB": 2.0**10,
        "B": 1.0,
    }
)
_CPUS: Final = "c"
_GPUS: Final = "gpu"
_UNITS: Final = MappingProxyType(
    {**dict.fromkeys(_MEMORY, "memory_bytes"), _CPUS: "cpus", _GPUS: "gpus"}
)
_BRACKETS: Final = MappingProxyType({"<": "⟨", ">": "⟩"})
_SIZES: Final = f"sizes such as 16GB, 8{_CPUS} or 1{_GPUS}"


@dataclass(frozen=True, slots=True)
class Atom:
    """Containers for a time.

    Parameters
    ----------
    request
        The size of one container.
    count
        How many, at least 1.
    gang
        How many of them at once at the least, from 1 to ``count``.
    duration_seconds
        For how long, above 0: the runtime on the nodes where the job is slow.
    """

    request: Resources
    count: int
    gang: int
    duration_seconds: float

    def __post_init__(self) -> None:
        _require(self.count >= 1, "count", self.count, "at least 1")
        _require(1 <= self.gang <= self.count, "gang", self.gang, f"from 1 to {self.count}")
        lasting = 0.0 < self.duration_seconds < math.inf
        _require(lasting, "duration", self.duration_seconds, "above 0")


@dataclass(frozen=True, slots=True)
class Window:
    """An atom that lies between two times, ``start_seconds`` and ``finish_seconds``."""

    start_seconds: float
    finish_seconds: float
    atom: Atom

    def __post_init__(self) -> None:
        _require(math.isfinite(self.start_seconds), "start", self.start_seconds, "a time")
        ordered = self.start_seconds < self.finish_seconds < math.inf
        expected = f"later than the start, {self.start_seconds:g}"
        _require(ordered, "finish", self.finish_seconds, expected)


def _require(holds: bool, field: str, value: object, expected: str) -> None:
    if not holds:
        raise InputError("not a reservation", field=field, value=value, expected=expected)


def derive(
    window: Window,
    value: ValueFunction,
    plan: StartWindow,
    nodes: Nodes,
    preferred: Iterable[Nodes] = (),
    slowdown: float = 1.0,
) -> Expression | None:
    """What a job with this reservation asks for, as STRL; None if it has no possible start.

    All containers start at once, whatever the atom's gang (spec T-4), one on each node.

    Parameters
    ----------
    window
        The reservation; its duration is the one on any nodes.
    value
        What completing at a time is worth.
    plan
        The starts that the plan considers; the window limits them further.
    nodes
        Names of all nodes.
    preferred
        Sets of nodes; where all containers are in one of them, the job is faster.
    slowdown
        How many times longer it runs elsewhere, at least 1.
    """
    _require(1.0 <= slowdown < math.inf, "slowdown", slowdown, "at least 1")
    starts = replace(
        plan,
        earliest_start_seconds=max(plan.earliest_start_seconds, window.start_seconds),
        latest_end_seconds=min(plan.latest_end_seconds, window.finish_seconds),
    )
    slow = Gang(window.atom.count, window.atom.duration_seconds, value, starts)
    fast = replace(slow, duration_seconds=window.atom.duration_seconds / slowdown)
    return either((unconstrained(slow, nodes), within(fast, preferred)))


def format_window(window: Window) -> str:
    """The text of a reservation, which ``parse_window`` turns into the same one."""
    atom = window.atom
    return (
        f"Window(s={exact(window.start_seconds)}, f={exact(window.finish_seconds)}, "
        f"Atom(b=<{_size(atom.request)}>, k={atom.count}, gang={atom.gang}, "
        f"dur={exact(atom.duration_seconds)}))"
    )


def _size(request: Resources) -> str:
    parts = []
    if request.memory_bytes:
        unit = next(u for u, size in _MEMORY.items() if _whole(request.memory_bytes, size))
        parts.append(f"{exact(request.memory_bytes / _MEMORY[unit])}{unit}")
    if request.cpus or not (request.memory_bytes or request.gpus):
        parts.append(f"{exact(request.cpus)}{_CPUS}")
    if request.gpus:
        parts.append(f"{exact(request.gpus)}{_GPUS}")
    return ", ".join(parts)


def _whole(memory_bytes: float, size: float) -> bool:
    return size == 1.0 or (memory_bytes % size == 0.0 and memory_bytes / size < 2**53)


def parse_window(text: str, source: object | None = None) -> Window:
    """The reservation that a text such as ``Window(0, 3, Atom(<16GB, 8c>, 2, 2, 3))`` is.

    Arguments may be named as the source names them: ``s=``, ``f=``, ``b=``, ``k=``, ``gang=``,
    ``dur=``.

    Raises
    ------
    InputError
        With line and column of the first thing that is wrong, what was found and what expected.
    """
    return _Reader(text, source).window()


class _Reader:
    """Reads the tokens of one reservation, from left to right."""

    def __init__(self, text: str, source: object | None) -> None:
        self._tokens = [token for token in tokens(text) if token.kind != "newline"]
        self._at = 0
        self._source = source

    def window(self) -> Window:
        """The whole text as a reservation."""
        readers = {"s": self._time, "f": self._time, "Atom": self._atom}
        window: Window = self._record("Window", readers, Window)
        self._sign("", "text behind the reservation", "the end of the text")
        return window

    def _atom(self) -> Atom:
        readers = {"b": self._size, "k": self._count, "gang": self._count, "dur": self._time}
        atom: Atom = self._record("Atom", readers, Atom)
        return atom

    def _record(
        self, word: str, readers: Mapping[str, Callable[[], Any]], kind: Callable[..., Any]
    ) -> Any:
        """``word(argument, ...)`` as a record; what the record refuses is said with its place."""
        self._sign(word, "not a reservation", word)
        self._sign("(", f"{word} needs {', '.join(readers)}", "'('")
        values, places = [], []
        for number, (name, read) in enumerate(readers.items()):
            if number:
                self._sign(",", f"{word} is incomplete", f"',' and {name}")
            if self._next.text == name and self._tokens[self._at + 1].text == "=":
                self._at += 2
            places.append(self._next)
            values.append(read())
        self._sign(")", f"{word} has nothing else", "')'")
        try:
            return kind(*values)
        except InputError as error:
            fields = list(kind.__annotations__)
            at = next(
                place
                for field, place in zip(fields, places, strict=True)
                if field.startswith(error.field or "")
            )
            raise wrong(
                f"a {error.field} that cannot be", at, error.expected, self._source
            ) from error

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._next
        if token.kind != "end":
            self._at += 1
        return token

    def _sign(self, text: str, problem: str, expected: str) -> None:
        token = self._take()
        if token.text.lower() not in (text.lower(), _BRACKETS.get(text)):
            raise wrong(problem, token, expected, self._source)

    def _time(self) -> float:
        if self._next.text == "-":
            self._take()
            return -seconds(self._take(), self._source)
        return seconds(self._take(), self._source)

    def _count(self) -> int:
        token = self._take()
        number = plain_number(token, self._source)
        if not number.is_integer():
            raise wrong("not a whole number", token, "how many", self._source)
        return int(number)

    def _size(self) -> Resources:
        self._sign("<", "no size of a container", "'<'")
        found: dict[str, float] = {}
        while True:
            token = self._take()
            amount = quantity(token, self._source)
            name = _UNITS.get(amount.unit)
            if name is None or name in found:
                raise wrong("not a size", token, _SIZES, self._source)
            found[name] = amount.amount * _MEMORY.get(amount.unit, 1.0)
            if self._next.text != ",":
                break
            self._take()
        self._sign(">", "the size does not go on like this", "',' or '>'")
        return Resources(**found)
