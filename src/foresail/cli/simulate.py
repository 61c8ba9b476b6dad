"""``foresail simulate``: one log under one policy."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from foresail.cli import _moments as moments
from foresail.cli import _replaying as replaying
from foresail.cli._scenarios import ScenarioOptions
from foresail.cli.formats import TableFormat, TableFormatOption
from foresail.cli.log_options import MachineOptions
from foresail.cli.option_records import with_option_records
from foresail.model.errors import InputError
from foresail.traces.durations import duration_of

app = typer.Typer(rich_markup_mode=None)


@app.command()
@with_option_records
def simulate(
    log: replaying.LogPath,
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            "--with",
            metavar="POLICY",
            help='Such as "easy(order=shortest),recent,incremental". See foresail policies.',
        ),
    ] = "easy",
    filters: replaying.FilterNames = None,
    options: ScenarioOptions = ScenarioOptions(),
    log_options: MachineOptions = MachineOptions(),
    output_format: TableFormatOption = TableFormat.TABLE,
    output: replaying.Output = None,
    png: replaying.Png = False,
    moment: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="With --events and --output: when to show the plan. [when most jobs are planned]",
        ),
    ] = None,
) -> None:
    """Replay a log under one policy."""
    from foresail.traces.provenance import provenance_of

    if moment is not None:
        duration_of(moment, "--moment")
        if options.events is None or output is None:
            raise InputError("only with --events and --output", field="--moment", value=moment)
    read = partial(replaying.load, log, log_options, filters)
    workload, schedules = replaying.schedules_of(options, [policy], output, read)
    course = None if options.events is None else partial(moments.course_of, options.events, moment)
    provenance = provenance_of(workload)
    replaying.show(schedules, output_format, output, png, course, provenance=provenance)
