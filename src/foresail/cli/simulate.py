"""``foresail simulate``: one log under one policy."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from foresail.cli import _moments as moments
from foresail.cli import _nodes as nodes
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
            help="Simulate event by event and write the event log, for foresail explain.",
        ),
    ] = None,
    moment: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="With --events and --output: when to show the plan. [when most jobs are planned]",
        ),
    ] = None,
    on_nodes: nodes.OnNodes = False,
    cycle: nodes.Cycle = None,
    start_delay: nodes.StartDelay = None,
    noise: nodes.Noise = None,
    outages: nodes.Outages = None,
    surroundings_seed: nodes.SurroundingsSeed = None,
    learn_from: nodes.LearnFrom = None,
    plugins: replaying.Plugins = None,
) -> None:
    """Replay a log under one policy."""
    choices = nodes.Choices(cycle, start_delay, noise, outages, surroundings_seed, learn_from)
    nodes.require_fitting(choices, on_nodes, conventions, enforce_limits)
    if moment is not None:
        moments.require_time(moment, "--moment")
        if events is None or output is None:
            raise InputError("only with --events and --output", field="--moment", value=moment)
    asked = replaying.question([policy], conventions, enforce_limits, plugins, output)
    with replaying.preparing(asked.policies, on_nodes or events is not None) as prepared:
        workload = replaying.load(log, reader, mapping, processors, strict, filters)
        prepared()
    if on_nodes and events is None:
        around = nodes.surroundings_of(choices, workload)
        schedules = replaying.simulate_all_on_nodes(
            workload, asked, around, nodes.teacher_of(choices)
        )
    elif on_nodes and events is not None:
        around = nodes.surroundings_of(choices, workload)
        teach = nodes.teacher_of(choices)
        schedules = [replaying.simulate_logged_on_nodes(workload, asked, around, teach, events)]
    elif events is None:
        schedules = replaying.replay_all(workload, asked)
    else:
        schedules = [replaying.simulate_logged(workload, asked, events)]
    course = None if events is None else partial(moments.course_of, events, moment)
    replaying.show(schedules, output_format, output, png, course)
