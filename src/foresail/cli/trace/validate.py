"""``foresail trace validate``: what is odd about a log, and what to do about it."""

from __future__ import annotations

import typer

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


def command(
    path: LogPath,
    reader: ReaderName = None,
    mapping: MappingPath = None,
    processors: Processors = None,
    strict: Strict = False,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Look for impossible, missing and doubtful values; with --strict any is exit status 2."""
    from foresail.cli.trace._progress import reading_progress
    from foresail.traces.reading import read
    from foresail.traces.validation import validate

    with reading_progress(path) as advance:
        options = reader_options(mapping)
        workload = read(path, reader, processors=processors, advance=advance, **options)
    report = validate(workload)
    if output_format == Format.JSON:
        import json
        from dataclasses import asdict

        typer.echo(json.dumps(asdict(report) | {"clean": report.clean}, indent=2))
    elif report.clean:
        typer.echo(f"{report.source}: {report.jobs:,} jobs, nothing odd")
    else:
        from foresail.cli.trace._tables import print_table

        typer.echo(f"{report.source}: {report.jobs:,} jobs")
        rows = [
            (
                finding.name,
                f"{finding.count:,}",
                finding.meaning,
                "" if finding.job_id is None else f"job {finding.job_id}: {finding.value}",
                finding.remedy,
            )
            for finding in report.findings
        ]
        print_table(("finding", "count", "meaning", "first", "remedy"), rows)
    if strict and not report.clean:
        raise typer.Exit(2)
