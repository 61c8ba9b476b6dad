"""What ``simulate`` and ``compare`` share: options, reading and cleaning, replaying, printing."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from foresail.model.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from rich.progress import Progress

    from foresail.control.conventions import Conventions
    from foresail.control.policy import Policy
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


def load(
    log: Path,
    reader: str | None,
    mapping: Path | None,
    processors: int | None,
    strict: bool,
    filters: Sequence[str] | None,
) -> Workload:
    """Read a log and clean it, saying what was repaired and dropped on standard error."""
    from foresail.cli.trace._options import reader_options
    from foresail.cli.trace._progress import reading_progress
    from foresail.control.short_form import part_of
    from foresail.traces.filtering import Choice, apply_filters
    from foresail.traces.reading import read

    choices = []
    for text in filters or ["replayable"]:
        part = part_of("filter", text)
        choices.append(Choice(part.entry.name, part.parameters))
    with reading_progress(log) as advance:
        workload = read(
            log,
            reader,
            strict=strict,
            processors=processors,
            advance=advance,
            **reader_options(mapping),
        )
    before = len(workload.meta.filters)
    workload = apply_filters(workload, choices)
    counts = [*workload.meta.repairs.items(), *workload.meta.filters[before:]]
    touched = [f"{name} {count:,}" for name, count in counts if count]
    if touched:
        typer.echo(f"cleaned: {', '.join(touched)}", err=True)
    return workload


def replay_all(
    workload: Workload, policies: Sequence[str], conventions: str, enforce_limits: bool
) -> list[Schedule]:
    """A schedule per policy, with progress where somebody looks."""
    from foresail.simulator.simulate import simulate

    order = _conventions(conventions)
    parsed = [_policy(text) for text in policies]
    schedules = []
    with _spinner() as progress:
        task = progress.add_task("", total=len(parsed))
        for number, policy in enumerate(parsed, start=1):
            progress.update(task, description=f"{number} of {len(parsed)}: {policy.text}")
            schedules.append(simulate(workload, policy, order, enforce_limits=enforce_limits))
            progress.advance(task)
    return schedules


def simulate_logged(
    workload: Workload, policy: str, conventions: str, enforce_limits: bool, events: Path
) -> Schedule:
    """The schedule of one policy by the event engine, whose log becomes a file once it is whole."""
    from foresail.control.log import JsonLinesLog
    from foresail.simulator.simulate import manifest, simulate_by_events

    order = _conventions(conventions)
    parsed = _policy(policy)
    first = manifest(workload, parsed, order)
    unfinished = events.with_name(f".{events.name}.{os.getpid()}.unfinished")
    try:
        with _spinner() as progress, JsonLinesLog(unfinished, first) as log:
            progress.add_task(parsed.text)
            schedule = simulate_by_events(
                workload, parsed, order, enforce_limits=enforce_limits, log=log
            )
        try:
            unfinished.replace(events)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", source=events) from error
    finally:
        unfinished.unlink(missing_ok=True)
    return schedule


def _conventions(name: str) -> Conventions:
    from foresail.control.conventions import CONVENTIONS

    if name not in CONVENTIONS:
        raise UnknownNameError("conventions", name, CONVENTIONS)
    return CONVENTIONS[name]


def _policy(text: str) -> Policy:
    """The policy, known to be one that can be built."""
    from foresail.control.policy import parse_policy

    policy = parse_policy(text)
    policy.build()
    return policy


def _spinner() -> Progress:
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def show(
    schedules: Sequence[Schedule], output: TableFormat, folder: Path | None, png: bool
) -> None:
    """Print the summaries and, with a folder, write the report and everything behind it."""
    from foresail.metrics.summary import summary
    from foresail.reports.table import as_csv, as_json, terminal_table

    if folder is not None:
        _write(schedules, folder, png)
    summaries = [summary(schedule) for schedule in schedules]
    if output is TableFormat.JSON:
        typer.echo(as_json(summaries))
    elif output is TableFormat.CSV:
        typer.echo(as_csv(summaries), nl=False)
    else:
        from rich.console import Console

        width = None if sys.stdout.isatty() else 100
        Console(width=width, highlight=False).print(terminal_table(summaries))
    if folder is not None:
        typer.echo(f"report: {folder / 'report.html'}", err=True)


def _write(schedules: Sequence[Schedule], folder: Path, png: bool) -> None:
    import shlex

    from foresail.reports.images import write_images
    from foresail.reports.report import write_report
    from foresail.traces.schedule_file import write_schedule

    command = shlex.join(["foresail", *sys.argv[1:]])
    report = write_report(schedules, folder, command=command)
    for number, schedule in enumerate(schedules, start=1):
        write_schedule(schedule, folder / f"schedule-{number}.parquet")
    if png:
        write_images(report.figures, folder)
