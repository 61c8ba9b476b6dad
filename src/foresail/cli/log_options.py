"""Options that the commands of ``foresail trace`` share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from foresail.cli.progress import reading

if TYPE_CHECKING:
    from foresail.traces.workload import Workload

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


def read_log(
    path: Path,
    reader: str | None,
    mapping: Path | None,
    processors: int | None,
    strict: bool | None = None,
) -> Workload:
    """The workload that these options mean; says how far reading is."""
    from foresail.traces.reading import read

    options = {"strict": strict, "processors": processors} | reader_options(mapping)
    with reading(path) as advance:
        return read(path, reader, advance=advance, **options)
