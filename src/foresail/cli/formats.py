"""Results printed for people (tables) or for programs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import typer

from foresail.cli.progress import stop_showing
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console


def made_by() -> str:
    """The command line, as a report prints it."""
    return shlex.join(["foresail", *sys.argv[1:]])


@contextmanager
def naming_options(options: Mapping[str, str]) -> Iterator[None]:
    """Raise errors about these fields anew, with the option's name in place of the field's."""
    try:
        yield
    except InputError as error:
        option = options.get(error.field or "")
        if option is None or error.line is not None:
            raise
        expected = error.expected
        raise InputError(
            error.problem,
            source=error.source,
            field=option,
            value=error.value,
            expected=expected and expected.replace(f"{error.field}=", f"{option} "),
        ) from error


def refuse(options: Mapping[str, object], problem: str, expected: str) -> None:
    """Raise an ``InputError`` about the first of these options that was given (is not None)."""
    for option, value in options.items():
        if value is not None:
            raise InputError(problem, field=option, value=value, expected=expected)


def require_output(output: Path | None, *, png: bool = False) -> None:
    """Refuse a folder for results that cannot be made, and pictures for none, before long work."""
    from foresail.model.whole_files import require_folder

    if output is not None:
        require_folder(output)
    elif png:
        raise InputError("only with --output", field="--png")


_Chosen = TypeVar("_Chosen", bound=StrEnum)


class Format(StrEnum):
    """Format of a printed result."""

    TABLE = "table"
    JSON = "json"


class TableFormat(StrEnum):
    """Format of a printed result that is one table."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def _heard(chosen: _Chosen) -> _Chosen:
    """Be silent for a program also where a file of options asks for its format."""
    if chosen != "table":
        stop_showing()
    return chosen


def print_json(content: Mapping[str, Any]) -> None:
    """Print an answer for a program."""
    from foresail.model.documents import json_answer

    typer.echo(json_answer(content))


FormatOption: TypeAlias = Annotated[
    Format, typer.Option("--format", help="How to print it.", callback=_heard)
]
TableFormatOption: TypeAlias = Annotated[
    TableFormat, typer.Option("--format", help="How to print.", callback=_heard)
]


_PIPED_WIDTH = 400


def console() -> Console:
    """For tables that rich has laid out: as wide as a terminal, a hundred characters when piped."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 100, markup=False, highlight=False)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]], right: int = 0) -> None:
    """Print rows of texts under headings; the last ``right`` columns are aligned to the right."""
    from io import StringIO

    from rich import box
    from rich.console import Console
    from rich.table import Table

    to_people = sys.stdout.isatty()
    table = Table(
        box=box.SIMPLE_HEAD if to_people else None,
        pad_edge=False,
        show_header=any(headings),
        header_style="bold" if to_people else "",
    )
    for number, heading in enumerate(headings):
        aligned = "right" if number >= len(headings) - right else "left"
        table.add_column(heading, justify=aligned, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*row)
    if to_people:
        Console(markup=False, highlight=False).print(table)
        return
    text = StringIO()
    Console(file=text, width=_PIPED_WIDTH, markup=False, highlight=False).print(table)
    sys.stdout.writelines(line.rstrip() + "\n" for line in text.getvalue().splitlines())


def print_plugins(family: str, does: str) -> None:
    """Print what is registered under a family: name, what it does (``does``), parameters."""
    from foresail.model.registry import entries
    from foresail.model.short_form import parameter_texts

    print_table(
        (family, does, "parameters"),
        [(e.name, e.summary, ", ".join(parameter_texts(e))) for e in entries(family)],
    )
