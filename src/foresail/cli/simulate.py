"""``foresail simulate``: one log under one policy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from foresail.cli import _replaying as replaying
from foresail.cli.trace._options import MappingPath, Processors, ReaderName, Strict
from foresail.model.errors import InputError

app = typer.Typer(rich_markup_mode=None)


@app.command()
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
    conventions: replaying.ConventionsName = "foresail",
    enforce_limits: replaying.EnforceLimits = False,
    reader: ReaderName = None,
    mapping: MappingPath = None,
    processors: Processors = None,
    strict: Strict = False,
    output_format: replaying.FormatOption = replaying.TableFormat.TABLE,
    output: replaying.Output = None,
    png: replaying.Png = False,
    events: Annotated[
        Path | None,
        typer.Option(
            "--events",
            metavar="FILE",
            help="Simulate event by event and write the event log, for foresail story.",
        ),
    ] = None,
    on_nodes: Annotated[
        bool,
        typer.Option("--on-nodes", help="Place tasks on the workload's own nodes, event by event."),
    ] = False,
    cycle: Annotated[
        float | None,
        typer.Option(
            "--cycle",
            metavar="SECONDS",
            help="With --on-nodes: ask the scheduler once in so many seconds.",
        ),
    ] = None,
    plugins: replaying.Plugins = None,
) -> None:
    """Replay a log under one policy."""
    if on_nodes and (conventions != "foresail" or enforce_limits):
        raise InputError(
            "not with other conventions or limits", field="--on-nodes", expected="the defaults"
        )
    if cycle is not None and not on_nodes:
        raise InputError("only with --on-nodes", field="--cycle", value=cycle)
    asked = replaying.question([policy], conventions, enforce_limits, plugins, output)
    workload = replaying.load(log, reader, mapping, processors, strict, filters)
    if on_nodes:
        schedules = [replaying.simulate_nodes(workload, asked, cycle, events)]
    elif events is None:
        schedules = replaying.replay_all(workload, asked)
    else:
        schedules = [replaying.simulate_logged(workload, asked, events)]
    replaying.show(schedules, output_format, output, png)
