"""What ``simulate`` and ``compare`` share: options, reading and cleaning, replaying, printing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from foresail.cli.progress import doing, in_days, reading
from foresail.model.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from foresail.control.conventions import Conventions
    from foresail.control.log import EventLog
    from foresail.control.policy import Policy
    from foresail.control.records import Manifest
    from foresail.model.protocols import Predictor
    from foresail.model.watching import Watch
    from foresail.reports.plan_page import RunCourse
    from foresail.simulator.surroundings import Surroundings
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
        help="Cleaning filters, in order [replayable]; see foresail trace filter.",
    ),
]
ConventionsName: TypeAlias = Annotated[
    str, typer.Option("--conventions", help="Order of things at equal times: foresail, predictsim.")
]
EnforceLimits: TypeAlias = Annotated[
    bool, typer.Option("--enforce-limits", help="End jobs at their requested time.")
]
Output: TypeAlias = Annotated[
    Path | None, typer.Option("--output", metavar="DIR", help="Write report, tables, schedules.")
]
Png: TypeAlias = Annotated[bool, typer.Option("--png", help="With --output: a PNG per figure.")]
Plugins: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option("--plugin", metavar="FILE.py", help="A file with plug-ins of your own."),
]


class TableFormat(StrEnum):
    """How summaries are printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


FormatOption: TypeAlias = Annotated[TableFormat, typer.Option("--format", help="How to print.")]


@dataclass(frozen=True)
class Question:
    """What is asked about a log: policies that can be built, and the order of things."""

    policies: Sequence[Policy]
    conventions: Conventions
    enforce_limits: bool


def question(
    policies: Sequence[str],
    conventions: str,
    enforce_limits: bool,
    plugins: Sequence[Path] | None,
    folder: Path | None,
) -> Question:
    """All that can be refused before a long log is read; makes the folder for the results."""
    from foresail.control.conventions import CONVENTIONS
    from foresail.control.policy import parse_policy
    from foresail.model.registry import load_plugin

    for plugin in plugins or []:
        load_plugin(plugin)
    if conventions not in CONVENTIONS:
        raise UnknownNameError("conventions", conventions, CONVENTIONS)
    parsed = [parse_policy(text) for text in policies]
    for policy in parsed:
        policy.build()
    if folder is not None:
        from foresail.reports.files import make_folder

        make_folder(folder)
    return Question(parsed, CONVENTIONS[conventions], enforce_limits)


def load(
    log: Path,
    reader: str | None,
    mapping: Path | None,
    processors: int | None,
    strict: bool,
    filters: Sequence[str] | None,
) -> Workload:
    """Read a log and make it replayable, or clean it as asked, and say so on standard error."""
    cleaning = filters or ["replayable"]
    return load_cleaned(log, reader, mapping, processors, strict, cleaning)


def load_cleaned(
    log: Path,
    reader: str | None,
    mapping: Path | None,
    processors: int | None,
    strict: bool,
    filters: Sequence[str],
) -> Workload:
    """Read a log and clean it, saying what was repaired and dropped on standard error."""
    from foresail.cli.trace._options import reader_options
    from foresail.model.short_form import part_of
    from foresail.traces.filtering import Choice, apply_filters
    from foresail.traces.reading import read

    choices = []
    for text in filters:
        part = part_of("filter", text)
        choices.append(Choice(part.entry.name, part.parameters))
    with reading(log) as advance:
        workload = read(
            log,
            reader,
            strict=strict,
            processors=processors,
            advance=advance,
            **reader_options(mapping),
        )
    before = len(workload.meta.filters)
    with doing(f"cleaning {log.name}"):
        workload = apply_filters(workload, choices)
    counts = [*workload.meta.repairs.items(), *workload.meta.filters[before:]]
    touched = [f"{name} {count:,}" for name, count in counts if count]
    if touched:
        typer.echo(f"cleaned: {', '.join(touched)}", err=True)
    return workload


def replay_all(workload: Workload, asked: Question) -> list[Schedule]:
    """A schedule per policy, as ``foresail.simulator.simulate`` gives it."""
    from foresail.simulator import simulate as simulator

    def simulate(policy: Policy, watch: Watch) -> Schedule:
        return simulator.simulate(
            workload,
            policy,
            asked.conventions,
            enforce_limits=asked.enforce_limits,
            watch=watch,
        )

    return _one_by_one(asked.policies, simulate)


@contextmanager
def preparing(policies: Sequence[Policy], by_events: bool) -> Iterator[Callable[[], None]]:
    """What simulations under policies need is compiled beside what is done in here.

    Yields what waits until all is compiled.
    """
    from foresail.kernels.beside import Rehearsal, Task, compiling_beside

    tasks: list[Task] = []
    if by_events:
        from foresail.simulator.replay import steps_of_parts

        function = "foresail.simulator.rehearsing:rehearse"
        tasks += [Rehearsal(function, policy.text) for policy in policies]
        tasks += [step for policy in policies for step in steps_of_parts(policy)]
    else:
        from foresail.simulator.replay import steps_of

        tasks += [step for policy in policies for step in steps_of(policy)]
    with compiling_beside(tasks) as beside:

        def wait() -> None:
            with doing("compiling in two processes, once for all later runs"):
                beside.meet()

        yield wait


