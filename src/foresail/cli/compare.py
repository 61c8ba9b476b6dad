"""``foresail compare``, ``simulate``, ``policies``: a log replayed under one or more policies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foresail.cli import _moments as moments
from foresail.cli._scenarios import ScenarioOptions
from foresail.cli.formats import (
    TableFormat,
    TableFormatOption,
    console,
    made_by,
    print_json,
    print_table,
)
from foresail.cli.log_options import FilterNames, LogPath, MachineOptions, Plugins, load
from foresail.cli.progress import doing, in_days
from foresail.model.errors import InputError
from foresail.model.words import duration_of

if TYPE_CHECKING:
    from foresail.kernels.beside import CompilingBeside
    from foresail.reports.plan.page import RunCourse
    from foresail.scenario.scenario import Scenario
    from foresail.traces.facts import Provenance
    from foresail.traces.schedule import Schedule
    from foresail.traces.workload import Workload

STANDARD = ("easy", "easy-sjbf", "easy++", "foresail")
"""What a log is compared under when nothing else is asked for."""

STANDARD_ON_NODES = ("priority", "point-real", "3sigma")
"""The same on nodes, where schedulers must name them."""

_HELP = (
    'A policy such as "easy(order=shortest),recent,incremental"; the first one is the baseline '
    f"[{', '.join(STANDARD)}; on nodes: {', '.join(STANDARD_ON_NODES)}]. See foresail policies."
)


@dataclass(frozen=True)
class ReportOptions:
    """Options of what is printed and written.

    Options:
        output DIR: Write report, tables, schedules.
        png: With --output: a PNG per figure.
    """

    output_format: TableFormatOption = TableFormat.TABLE
    output: Path | None = None
    png: bool = False


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
    workload, schedules = _schedules_of(options, asked, report.output, read)
    _show(schedules, report, provenance_of(workload), recorded_in=workload)


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
    workload, schedules = _schedules_of(options, [policy], report.output, read)
    events = options.events
    course = partial(moments.course_of, events, moment) if events else lambda: None
    _show(schedules, report, provenance_of(workload), course)


def policies(plugins: Plugins = None) -> None:
    """List schedulers, predictors, corrections, orders and named policies, with parameters."""
    del plugins  # they are loaded

    from foresail.control.policy import FAMILIES_OF_PARTS, named_policies
    from foresail.model.registry import entries, with_short_name
    from foresail.model.short_form import parameter_texts
    from foresail.schedulers.order_expression import FIELD_NAMES, NAMED_ORDERS

    for family in chain.from_iterable(FAMILIES_OF_PARTS.values()):
        typer.echo(f"{family.replace('_', ' ')}s")
        rows = [
            (
                f"  {with_short_name(family, entry.name)}",
                entry.summary,
                " ".join(parameter_texts(entry)),
            )
            for entry in entries(family)
        ]
        print_table(("", "", ""), rows)
        typer.echo()
    typer.echo("orders (smaller values go first)")
    print_table(("", ""), [(f"  {name}", text) for name, text in NAMED_ORDERS.items()])
    typer.echo(f"  or any expression over {', '.join(FIELD_NAMES)}\n")
    typer.echo("named policies")
    print_table(("", ""), [(f"  {name}", text) for name, text in named_policies().items()])


def _schedules_of(
    options: ScenarioOptions,
    policies: Sequence[str],
    folder: Path | None,
    read: Callable[[Callable[[Workload], str]], Workload],
) -> tuple[Workload, list[Schedule]]:
    """The log, and a schedule per policy.

    What can be refused is, the folder too, before the log is read; ``read`` is given which filter
    makes a log one that all of the policies can replay.
    """
    from foresail.scenario.running import on_partitions, run_scenario, starts_apart
    from foresail.traces.nodes import memory_left_out

    asked = options.scenarios(policies)
    if folder is not None:
        from foresail.model.whole_files import require_folder

        require_folder(folder)
    with _compiling_beside(asked) as beside:
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
    from foresail.scenario.running import task_queues_of

    by_task = all(
        task_queues_of(each.policy) is not None
        or (workload.tasks is not None and each.policy.starts_tasks)
        for each in scenarios
    )
    return "replayable_by_task" if by_task else "replayable"


@contextmanager
def _compiling_beside(scenarios: Sequence[Scenario]) -> Iterator[CompilingBeside]:
    """Compile what scenarios need beside what is done meanwhile."""
    from foresail.kernels.beside import Rehearsal, Task, compiling_beside
    from foresail.scenario.running import EVENT_ENGINE, TASK_REPLAY, engine_of
    from foresail.simulator.replay import steps_of, steps_of_parts
    from foresail.simulator.task_replay import steps_of_tasks

    rehearsals: list[Task] = []
    steps: list[Task] = []
    for each in scenarios:
        if engine_of(each) is TASK_REPLAY:
            steps += steps_of_tasks(each.policy)
            continue
        if engine_of(each) is not EVENT_ENGINE:
            steps += steps_of(each.policy)
            continue
        steps += steps_of_parts(each.policy)
        if each.policy.is_built_in:  # the other process knows no files of the user's
            rehearsals.append(
                Rehearsal("foresail.scenario.beginning:rehearse_policy", each.policy.text)
            )
    with compiling_beside([*rehearsals, *steps]) as beside:
        yield beside


def _show(
    schedules: Sequence[Schedule],
    options: ReportOptions,
    provenance: Provenance,
    course: Callable[[], RunCourse | None] = lambda: None,
    recorded_in: Workload | None = None,
) -> None:
    """Print the summaries and, with a folder, write the report and everything behind it.

    The report of a run with an event log also has its course; what the log recorded is compared
    with the schedules, where one is given.
    """
    from foresail.metrics.summary import partition_summaries, summaries
    from foresail.reports.comparison.sentences import verdict_of
    from foresail.reports.comparison.view import (
        as_csv,
        killed_words,
        never_started_words,
        partition_tables,
        terminal_tables,
    )

    recorded = None if recorded_in is None else verdict_of(recorded_in, schedules)
    verdict = "" if recorded is None else recorded["words"]
    if options.output is not None:
        _write(schedules, options.output, options.png, course, verdict, provenance)
    with doing("measuring the schedules"):
        every = summaries(schedules)
        by_partition = [partition_summaries(each) for each in schedules]
        said = schedules[0].meta.partitions_said if schedules else ""
    if options.output_format is TableFormat.JSON:
        policies = [
            each.as_json() | {"partitions": [part.as_json() for part in parts]}
            for each, parts in zip(every, by_partition, strict=True)
        ]
        told = {"policies": policies, "partitions": said or None} | provenance.as_json()
        print_json(told if recorded is None else {**told, "recorded": recorded})
    elif options.output_format is TableFormat.CSV:
        typer.echo(as_csv(every), nl=False)
    else:
        printer = console()
        tables = (*terminal_tables(every), *partition_tables([*chain(*by_partition)]))
        for part in (verdict, *tables, said, never_started_words(every), killed_words(every)):
            if part:
                printer.print(part)
    if options.output is not None:
        typer.echo(f"report: {options.output / 'report.html'}", err=True)


def _write(
    schedules: Sequence[Schedule],
    folder: Path,
    png: bool,
    course: Callable[[], RunCourse | None],
    verdict: str,
    provenance: Provenance,
) -> None:
    from foresail.model.whole_files import all_or_none
    from foresail.reports.comparison.page import write_report
    from foresail.reports.figure import write_images
    from foresail.traces.schedule import write_schedule

    command = made_by()
    with doing("writing the report"), all_or_none(folder) as drafts:
        report = write_report(
            schedules,
            drafts,
            command=command,
            course=course(),
            verdict=verdict,
            provenance=provenance,
        )
        for number, schedule in enumerate(schedules, start=1):
            write_schedule(schedule, drafts / f"schedule-{number}.parquet")
    if png:
        write_images(report.figures, folder)
