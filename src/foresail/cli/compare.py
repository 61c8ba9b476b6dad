"""``foresail compare``: one log under several policies, the first of them the baseline."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from foresail.cli import _replaying as replaying
from foresail.cli._scenarios import ScenarioOptions
from foresail.cli.formats import TableFormat, TableFormatOption
from foresail.cli.log_options import MachineOptions
from foresail.cli.option_records import with_option_records

app = typer.Typer(rich_markup_mode=None)

STANDARD = ("easy", "easy-sjbf", "easy++", "foresail")
"""What a log is compared under when nothing else is asked for."""

STANDARD_ON_NODES = ("priority", "point-real", "3sigma")
"""The same on nodes, where schedulers must name them."""

_HELP = (
    'A policy such as "easy(order=shortest),recent,incremental"; the first one is the baseline '
    f"[{', '.join(STANDARD)}; on nodes: {', '.join(STANDARD_ON_NODES)}]. See foresail policies."
)


@app.command()
@with_option_records
def compare(
    log: replaying.LogPath,
    policies: Annotated[
        list[str] | None, typer.Option("--with", metavar="POLICY", help=_HELP)
    ] = None,
    filters: replaying.FilterNames = None,
    options: ScenarioOptions = ScenarioOptions(),
    log_options: MachineOptions = MachineOptions(),
    output_format: TableFormatOption = TableFormat.TABLE,
    output: replaying.Output = None,
    png: replaying.Png = False,
) -> None:
    """Say how waiting, slowdown and use would have been under other schedulers and predictions."""
    from foresail.traces.provenance import provenance_of

    standard = STANDARD_ON_NODES if options.on_nodes else STANDARD
    read = partial(replaying.load, log, log_options, filters)
    asked = policies or standard
    workload, schedules = replaying.schedules_of(options, asked, output, read)
    replaying.show(
        schedules,
        output_format,
        output,
        png,
        recorded_in=workload,
        provenance=provenance_of(workload),
    )