def _one_by_one(
    policies: Sequence[Policy], simulate: Callable[[Policy, Watch], Schedule]
) -> list[Schedule]:
    """A schedule per policy."""
    schedules = []
    for number, policy in enumerate(policies, start=1):
        of_how_many = f"policy {number} of {len(policies)}: " if len(policies) > 1 else ""
        with doing(f"{of_how_many}{policy.label}", said=in_days) as entered:
            schedules.append(simulate(policy, entered.watch))
    return schedules


def simulate_logged(workload: Workload, asked: Question, events: Path) -> Schedule:
    """The schedule of the only policy by the event engine; its log is a file once it is whole."""
    from foresail.simulator.simulate import manifest, simulate_by_events

    (policy,) = asked.policies

    def simulate(log: EventLog, watch: Watch) -> Schedule:
        return simulate_by_events(
            workload,
            policy,
            asked.conventions,
            enforce_limits=asked.enforce_limits,
            log=log,
            watch=watch,
        )

    return _logged(simulate, manifest(workload, policy, asked.conventions), events)


def simulate_all_on_nodes(
    workload: Workload,
    asked: Question,
    surroundings: Surroundings,
    teach: Callable[[Predictor], object] | None,
) -> list[Schedule]:
    """A schedule per policy on the workload's own nodes, in the same surroundings."""
    from foresail.simulator.simulate import simulate_on_nodes

    def simulate(policy: Policy, watch: Watch) -> Schedule:
        return simulate_on_nodes(workload, policy, surroundings, teach=teach, watch=watch)

    return _one_by_one(asked.policies, simulate)


def simulate_logged_on_nodes(
    workload: Workload,
    asked: Question,
    surroundings: Surroundings,
    teach: Callable[[Predictor], object] | None,
    events: Path,
) -> Schedule:
    """The schedule of the only policy on the workload's own nodes, with its event log."""
    from foresail.simulator.simulate import manifest_on_nodes, simulate_on_nodes

    (policy,) = asked.policies

    def simulate(log: EventLog, watch: Watch) -> Schedule:
        return simulate_on_nodes(workload, policy, surroundings, teach=teach, log=log, watch=watch)

    return _logged(simulate, manifest_on_nodes(workload, policy, surroundings), events)


def _logged(
    simulate: Callable[[EventLog, Watch], Schedule], first: Manifest, events: Path
) -> Schedule:
    """A simulation whose event log becomes a file once it is whole."""
    from foresail.control.log import JsonLinesLog

    unfinished = events.with_name(f".{events.name}.{os.getpid()}.unfinished")
    try:
        with (
            doing(f"{first.policy}, event by event", said=in_days) as entered,
            JsonLinesLog(unfinished, first) as log,
        ):
            schedule = simulate(log, entered.watch)
        try:
            unfinished.replace(events)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", source=events) from error
    finally:
        unfinished.unlink(missing_ok=True)
    return schedule


def show(
    schedules: Sequence[Schedule],
    output: TableFormat,
    folder: Path | None,
    png: bool,
    course: Callable[[], RunCourse | None] | None = None,
) -> None:
    """Print the summaries and, with a folder, write the report and everything behind it.

    The report of a run with an event log also has its course.
    """
    from foresail.metrics.summary import summary
    from foresail.reports.table import as_csv, as_json, terminal_tables

    if folder is not None:
        with doing("writing the report"):
            _write(schedules, folder, png, None if course is None else course())
    with doing("measuring the schedules"):
        summaries = [summary(schedule) for schedule in schedules]
    if output is TableFormat.JSON:
        typer.echo(as_json(summaries))
    elif output is TableFormat.CSV:
        typer.echo(as_csv(summaries), nl=False)
    else:
        from rich.console import Console

        width = None if sys.stdout.isatty() else 100
        console = Console(width=width, highlight=False)
        for table in terminal_tables(summaries):
            console.print(table)
    if folder is not None:
        typer.echo(f"report: {folder / 'report.html'}", err=True)


def _write(
    schedules: Sequence[Schedule], folder: Path, png: bool, course: RunCourse | None
) -> None:
    import shlex

    from foresail.reports.images import write_images
    from foresail.reports.report import write_report
    from foresail.traces.schedule_file import write_schedule

    command = shlex.join(["foresail", *sys.argv[1:]])
    report = write_report(schedules, folder, command=command, course=course)
    for number, schedule in enumerate(schedules, start=1):
        write_schedule(schedule, folder / f"schedule-{number}.parquet")
    if png:
        write_images(report.figures, folder)
