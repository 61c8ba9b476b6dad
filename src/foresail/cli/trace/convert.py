"""``foresail trace convert``: any log becomes a workload folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from foresail.cli.log_options import LogOptions, LogPath
from foresail.cli.progress import reading


def command(
    path: LogPath,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The workload folder.")],
    log_options: LogOptions = LogOptions(),
) -> None:
    """Turn a log of any size into a workload folder (Parquet)."""
    from foresail.traces.folder import convert

    with reading(path) as advance:
        meta = convert(path, folder, advance=advance, **log_options.given())
    from foresail.model.words import count as counted

    typer.echo(f"{folder}: converted from {meta.source} (reader {meta.reader})")
    for name, count in sorted(meta.repairs.items()):
        typer.echo(f"repaired: {name.replace('_', ' ')}, {counted(count, 'row')}")
    for each in meta.lost:
        said = f"{counted(each.rows, 'row')} without {each.expected} (the first is {each.example})"
        typer.echo(f"dropped: {said}")
