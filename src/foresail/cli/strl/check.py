"""``foresail strl check``: whether a file of requests can be read, what is odd, how large it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from foresail.cli.formats import Format, FormatOption, print_json
from foresail.cli.strl._options import RequestFile

if TYPE_CHECKING:
    from foresail.model.errors import InputError
    from foresail.strl.checking import Remark, RequestSizes


def command(path: RequestFile, output_format: FormatOption = Format.TABLE) -> None:
    """What is wrong, with line and column; what can never count; how large the requests are.

    Exit status 2 if anything cannot be understood; what is only odd leaves it at 0.
    """
    from foresail.model.documents import text_of
    from foresail.strl.checking import remarks, statistics
    from foresail.strl.text import examine

    reading = examine(text_of(path), path)
    odd = remarks(reading)
    found = statistics(reading.document)
    if output_format == Format.JSON:
        _print_json(reading.errors, odd, found)
    else:
        _print_words(reading.errors, odd, found)
    if reading.errors:
        raise typer.Exit(2)


def _print_json(
    errors: tuple[InputError, ...], odd: tuple[Remark, ...], found: RequestSizes
) -> None:
    from dataclasses import asdict

    content = {
        "errors": [
            {
                "line": error.line,
                "column": error.column,
                "problem": error.problem,
                "value": error.value,
                "expected": error.expected,
            }
            for error in errors
        ],
        "remarks": [
            {
                "line": remark.position.line if remark.position else None,
                "column": remark.position.column if remark.position else None,
                "text": remark.text,
            }
            for remark in odd
        ],
        "statistics": asdict(found),
    }
    print_json(content)


def _print_words(
    errors: tuple[InputError, ...], odd: tuple[Remark, ...], found: RequestSizes
) -> None:
    from foresail.cli.formats import print_table
    from foresail.model.words import count, duration, number

    for error in errors:
        typer.echo(f"error: {error}")
    for remark in odd:
        at = remark.position
        where = f"line {at.line}, column {at.column}: " if at else ""
        typer.echo(f"odd: {where}{remark.text}")
    if errors or odd:
        typer.echo()
    kinds = ", ".join(f"{_WORDS[kind]} {amount:,}" for kind, amount in found.kinds.items())
    rows = [
        ("requests", number(found.requests)),
        ("expressions", f"{number(found.expressions)} ({kinds})" if kinds else "0"),
        ("leaves", f"{number(found.leaves)}, {number(found.useful_leaves)} of any use"),
        ("depth", number(found.depth)),
        ("nodes", f"{number(found.nodes)}, {number(found.busy_nodes)} busy"),
        ("node sets", number(found.sets)),
        ("from", duration(found.first_start_seconds)),
        ("to", duration(found.last_end_seconds)),
        ("worth at most", number(found.highest_value)),
    ]
    print_table(("", ""), rows)
    verdict = f"{count(len(errors), 'error')}, {count(len(odd), 'remark')}"
    typer.echo(f"\n{verdict}")


_WORDS = {
    "NChooseK": "nCk",
    "LinearNChooseK": "LnCk",
    "Maximum": "max",
    "Minimum": "min",
    "Sum": "sum",
    "Scale": "scale",
    "Barrier": "barrier",
}
