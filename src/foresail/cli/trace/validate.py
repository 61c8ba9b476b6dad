"""``foresail trace validate``: what is odd about a log, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from foresail.cli.progress import doing, reading
from foresail.cli.trace._options import (
    Format,
    FormatOption,
    LogPath,
    MappingPath,
    Processors,
    ReaderName,
    Strict,
    reader_options,
)

if TYPE_CHECKING:
    from foresail.traces.validation import Report


def command(
    path: LogPath,
    reader: ReaderName = None,
    mapping: MappingPath = None,
    processors: Processors = None,
    strict: Strict = False,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """What is impossible, missing or doubtful, and what to do about it."""
    from foresail.traces.reading import read
    from foresail.traces.validation import validate

    with reading(path) as advance:
        options = reader_options(mapping)
        workload = read(path, reader, processors=processors, advance=advance, **options)
    with doing(f"validating {path.name}"):
        report = validate(workload)
    if output_format == Format.JSON:
        import json
        from dataclasses import asdict

        typer.echo(json.dumps(asdict(report) | {"clean": report.clean}, indent=2))
    else:
        _print_words(report)
    if strict and not report.clean:
        raise typer.Exit(2)


def _print_words(report: Report) -> None:
    from foresail.model.words import count

    found = count(len(report.findings), "finding")
    typer.echo(f"{report.source}: {count(report.jobs, 'job')}, {found}")
    for finding in report.findings:
        first = "" if finding.job_id is None else f" (first: job {finding.job_id}"
        if first:
            first += ")" if finding.value is None else f", {finding.value})"
        typer.echo(f"\n{finding.name}: {finding.count:,}{first}\n  {finding.meaning}")
        typer.echo(f"  remedy: {finding.remedy}")
