"""``foresail predict merge``: what several predictors learned apart, as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from foresail.cli.log_options import Plugins
from foresail.cli.progress import doing
from foresail.model.errors import InputError


def command(
    states: Annotated[
        list[Path], typer.Argument(metavar="STATE STATE [STATE ...]", help="Learned states.")
    ],
    output: Annotated[
        Path, typer.Option("--output", metavar="STATE", help="Where to write all of it.")
    ],
    plugins: Plugins = None,
) -> None:
    """Put together what shards of one predictor learned from different jobs."""
    del plugins  # they are loaded
    from foresail import __version__
    from foresail.model.short_form import part_of
    from foresail.predictors.saving import StateHeader, load_state, merged, read_header, save_state

    if len(states) < 2:
        raise InputError("one state has nothing to be merged with", expected="two or more")
    part = part_of("predictor", read_header(states[0]).predictor)
    parts = []
    with doing(f"merging {len(states)} states"):
        for state in states:
            parts.append(part.build())
            load_state(state, parts[-1], part.text)
        together = merged(parts, part.build())
        save_state(output, together, StateHeader(part.text, foresail=__version__))
    typer.echo(f"{output}: {part.text} of {len(states)} states")
