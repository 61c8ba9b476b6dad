"""``foresail experiment``: published studies, one command each."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foresail.cli.formats import TableFormat, TableFormatOption, made_by
from foresail.cli.progress import doing

if TYPE_CHECKING:
    from foresail_studies.report import StudyReport
    from foresail_studies.results import StudyResults
    from foresail_studies.study import GridPoint, Study

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    help="Published studies, one command each: claims beside what comes out.",
)

Finished = Callable[["GridPoint", Mapping[str, float]], None]


@app.command("node-use")
def use_of_node(
    run: Annotated[Path, typer.Argument(help="Folder of a run with --share-nodes, or its log.")],
    node: Annotated[str, typer.Argument(help="Name of the node.")],
    output: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write it as a page, with tables.")
    ] = None,
    png: Annotated[
        bool, typer.Option("--png", help="With --output: the picture as a PNG as well.")
    ] = False,
) -> None:
    """Show what tasks used on a shared node over time, after --share-nodes with --events."""
    from foresail_studies.node_use import show_node

    show_node(run, node, output, png)


@app.command("list")
def list_studies() -> None:
    """The studies, how long each takes on two processors, and their parameters."""
    from foresail.cli.formats import print_table
    from foresail.model.registry import entries
    from foresail.model.short_form import parameter_texts
    from foresail.model.words import duration
    from foresail_studies.study import sizes_of

    rows = [
        (
            entry.name,
            *(duration(60.0 * minutes) for minutes in sizes_of(entry).MINUTES),
            entry.summary,
            " ".join(parameter_texts(entry)),
        )
        for entry in entries("study")
    ]
    print_table(("study", "--quick", "full", "", "parameters (full)"), rows)


@app.command()
def run(
    name: Annotated[str, typer.Argument(metavar="NAME", help="See foresail experiment list.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="A smaller size that takes some minutes.")
    ] = False,
    seeds: Annotated[
        int | None, typer.Option("--seeds", min=1, help="How many seeds, counted from 0.")
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="LOG", help="A real log, for studies that take one."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PARAMETER=VALUE", help="Another parameter of the study."),
    ] = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            metavar="DIR",
            help="Runs of all studies, which are not repeated, and a folder for each one's report.",
        ),
    ] = Path("studies"),
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="Processes on this machine [one per processor]."),
    ] = None,
    png: Annotated[
        bool, typer.Option("--png", help="Write the figures as PNG files too (needs Chromium).")
    ] = False,
    output_format: TableFormatOption = TableFormat.TABLE,
) -> None:
    """Run a study, or go on where it was interrupted; claims, tables and pictures in DIR."""
    from foresail.campaigns.running import in_processes
    from foresail.reports.figure import write_images
    from foresail_studies.report import report_of, write_study_report
    from foresail_studies.results import StudyResults, carry_out_study
    from foresail_studies.study import apart_from_full, study_part

    given = [*(settings or ()), *([] if seeds is None else [f"seeds={seeds}"])]
    part = study_part(name, [*given, *([] if log is None else [f'log="{log}"'])], quick=quick)
    study: Study = part.build()
    results = StudyResults(output)
    pool = partial(in_processes, workers=workers or os.cpu_count() or 1)
    with _progress(study, results, output_format) as finished:
        done = carry_out_study(study, results, pool, finished)
    command = made_by()
    folder = output / name
    with doing("writing the report"):
        report = report_of(name, part.text, study, results, command, apart_from_full(part))
        write_study_report(report, folder)
        if png:
            write_images(report.figures, folder)
    _print(report, output_format)
    typer.echo(f"{done:,} runs; report: {folder / 'report.html'}", err=True)


@contextmanager
def _progress(
    study: Study, results: StudyResults, output_format: TableFormat
) -> Iterator[Finished]:
    """Yield the callback for a finished run; who reads lines gets one for each."""
    from foresail_studies.results import key_of

    tasks = {key_of(case.task): case.task for case in study.cases}
    done = sum(results.is_finished(task) for task in tasks.values())
    lines = output_format is TableFormat.TABLE and not sys.stderr.isatty()
    with doing("runs of the study") as entered:
        entered.progressed(done, len(tasks))

        def finished(case: GridPoint, measured: Mapping[str, float]) -> None:
            nonlocal done
            done += 1
            entered.progressed(done, len(tasks))
            if lines:
                told = _told(study, case, measured)
                typer.echo(f"{done} of {len(tasks)}: {told}", err=True)

        yield finished


def _told(study: Study, case: GridPoint, measured: Mapping[str, float]) -> str:
    """A run that is done, in a line."""
    from foresail.model.words import number

    first = study.measures[0]
    where = "" if case.x is None else f" at {number(case.x)}"
    said = first.said(measured.get(first.name))
    return f"{case.group}{where}: {case.system}, seed {case.seed}: {first.label} {said}"


def _print(report: StudyReport, output_format: TableFormat) -> None:
    from foresail.cli.formats import print_table
    from foresail_studies.report import as_json, group_table

    if output_format is TableFormat.JSON:
        typer.echo(as_json(report))
        return
    if output_format is TableFormat.CSV:
        typer.echo(report.summary.write_csv(), nl=False)
        return
    for group in report.study.groups:
        headings, *rows = group_table(report, group)
        typer.echo(f"{group}:")
        print_table(headings, rows, right=len(headings) - headings.index("system") - 1)
        typer.echo()
    for each in report.judgements:
        typer.echo(f"{each.verdict}: {each.claim.published}")
        typer.echo(f"    {each.ours}")
