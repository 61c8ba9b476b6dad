"""How results are printed; where a program reads them, nothing is told of the progress."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import typer

from foresail.cli.progress_line import stop_showing

if TYPE_CHECKING:
    import polars as pl

_Chosen = TypeVar("_Chosen", bound=StrEnum)


class Format(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    JSON = "json"


class TableFormat(StrEnum):
    """How a result that is one table is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def _heard(chosen: _Chosen) -> _Chosen:
    """Be silent for a program also where a file of options asks for its format."""
    if chosen != "table":
        stop_showing()
    return chosen


def print_json(record: object) -> None:
    """A record, or several, for a program; what is no number is to be null in it."""
    import json

    typer.echo(json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False))


def plain_rows(table: pl.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table for ``print_json``, with null where a float is no number or infinite."""
    from polars import selectors, when

    floats = selectors.float()
    return table.with_columns(when(floats.is_finite()).then(floats)).to_dicts()


FormatOption: TypeAlias = Annotated[
    Format, typer.Option("--format", help="How to print it.", callback=_heard)
]
TableFormatOption: TypeAlias = Annotated[
    TableFormat, typer.Option("--format", help="How to print.", callback=_heard)
]
