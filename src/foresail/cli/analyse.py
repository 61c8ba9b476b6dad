"""``foresail analyse``: what a workload is like, in the terms of the published studies."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from foresail.cli.formats import Format, FormatOption, made_by, print_json, print_table
from foresail.cli.log_options import LogOptions, load_cleaned
from foresail.cli.progress import doing
from foresail.model.words import count, duration

if TYPE_CHECKING:
    from foresail.analysis.characteristics import Analysed


_WIDTH: Final = 100
_NAME: Final = 22
_LOG: Final = 16
_FITTING: Final = 3
_SHORT: Final = {"yes": "y", "no": "n", "unknown": "?"}


def analyse(
    logs: list[Path],
    /,
    only: list[str] | None = None,
    filters: list[str] | None = None,
    log_options: LogOptions = LogOptions(),
    output_format: FormatOption = Format.TABLE,
    output: Path | None = None,
) -> None:
    """Say what workloads are like: sizes, runtimes, rhythm, users, outcomes, predictability.

    Options:
        logs LOG...: Job logs, or workload folders.
        only NAME: One analysis; may be repeated [all].
        filters --filter NAME(PARAMETER=VALUE,...): Cleaning filters, in order [none]; see foresail
            trace filter.
        output DIR: Write report and tables.
    """
    from foresail.analysis.characteristics import analyse, chosen
    from foresail.model.whole_files import require_folder

    chosen(only or [])
    if output is not None:
        require_folder(output)
    found = []
    for path, name in zip(logs, _names(logs), strict=True):
        workload = load_cleaned(path, log_options, filters or [])
        with doing(f"analysing {name}") as entered:
            found.append(analyse(workload, name, only or [], entered.progressed))
    if output is not None:
        from foresail.reports.analysis.page import write_analysis

        with doing("writing the report"):
            write_analysis(found, output, made_by())
    if output_format is Format.JSON:
        _print_json(found)
    else:
        _print_tables(found)
    if output is not None:
        typer.echo(f"report: {output / 'report.html'}", err=True)


def _names(logs: Sequence[Path]) -> list[str]:
    """Name the logs: their files' names up to the suffixes, numbered where equal."""
    stems = []
    for path in logs:
        name = path.resolve().name
        for suffix in (".gz", ".zst", ".swf", ".csv", ".parquet", ".tsv", ".txt", ".jsonl"):
            name = name.removesuffix(suffix)
        stems.append(name or path.name)
    return [
        stem if stems.count(stem) == 1 else f"{stem} ({stems[: position + 1].count(stem)})"
        for position, stem in enumerate(stems)
    ]


def _print_json(found: Sequence[Analysed]) -> None:
    from foresail.analysis.characteristics import STUDIED, compared
    from foresail.analysis.finding import Finding

    content = {
        "logs": [
            {
                "log": log.log,
                "jobs": log.jobs,
                "span_seconds": log.span_seconds,
                "findings": {
                    each.name: {
                        "verdict": each.verdict,
                        "scalars": dict(each.scalars),
                        "notes": list(each.notes),
                    }
                    if isinstance(each, Finding)
                    else {"unavailable": each.reason}
                    for each in log.findings
                },
            }
            for log in found
        ],
        "characteristics": [
            {
                "characteristic": row.name,
                "yes_if": row.yes_if,
                "logs": {log.log: asdict(cell) for log, cell in zip(found, cells, strict=True)},
                "study": dict(zip(STUDIED, row.studied, strict=True)),
            }
            for row, cells in compared(found)
        ],
    }
    print_json(content)


def _print_tables(found: Sequence[Analysed]) -> None:
    from foresail.analysis.finding import Finding

    for log in found:
        typer.echo(f"{log.log}: {count(log.jobs, 'job')} in {duration(log.span_seconds)}")
        for each in log.findings:
            said = each.verdict if isinstance(each, Finding) else f"– {each.reason}"
            name = each.name if len(each.name) < _NAME else each.name + " "
            typer.echo(
                textwrap.fill(
                    said,
                    _WIDTH,
                    initial_indent=f"  {name:{_NAME}}",
                    subsequent_indent=" " * (_NAME + 2),
                    break_on_hyphens=False,
                )
            )
        typer.echo()
    _print_characteristics(found)


def _print_characteristics(found: Sequence[Analysed]) -> None:
    """The study's comparison; logs that do not fit side by side go below each other."""
    from foresail.analysis.characteristics import STUDIED, compared

    rows = compared(found)
    if all(cell.verdict == "unknown" for _, cells in rows for cell in cells):
        return
    initials = [platform[0] for platform in STUDIED]
    for begin in range(0, len(found), _FITTING):
        part = slice(begin, begin + _FITTING)
        print_table(
            ("", *(log.log[:_LOG] for log in found[part]), *initials),
            [
                (
                    row.name,
                    *(_cell(cell.verdict, cell.said) for cell in cells[part]),
                    *(_SHORT[said] for said in row.studied),
                )
                for row, cells in rows
            ],
        )
        typer.echo()
    platforms = ", ".join(f"{platform[0]} {platform}" for platform in STUDIED)
    typer.echo(f"The study's verdicts (y, n): {platforms}.")


def _cell(verdict: str, said: str) -> str:
    mark = "?" if verdict == "unknown" else verdict
    return mark if said == "–" else f"{mark} {said.removesuffix(', zone unknown')}"
