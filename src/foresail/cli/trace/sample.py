"""``foresail trace sample``: a part of a log that can be replayed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foresail.cli.log_options import LogPath, ReaderOptions, read_log
from foresail.cli.progress import doing
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from foresail.traces.workload import Workload


def command(
    path: LogPath,
    output: Annotated[
        Path, typer.Argument(metavar="OUT", help="A workload folder, or FILE.swf[.gz|.zst].")
    ],
    weeks: Annotated[
        int | None, typer.Option(min=1, help="Take so many weeks; the load stays as it is.")
    ] = None,
    from_week: Annotated[int, typer.Option(min=0, help="With --weeks: the first, from 0.")] = 0,
    users: Annotated[
        int | None, typer.Option(min=1, help="Take all jobs of so many users, drawn at random.")
    ] = None,
    fraction: Annotated[
        float | None, typer.Option(help="Take each job with this probability.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same sample.")] = 0,
    log_options: ReaderOptions = ReaderOptions(),
) -> None:
    """Take some weeks, some users or a fraction of the jobs of a log."""
    from foresail.cli.trace._writing import write
    from foresail.model.words import count

    if sum(option is not None for option in (weeks, users, fraction)) != 1:
        raise InputError("say what to take", expected="one of --weeks, --users and --fraction")
    workload = read_log(path, log_options)
    with doing("sampling"):
        part = _part(workload, weeks, from_week, users, fraction, seed)
    write(part, output)
    typer.echo(f"{output}: {count(len(part), 'job')} of {len(workload):,}")


def _part(
    workload: Workload,
    weeks: int | None,
    from_week: int,
    users: int | None,
    fraction: float | None,
    seed: int,
) -> Workload:
    from foresail.traces.sampling import sample_fraction, sample_users, sample_weeks

    if weeks is not None:
        return sample_weeks(workload, weeks, from_week)
    if users is not None:
        return sample_users(workload, users, seed)
    assert fraction is not None
    return sample_fraction(workload, fraction, seed)
