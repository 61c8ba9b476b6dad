"""Options that the commands of ``foresail trace`` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

LogPath: TypeAlias = Annotated[
    Path, typer.Argument(metavar="PATH", help="A log file, or a workload folder.")
]
ReaderName: TypeAlias = Annotated[
    str | None, typer.Option("--reader", help="Name of the reader, if it cannot be told.")
]
MappingPath: TypeAlias = Annotated[
    Path | None, typer.Option("--mapping", help="Column mapping (TOML) of a CSV or Parquet table.")
]
Processors: TypeAlias = Annotated[
    int | None, typer.Option("--processors", min=1, help="Processors of the machine.")
]
Strict: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--strict/--lenient",
        help="What would be repaired or is odd is an error; or drop as many rows as there are that "
        "are no jobs [more than 1 % are an error].",
        show_default=False,
    ),
]


def reader_options(mapping: Path | None) -> dict[str, Any]:
    """Options for the reader: those that were given."""
    return {} if mapping is None else {"mapping": mapping}
