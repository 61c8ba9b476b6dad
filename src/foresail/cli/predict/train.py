"""``foresail predict train``: a predictor told a whole log, and what it learned as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from foresail.cli import _replaying as replaying
from foresail.cli.log_options import LogOptions
from foresail.cli.progress import doing, in_shares
from foresail.model.errors import InputError


def command(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="A job log, or a workload folder.")],
    predictor: Annotated[
        str, typer.Option("--predictor", metavar="PREDICTOR", help='Such as "history(bins=40)".')
    ],
    output: Annotated[
        Path, typer.Option("--output", metavar="STATE", help="Where to write what was learned.")
    ],
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            metavar="NAME(PARAMETER=VALUE,...)",
            help="Cleaning filters, in order [drop_no_processors, fill_processors, "
            "drop_no_runtime].",
        ),
    ] = None,
    log_options: LogOptions = LogOptions(),
) -> None:
    """Learn from a log, for `foresail run --learned` or to be merged with others."""
    from foresail import __version__
    from foresail.model.short_form import part_of
    from foresail.model.words import count
    from foresail.predictors.saving import StateHeader, require_savable, save_state
    from foresail.predictors.training import train

    part = part_of("predictor", predictor)
    built = part.build()
    header = StateHeader(part.text, foresail=__version__)
    require_savable(built, part.text)
    if not output.parent.is_dir():
        raise InputError("there is no such folder", source=output.parent)
    cleaning = filters or ["drop_no_processors", "fill_processors", "drop_no_runtime"]
    workload = replaying.load(log, log_options, cleaning)
    with doing(f"learning from {count(len(workload), 'job')}", said=in_shares) as entered:
        jobs = train(workload, built, watch=entered.watch)
        save_state(output, built, header)
    typer.echo(f"{output}: {part.text} after {count(jobs, 'job')}")
