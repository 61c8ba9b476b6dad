"""``foresail compare``, ``simulate``: a log replayed under one or more policies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from foresail.cli import _moments as moments
from foresail.cli._scenarios import ScenarioOptions
from foresail.cli.comparison_output import ReportOptions, show
from foresail.cli.formats import require_output
from foresail.cli.log_options import FilterNames, LogPath, MachineOptions, load
from foresail.cli.progress import doing, in_days
from foresail.model.errors import InputError
from foresail.model.words import duration_of

if TYPE_CHECKING:
    from foresail.scenario.scenario import Scenario
    from foresail.traces.schedule import Schedule
    from foresail.traces.workload import Workload

STANDARD = ("easy", "easy-sjbf", "easy++", "foresail")
"""Policies that a log is compared under when no other is asked for."""

STANDARD_ON_NODES = ("priority", "point-real", "3sigma")
"""The same on nodes, where schedulers must name them."""

_HELP = (
    'A policy such as "easy(order=shortest),recent,incremental"; the first one is the baseline '
    f"[{', '.join(STANDARD)}; on nodes: {', '.join(STANDARD_ON_NODES)}]. See foresail policies."
)


def compare(
    log: LogPath,
    policies: Annotated[
        list[str] | None, typer.Option("--with", metavar="POLICY", help=_HELP)
    ] = None,
    filters: FilterNames = None,
    options: ScenarioOptions = ScenarioOptions(),
    log_options: MachineOptions = MachineOptions(),
    report: ReportOptions = ReportOptions(),
) -> None:
    """Compare waiting, slowdown and use under other schedulers and predictions."""
    from foresail.traces.facts import provenance_of

    standard = STANDARD_ON_NODES if options.on_nodes else STANDARD
    read = partial(load, log, log_options, filters)
    asked = policies or standard
    workload, schedules = _schedules_of(options, asked, report, read)
    show(schedules, report, provenance_of(workload), recorded_in=workload)


def simulate(
    log: LogPath,
    policy: str = "easy",
    filters: FilterNames = None,
    options: ScenarioOptions = ScenarioOptions(),
    log_options: MachineOptions = MachineOptions(),
    report: ReportOptions = ReportOptions(),
    moment: str | None = None,
) -> None:
    """Replay a log under one policy.

    Options:
        policy --policy --with POLICY: Such as "easy(order=shortest),recent,incremental". See
            foresail policies.
        moment TIME: With --events and --output: when to show the plan. [when most jobs are planned]
    """
    from foresail.traces.facts import provenance_of

    if moment is not None:
        duration_of(moment, "--moment")
        if options.events is None or report.output is None:
            raise InputError("only with --events and --output", field="--moment", value=moment)
    read = partial(load, log, log_options, filters)
    workload, schedules = _schedules_of(options, [policy], report, read)
    events = options.events
    course = partial(moments.course_of, events, moment) if events else lambda: None
    show(schedules, report, provenance_of(workload), course)


def _schedules_of(
    options: ScenarioOptions,
    policies: Sequence[str],
    report: ReportOptions,
    read: Callable[[Callable[[Workload], str]], Workload],
) -> tuple[Workload, list[Schedule]]:
    """The log, and a schedule per policy.

    What can be refused is, the folder too, before the log is read; ``read`` is given which filter
    makes a log one that all of the policies can replay.
    """
    from foresail.scenario.engines import compiling_for, starts_apart
    from foresail.scenario.running import on_partitions, run_scenario
    from foresail.traces.nodes import memory_left_out

    asked = options.scenarios(policies)
    require_output(report.output, png=report.png)
    with compiling_for(asked) as beside:
        workload = read(partial(_usual_filter, asked))
        if options.on_nodes and workload.partitions_said:
            raise InputError(
                "not together: partitions are as the nodes have them", field="--on-nodes"
            )
        with doing("compiling in two processes, once for all later runs") as entered:
            entered.watch(beside.measure)
            beside.meet()
    if any(each.place == "processors" for each in asked):
        if said := memory_left_out(workload):
            typer.echo(said, err=True)
        apart = any(starts_apart(each.policy) for each in asked)
        workload = on_partitions(workload, one_pool=apart)
    schedules = []
    for number, each in enumerate(asked, start=1):
        of_how_many = f"policy {number} of {len(asked)}: " if len(asked) > 1 else ""
        with doing(f"{of_how_many}{each.policy.label}", said=in_days) as entered:
            schedules.append(run_scenario(options.with_workload(workload, each), entered.watch))
    return workload, schedules


def _usual_filter(scenarios: Sequence[Scenario], workload: Workload) -> str:
    """Jobs of more tasks than there are processors are no trouble where each starts by itself.

    Queues of tasks take jobs whose tasks are not known for equal tasks that do; for any other
    scheduler they are gangs.
    """
    from foresail.scenario.engines import task_queues_of

    by_task = all(
        task_queues_of(each.policy) is not None
        or (workload.tasks is not None and each.policy.starts_tasks)
        for each in scenarios
    )
    return "replayable_by_task" if by_task else "replayable"
