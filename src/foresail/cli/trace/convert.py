"""``foresail trace convert``: any log becomes a workload folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from foresail.cli.progress import reading
from foresail.cli.trace._options import (
    LogPath,
    MappingPath,
    Processors,
    ReaderName,
    Strict,
    reader_options,
)


def command(
    path: LogPath,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The workload folder.")],
    reader: ReaderName = None,
    mapping: MappingPath = None,
    processors: Processors = None,
    strict: Strict = False,
) -> None:
    """Turn a log of any size into a workload folder (Parquet)."""
    from foresail.traces.folder import convert

    with reading(path) as advance:
        meta = convert(
            path,
            folder,
            reader,
            strict=strict,
            processors=processors,
            advance=advance,
            **reader_options(mapping),
        )
    from foresail.model.words import count as counted

    typer.echo(f"{folder}: converted from {meta.source} (reader {meta.reader})")
    for name, count in sorted(meta.repairs.items()):
        typer.echo(f"repaired: {name.replace('_', ' ')}, {counted(count, 'row')}")
