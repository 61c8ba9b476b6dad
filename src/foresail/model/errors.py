"""The errors a user can cause, each naming where, what was found and what was expected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import PurePath


class ForesailError(Exception):
    """Base of every error that is the input's fault; the command line exits with status 2."""


class InputError(ForesailError):
    """A file, line or field holds something that cannot be used.

    Parameters
    ----------
    problem
        What is wrong, in a few words.
    source
        The file (or stream) the input came from.
    line, column
        One-based line number within the source, and the one-based character within that line.
    field
        The column, option or key.
    value
        What was found there.
    expected
        What would have been accepted.
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
        """It comes whole from another process, which would seem to have died otherwise."""
        return type(self), (self.kind, self.name, self.known)


@contextmanager
def naming(source: object) -> Iterator[None]:
    """Errors about what is in a file name it, also where their maker did not know of the file.

    Raises
    ------
    InputError
        Whatever was raised within, with the file as its source.
    """
    try:
        yield
    except UnknownNameError as error:
        raise InputError(str(error), source=source) from error
    except InputError as error:
        told = "" if error.source is None else str(error.source)
        if str(source) in told:
            raise
        raise InputError(
            f"{told}: {error.problem}" if told else error.problem,
            source=source,
            line=error.line,
            column=error.column,
            field=error.field,
            value=error.value,
            expected=error.expected,
        ) from error
