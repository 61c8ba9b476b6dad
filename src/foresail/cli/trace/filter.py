"""``foresail trace filter``: clean a log by named filters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from foresail.cli.log_options import LogOptions, read_log
from foresail.cli.progress import doing
from foresail.model.errors import InputError


def command(
    path: Annotated[
        Path | None,
        typer.Argument(metavar="[PATH]", help="A log or workload folder [list the filters]."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Argument(metavar="[OUT]", help="A workload folder, or FILE.swf[.gz|.zst]."),
    ] = None,
    filters: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="NAME(PARAMETER=VALUE,...)", help="Filters, in order."),
    ] = None,
    log_options: LogOptions = LogOptions(),
) -> None:
    """Clean a log and say how many jobs each filter touched; without PATH, list the filters."""
    from foresail.cli.trace._writing import write
    from foresail.traces.filtering import apply_filters, choices_of

    if path is None:
        from foresail.cli.formats import print_plugins

        print_plugins("filter", "what it does")
        return
    if output is None:
        raise InputError("nowhere to write", field="OUT", expected="a folder or FILE.swf[.gz|.zst]")
    if not filters:
        raise InputError("no filter is named", field="--with", expected="--with predictsim")
    choices = choices_of(filters)
    workload = read_log(path, log_options)
    with doing(f"cleaning {path.name}"):
        cleaned = apply_filters(workload, choices)
    if not len(cleaned):
        raise InputError("the filters leave no job", source=path)
    write(cleaned, output)
    before = len(workload.meta.filters)
    _report(cleaned.meta.filters[before:], len(workload), len(cleaned), output)


def _report(
    touched: tuple[tuple[str, int], ...], jobs_before: int, jobs_after: int, output: Path
) -> None:
    from foresail.cli.formats import print_table
    from foresail.model.words import count, number

    rows = [(name, number(jobs)) for name, jobs in touched]
    print_table(("filter", "jobs touched"), rows, right=1)
    typer.echo(f"{output}: {count(jobs_after, 'job')} left of {jobs_before:,}")
