"""The report of analyses on disk: the page, and a CSV file behind everything that it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import polars as pl

from foresail.analysis.characteristics import STUDIED, Analysed, compared
from foresail.analysis.finding import Finding, Plot
from foresail.reports.analysis.log_style import LogStyle, log_styles
from foresail.reports.analysis.page import analysis_page
from foresail.reports.analysis.plots import LogPlot, drawn, most_rows
from foresail.reports.figure import Figure
from foresail.reports.files import write_page

_MOST_MARKS: Final = 10_000


def analysis_figures(logs: Sequence[Analysed]) -> list[Figure]:
    """A figure per plot of every finding; logs that have it are overlaid."""
    styles = log_styles([log.log for log in logs])
    groups = _groups(logs, styles)
    rows = most_rows(
        [count for parts in groups.values() for part in parts for count in part.lines()],
        _MOST_MARKS,
    )
    longest = max((_longest(part) for parts in groups.values() for part in parts), default=0.0)
    figures: list[Figure] = []
    spoken: set[str] = set()
    taken: set[str] = set()
    for parts in groups.values():
        finding, plot = parts[0].finding, parts[0].plot
        first = finding.name not in spoken
        spoken.add(finding.name)
        stem = _stem(finding.name, plot.table)
        name = stem if stem not in taken else _stem(stem, plot.y)
        taken |= {stem, name}
        figures.append(
            drawn(
                name,
                parts,
                list(_findings(parts, first, len(logs))),
                rows=rows,
                longest=longest,
                table=_stacked([(part.style.log, part.table) for part in parts]),
                note=_notes(parts) if first else "",
            )
        )
    return figures


def write_analysis(logs: Sequence[Analysed], folder: Path, command: str | None = None) -> None:
    """Write ``report.html`` and the CSV files into a folder, which is made unless it is there.

    Raises
    ------
    InputError
        If the folder cannot be written to.
    """
    figures = analysis_figures(logs)
    tables = {figure.name: figure.table for figure in figures}
    for name, parts in _tables(logs).items():
        tables.setdefault(name, _stacked(parts))
    tables |= {"scalars": scalars_table(logs), "characteristics": characteristics_table(logs)}
    styles = log_styles([log.log for log in logs])
    page = analysis_page(logs, styles, figures, command)
    write_page(folder / "report.html", page, tables)


def scalars_table(logs: Sequence[Analysed]) -> pl.DataFrame:
    """Every number of every finding: log, analysis, scalar, value."""
    rows = [
        (log.log, found.name, name, float(value))
        for log in logs
        for found in log.findings
        if isinstance(found, Finding)
        for name, value in found.scalars.items()
    ]
    columns = {
        "log": pl.String(),
        "analysis": pl.String(),
        "scalar": pl.String(),
        "value": pl.Float64(),
    }
    return pl.DataFrame(rows, columns, orient="row")


def characteristics_table(logs: Sequence[Analysed]) -> pl.DataFrame:
    """A row per characteristic and log, the study's verdicts on its platforms among them."""
    rows: list[tuple[str, str, str, float | None, str | None]] = []
    for row, cells in compared(logs):
        rows += [
            (row.name, log.log, cell.verdict, cell.value, row.yes_if)
            for log, cell in zip(logs, cells, strict=True)
        ]
        rows += [
            (row.name, f"study: {platform}", said, None, None)
            for platform, said in zip(STUDIED, row.studied, strict=True)
        ]
    columns = {
        "characteristic": pl.String(),
        "log": pl.String(),
        "verdict": pl.String(),
        "value": pl.Float64(),
        "yes_if": pl.String(),
    }
    return pl.DataFrame(rows, columns, orient="row")


def _groups(
    logs: Sequence[Analysed], styles: Sequence[LogStyle]
) -> dict[tuple[str, str, str, str], list[LogPlot]]:
    """Plots that belong into one figure, in the order of the analyses."""
    found: dict[tuple[str, str, str, str], list[LogPlot]] = {}
    order = [each.name for each in logs[0].findings]
    for style, log in zip(styles, logs, strict=True):
        for finding in log.findings:
            if not isinstance(finding, Finding):
                continue
            for plot in finding.plots:
                if finding.tables[plot.table].height:
                    key = (finding.name, plot.table, plot.y, plot.kind)
                    found.setdefault(key, []).append(LogPlot(style, finding, plot))
    return dict(sorted(found.items(), key=lambda item: order.index(item[0][0])))


def _tables(logs: Sequence[Analysed]) -> dict[str, list[tuple[str, pl.DataFrame]]]:
    tables: dict[str, list[tuple[str, pl.DataFrame]]] = {}
    for log in logs:
        for found in log.findings:
            if isinstance(found, Finding):
                for name, table in found.tables.items():
                    tables.setdefault(_stem(found.name, name), []).append((log.log, table))
    return tables


def _stacked(parts: Sequence[tuple[str, pl.DataFrame]]) -> pl.DataFrame:
    return pl.concat(
        [table.select(pl.lit(log).alias("log"), pl.all()) for log, table in parts],
        how="diagonal_relaxed",
    )


def _findings(parts: Sequence[LogPlot], first: bool, logs: int) -> Iterator[str]:
    for part in parts:
        said = part.finding.verdict if first else part.plot.alternative
        yield f"{part.style.log}: {said}" if logs > 1 else said


def _notes(parts: Sequence[LogPlot]) -> str:
    """The notes once each; those that not all logs share are said with the logs' names."""
    said: dict[str, list[str]] = {}
    for part in parts:
        for note in part.finding.notes:
            said.setdefault(note, []).append(part.style.log)
    by_logs: dict[tuple[str, ...], list[str]] = {}
    for note, logs in said.items():
        by_logs.setdefault(tuple(logs) if len(logs) < len(parts) else (), []).append(note)
    return " ".join(
        f"{', '.join(logs)}: {' '.join(notes)}" if logs else " ".join(notes)
        for logs, notes in by_logs.items()
    )


def _longest(part: LogPlot) -> float:
    plot: Plot = part.plot
    if plot.x_kind != "duration" or not plot.log_x:
        return 0.0
    return float(part.table[plot.x].cast(pl.Float64).to_numpy().max(initial=0.0))


def _stem(*names: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", "-".join(names).lower()).strip("-")
