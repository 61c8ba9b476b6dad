"""``foresail trace validate``: what is odd about a log, and what to do about it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from foresail.cli.formats import Format, FormatOption, print_json
from foresail.cli.log_options import LogOptions, LogPath, read_log
from foresail.cli.progress import doing

if TYPE_CHECKING:
    from foresail.traces.validation import ValidationReport


def command(
    path: LogPath,
    log_options: LogOptions = LogOptions(),
    output_format: FormatOption = Format.TABLE,
) -> None:
    """What is impossible, missing or doubtful, and what to do about it.

    Ends with status 2 if something cannot be, as it is refused by what replays a log, or more than
    1 % of the rows are no jobs, unless lenient.
    """
    from foresail.traces.validation import validate

    workload = read_log(path, replace(log_options, strict=False))
    with doing(f"validating {path.name}"):
        report = validate(workload)
    if output_format == Format.JSON:
        from dataclasses import asdict

        print_json(asdict(report) | {"clean": report.clean})
    else:
        _print_words(report)
    strict = log_options.strict
    if (strict and not report.clean) or (strict is None and report.is_unusable):
        raise typer.Exit(2)


def _print_words(report: ValidationReport) -> None:
    from foresail.model.words import count

    found = count(len(report.findings), "finding")
    typer.echo(f"{report.source}: {count(report.jobs, 'job')}, {found}")
    for finding in report.findings:
        first = f" (first: {finding.example})" if finding.example else ""
        kind = "" if finding.severity == "minor" else f"{finding.severity}: "
        typer.echo(f"\n{kind}{finding.name}: {finding.count:,}{first}\n  {finding.sentence}")
        typer.echo(f"  remedy: {finding.remedy}")
