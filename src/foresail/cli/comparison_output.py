"""Schedules of ``compare`` and ``simulate`` as they are printed and written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from foresail.cli.formats import TableFormat, TableFormatOption, console, made_by, print_json
from foresail.cli.progress import doing
from foresail.model.words import count

if TYPE_CHECKING:
    from foresail.reports.plan.page import RunCourse
    from foresail.traces.facts import Provenance
    from foresail.traces.schedule import Schedule
    from foresail.traces.workload import Workload


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


def show(
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
    from foresail.reports.comparison.view import (
        as_csv,
        killed_words,
        never_started_words,
        partition_tables,
        terminal_tables,
        verdict_of,
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
        document = {"policies": policies, "partitions": said or None} | provenance.as_json()
        print_json(document if recorded is None else {**document, "recorded": recorded})
    elif options.output_format is TableFormat.CSV:
        typer.echo(as_csv(every), nl=False)
    else:
        printer = console()
        tables = (*terminal_tables(every), *partition_tables([*chain(*by_partition)]))
        for part in (verdict, *tables, said, never_started_words(every), killed_words(every)):
            if part:
                printer.print(part)
        for each in schedules:
            if refused := int(each.meta.counters.get("refusals", 0)):
                starts = count(refused, "decision")
                printer.print(f"{starts} of {each.meta.policy} refused: no such job, or no room.")
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
