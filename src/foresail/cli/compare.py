"""``foresail compare``: one log under several policies, the first of them the baseline."""

from __future__ import annotations

from typing import Annotated

import typer

from foresail.cli import _nodes as nodes
from foresail.cli import _replaying as replaying
from foresail.cli.trace._options import MappingPath, Processors, ReaderName, Strict

app = typer.Typer(rich_markup_mode=None)

STANDARD = ("easy", "easy-sjbf", "easy++", "foresail")
"""What a log is compared under when nothing else is asked for."""

STANDARD_ON_NODES = ("prio", "point-real", "3sigma")
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
    conventions: replaying.ConventionsName = "foresail",
    enforce_limits: replaying.EnforceLimits = False,
    reader: ReaderName = None,
    mapping: MappingPath = None,
    processors: Processors = None,
    strict: Strict = False,
    output_format: replaying.FormatOption = replaying.TableFormat.TABLE,
    output: replaying.Output = None,
    png: replaying.Png = False,
    on_nodes: nodes.OnNodes = False,
    cycle: nodes.Cycle = None,
    start_delay: nodes.StartDelay = None,
    noise: nodes.Noise = None,
    outages: nodes.Outages = None,
    surroundings_seed: nodes.SurroundingsSeed = None,
    learn_from: nodes.LearnFrom = None,
    plugins: replaying.Plugins = None,
) -> None:
    """Say how waiting, slowdown and use would have been under other schedulers and predictions."""
    choices = nodes.Choices(cycle, start_delay, noise, outages, surroundings_seed, learn_from)
    nodes.require_fitting(choices, on_nodes, conventions, enforce_limits)
    standard = STANDARD_ON_NODES if on_nodes else STANDARD
    asked = replaying.question(policies or standard, conventions, enforce_limits, plugins, output)
    with replaying.preparing(asked.policies, on_nodes) as prepared:
        workload = replaying.load(log, reader, mapping, processors, strict, filters)
        prepared()
    if on_nodes:
        around = nodes.surroundings_of(choices, workload)
        schedules = replaying.simulate_all_on_nodes(
            workload, asked, around, nodes.teacher_of(choices)
        )
    else:
        schedules = replaying.replay_all(workload, asked)
    replaying.show(schedules, output_format, output, png)
