"""How results are printed; where a program reads them, nothing is told of the progress."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeAlias, TypeVar

import typer

from foresail.cli.progress_line import stop_showing

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


FormatOption: TypeAlias = Annotated[
    Format, typer.Option("--format", help="How to print it.", callback=_heard)
]
TableFormatOption: TypeAlias = Annotated[
    TableFormat, typer.Option("--format", help="How to print.", callback=_heard)
]
