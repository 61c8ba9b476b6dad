"""``foresail compare``: one log under several policies, the first of them the baseline."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from foresail.cli import _replaying as replaying
from foresail.cli import _scenarios as scenarios
from foresail.cli.formats import TableFormat, TableFormatOption
from foresail.cli.log_options import MappingPath, Processors, ReaderName, Strict

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
def compare(
    log: replaying.LogPath,
    policies: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="POLICY", help=_HELP),
    ] = None,
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
    """Say how waiting, slowdown and use would have been under other schedulers and predictions."""
    from foresail.traces.recorded import recorded_schedule

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
    standard = STANDARD_ON_NODES if on_nodes else STANDARD
    read = partial(replaying.load, log, reader, mapping, processors, strict, filters)
    asked = policies or standard
    workload, schedules = replaying.schedules_of(options, asked, plugins, output, read)
    recorded = recorded_schedule(workload, schedules[0].meta.processors)
    if recorded is not None:
        schedules.append(recorded)
    replaying.show(schedules, output_format, output, png)
