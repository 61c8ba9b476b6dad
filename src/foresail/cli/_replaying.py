"""What ``simulate`` and ``compare`` share: reading and cleaning, carrying out, printing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from foresail.cli.formats import TableFormat, console, made_by, print_json
from foresail.cli.log_options import LogOptions, read_log
from foresail.cli.progress import doing, in_days
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from foresail.cli._scenarios import ScenarioOptions
    from foresail.kernels.beside import CompilingBeside
    from foresail.reports.plan.page import RunCourse
    from foresail.scenario.scenario import Scenario
    from foresail.traces.filtering import FilterChoice
    from foresail.traces.provenance import Provenance
    from foresail.traces.schedule import Schedule
    from foresail.traces.workload import Workload

LogPath: TypeAlias = Annotated[
    Path, typer.Argument(metavar="LOG", help="A job log, or a workload folder.")
]
FilterNames: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        metavar="NAME(PARAMETER=VALUE,...)",
        help="Cleaning filters, in order [replayable, or replayable_by_task where all policies "
        "start tasks apart]; see foresail trace filter.",
    ),
]
Output: TypeAlias = Annotated[
    Path | None, typer.Option("--output", metavar="DIR", help="Write report, tables, schedules.")
]
Png: TypeAlias = Annotated[bool, typer.Option("--png", help="With --output: a PNG per figure.")]


def load(
    log: Path,
    log_options: LogOptions,
    filters: Sequence[str] | None,
    usual: Callable[[Workload], str] = lambda _: "replayable",
) -> Workload:
    """Read a log and clean it as asked, else by its ``usual`` filter; standard error says so.

    What is odd about what is left is said as well, and what cannot be is refused.
    """
    from foresail.traces.filtering import choices_of

    if filters:
        return load_cleaned(log, log_options, filters)
    workload = log_options.on_machine(read_log(log, log_options))
    return _cleaned(log, workload, choices_of([usual(workload)]), strict=log_options.strict)


def load_cleaned(log: Path, log_options: LogOptions, filters: Sequence[str]) -> Workload:
    """Read a log and clean it, saying what was repaired and dropped on standard error."""
    from foresail.traces.filtering import choices_of

    choices = choices_of(filters)
    workload = log_options.on_machine(read_log(log, log_options))
    return _cleaned(log, workload, choices, strict=log_options.strict)


def _cleaned(
    log: Path, workload: Workload, choices: Sequence[FilterChoice], *, strict: bool | None
) -> Workload:
    from foresail.traces.plausibility import clean_and_check

    before = len(workload.meta.filters)
    with doing(f"cleaning {log.name}"):
        workload = clean_and_check(workload, choices, strict)
    counts = [*workload.meta.repairs.items(), *workload.meta.filters[before:]]
    touched = [f"{name} {count:,}" for name, count in counts if count]
    if touched:
        typer.echo(f"cleaned: {', '.join(touched)}", err=True)
    for each in workload.meta.lost:
        typer.echo(each.words, err=True)
    for found in workload.findings:
        typer.echo(f"odd: {found.words}", err=True)
    return workload


def schedules_of(
    options: ScenarioOptions,
    policies: Sequence[str],
    folder: Path | None,
    read: Callable[[Callable[[Workload], str]], Workload],
) -> tuple[Workload, list[Schedule]]:
    """The log, and a schedule per policy.

    What can be refused is, the folder too, before the log is read; ``read`` is told which filter
    makes a log one that all of the policies can replay.
    """
    from foresail.scenario.engines import task_queues_of
    from foresail.scenario.running import run_scenario
    from foresail.traces.binding import memory_left_out
    from foresail.traces.partitions import divided, in_one_pool, named_partitions

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
        in_parts = any(each.policy.starts_tasks or task_queues_of(each.policy) for each in asked)
        because = "policies that start tasks apart know none"
        if in_parts and workload.partitions:
            raise InputError(because, field="--partitions")
        if in_parts and named_partitions(workload):
            workload = in_one_pool(workload, because)
        workload = divided(workload)
    schedules = []
    for number, each in enumerate(asked, start=1):
        of_how_many = f"policy {number} of {len(asked)}: " if len(asked) > 1 else ""
        with doing(f"{of_how_many}{each.policy.label}", said=in_days) as entered:
            schedules.append(run_scenario(options.of(workload, each), entered.watch))
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


@contextmanager
def _compiling_beside(scenarios: Sequence[Scenario]) -> Iterator[CompilingBeside]:
    """What scenarios need is compiled beside what is done in here."""
    from foresail.kernels.beside import Rehearsal, Task, compiling_beside
    from foresail.scenario.engines import EVENT_ENGINE, TASK_REPLAY, engine_of
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
            rehearsals.append(Rehearsal("foresail.simulator.rehearsing:rehearse", each.policy.text))
    with compiling_beside([*rehearsals, *steps]) as beside:
        yield beside


def show(
    schedules: Sequence[Schedule],
    output: TableFormat,
    folder: Path | None,
    png: bool,
    course: Callable[[], RunCourse | None] | None = None,
    recorded_in: Workload | None = None,
    *,
    provenance: Provenance,
) -> None:
    """Print the summaries and, with a folder, write the report and everything behind it.

    The report of a run with an event log also has its course; what the log recorded is compared
    with the schedules, where one is given.
    """
    from foresail.metrics.partitions import partition_summaries
    from foresail.metrics.summary import summaries
    from foresail.reports.comparison.recorded_words import verdict_of
    from foresail.reports.comparison.table import (
        as_csv,
        killed_words,
        never_started_words,
        partition_tables,
        terminal_tables,
    )

    recorded = None if recorded_in is None else verdict_of(recorded_in, schedules)
    verdict = "" if recorded is None else recorded["words"]
    if folder is not None:
        with doing("writing the report"):
            _write(
                schedules, folder, png, None if course is None else course(), verdict, provenance
            )
    with doing("measuring the schedules"):
        every = summaries(schedules)
        by_partition = [partition_summaries(each) for each in schedules]
        said = schedules[0].meta.partitions_said if schedules else ""
    if output is TableFormat.JSON:
        policies = [
            each.as_json() | {"partitions": [part.as_json() for part in parts]}
            for each, parts in zip(every, by_partition, strict=True)
        ]
        told = {"policies": policies, "partitions": said or None} | provenance.as_json()
        print_json(told if recorded is None else {**told, "recorded": recorded})
    elif output is TableFormat.CSV:
        typer.echo(as_csv(every), nl=False)
    else:
        printer = console()
        tables = (*terminal_tables(every), *partition_tables([*chain(*by_partition)]))
        for part in (verdict, *tables, said, never_started_words(every), killed_words(every)):
            if part:
                printer.print(part)
    if folder is not None:
        typer.echo(f"report: {folder / 'report.html'}", err=True)


def _write(
    schedules: Sequence[Schedule],
    folder: Path,
    png: bool,
    course: RunCourse | None,
    verdict: str,
    provenance: Provenance,
) -> None:
    from foresail.model.whole_files import all_or_none
    from foresail.reports.comparison.report import write_report
    from foresail.reports.images import write_images
    from foresail.traces.schedule_file import write_schedule

    command = made_by()
    with all_or_none(folder) as drafts:
        report = write_report(
            schedules,
            drafts,
            command=command,
            course=course,
            verdict=verdict,
            provenance=provenance,
        )
        for number, schedule in enumerate(schedules, start=1):
            write_schedule(schedule, drafts / f"schedule-{number}.parquet")
    if png:
        write_images(report.figures, folder)
