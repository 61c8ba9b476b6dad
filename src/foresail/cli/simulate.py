"""``foresail simulate``: one log under one policy."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from foresail.cli import _moments as moments
from foresail.cli import _replaying as replaying
from foresail.cli import _scenarios as scenarios
from foresail.cli.formats import TableFormat, TableFormatOption
from foresail.cli.log_options import MappingPath, Processors, ReaderName, Strict
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
    conventions: scenarios.ConventionsName = "standard",
    enforce_limits: scenarios.EnforceLimits = False,
    reader: ReaderName = None,
    mapping: MappingPath = None,
    processors: Processors = None,
    strict: Strict = None,
    output_format: TableFormatOption = TableFormat.TABLE,
    output: replaying.Output = None,
    png: replaying.Png = False,
    events: scenarios.Events = None,
    moment: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="With --events and --output: when to show the plan. [when most jobs are planned]",
        ),
    ] = None,
    on_nodes: scenarios.OnNodes = False,
    share_nodes: scenarios.ShareNodes = False,
    cycle: scenarios.Cycle = None,
    start_delay: scenarios.StartDelay = None,
    noise: scenarios.Noise = None,
    outages: scenarios.Outages = None,
    node_changes: scenarios.NodeChanges = None,
    conditions_seed: scenarios.ConditionsSeed = None,
    learn_from: scenarios.LearnFrom = None,
    engine: scenarios.EngineName = None,
    plugins: replaying.Plugins = None,
) -> None:
    """Replay a log under one policy."""
    if moment is not None:
        moments.require_time(moment, "--moment")
        if events is None or output is None:
            raise InputError("only with --events and --output", field="--moment", value=moment)
    options = scenarios.ScenarioOptions(
        conventions=conventions,
        enforce_limits=enforce_limits,
        events=events,
        on_nodes=on_nodes,
        share_nodes=share_nodes,
        cycle=cycle,
        start_delay=start_delay,
        noise=noise,
        outages=outages,
        node_changes=node_changes,
        conditions_seed=conditions_seed,
        learn_from=learn_from,
        engine=engine,
    )
    read = partial(replaying.load, log, reader, mapping, processors, strict, filters)
    _, schedules = replaying.schedules_of(options, [policy], plugins, output, read)
    course = None if events is None else partial(moments.course_of, events, moment)
    replaying.show(schedules, output_format, output, png, course)
