"""Errors a user can cause, each naming where, what was found and expected; limits of fields."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import PurePath


class ForesailError(Exception):
    """Base of every error that is the input's fault; the command line exits with status 2."""


class InputError(ForesailError):
    """A file, line or field holds something that cannot be used.

    ``problem`` says in a few words what is wrong with ``value`` in ``field`` (a column, option or
    key) of ``source``, and ``expected`` what would have been accepted. Lines and columns count from
    1.
    """

    def __init__(
        self,
        problem: str,
        *,
        source: object | None = None,
        line: int | None = None,
        column: int | None = None,
        field: str | None = None,
        value: object | None = None,
        expected: str | None = None,
    ) -> None:
        self.problem = problem
        self.source = source
        self.line = line
        self.column = column
        self.field = field
        self.value = value
        self.expected = expected
        super().__init__(self._sentence())

    def placed(self, about: str, source: object, line: int | None = None) -> InputError:
        """Return the same error behind what it is about, in a line of a source."""
        return InputError(
            f"{about}{self.problem}",
            source=source,
            line=line,
            column=self.column,
            field=self.field,
            value=self.value,
            expected=self.expected,
        )

    def _sentence(self) -> str:
        where = [str(self.source)] if self.source is not None else []
        if self.line is not None:
            where.append(f"line {self.line}")
        if self.column is not None:
            where.append(f"column {self.column}")
        if self.field is not None:
            where.append(f"field {self.field!r}")
        sentence = f"{', '.join(where)}: {self.problem}" if where else self.problem
        if self.value is not None:
            found = str(self.value) if isinstance(self.value, PurePath) else self.value
            sentence += f" (found {found!r})"
        if self.expected is not None:
            sentence += f"; expected {self.expected}"
        return sentence


class UnknownNameError(ForesailError):
    """A name that nothing is registered under; the message offers the nearest known ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind = kind
        self.name = name
        self.known = tuple(sorted(known))
        near = get_close_matches(name, self.known, n=3, cutoff=0.5)
        if near:
            remedy = "did you mean " + " or ".join(repr(n) for n in near) + "?"
        else:
            remedy = "known: " + ", ".join(self.known)
        super().__init__(f"unknown {kind} {name!r}; {remedy}")

    def __reduce__(self) -> tuple[type[UnknownNameError], tuple[str, str, tuple[str, ...]]]:
        """Let it come whole from another process, which would seem to have died otherwise."""
        return type(self), (self.kind, self.name, self.known)


@contextmanager
def naming(source: object) -> Iterator[None]:
    """Raise errors about the content of a file anew with its name, if they have none."""
    try:
        yield
    except UnknownNameError as error:
        raise InputError(str(error), source=source) from error
    except InputError as error:
        named = "" if error.source is None else str(error.source)
        if str(source) in named:
            raise
        raise error.placed(f"{named}: " if named else "", source, error.line) from error


def require(holds: bool, record: object, name: str, expected: str) -> None:
    """Raise ``InputError`` about this field of a record unless the condition holds."""
    if not holds:
        raise InputError("out of range", field=name, value=getattr(record, name), expected=expected)


def require_at_least(record: object, least: float, *names: str) -> None:
    """Raise ``InputError`` unless these fields are finite and not below ``least``; None passes."""
    for name in names:
        value = getattr(record, name)
        require(
            value is None or least <= value < math.inf, record, name, f"finite, {least:g} or more"
        )


def require_positive(record: object, *names: str) -> None:
    """Raise ``InputError`` unless these fields are finite and above 0; None passes."""
    for name in names:
        value = getattr(record, name)
        require(value is None or 0.0 < value < math.inf, record, name, "finite, above 0")


def require_share(record: object, *names: str) -> None:
    """Raise ``InputError`` unless these fields are from 0 to 1; None passes."""
    for name in names:
        value = getattr(record, name)
        require(value is None or 0.0 <= value <= 1.0, record, name, "from 0 to 1")


def require_each_at_least(record: object, least: float, *names: str) -> None:
    """Raise ``InputError`` unless these fields hold values, each finite and not below ``least``."""
    for name in names:
        values = getattr(record, name)
        holds = bool(values) and all(least <= value < math.inf for value in values)
        require(holds, record, name, f"one or more, each finite and {least:g} or more")


def require_choice(record: object, **choices: Iterable[str]) -> None:
    """Raise ``InputError`` unless these fields are each one of its choices."""
    for name, known in choices.items():
        require(getattr(record, name) in known, record, name, " or ".join(known))
