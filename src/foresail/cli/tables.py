"""Tables for people: drawn in a terminal, plain text columns when piped."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

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
