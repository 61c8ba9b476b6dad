"""The report on workloads: words, a comparison, small multiples, what lacks; and its tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final

import polars as pl

from foresail.analysis.characteristics import STUDIED, Analysed, Cell, Characteristic, compared
from foresail.analysis.finding import Finding, Unavailable
from foresail.model.words import count, duration
from foresail.reports import document as html
from foresail.reports.figure import Figure, write_page
from foresail.reports.plots import PlottedTable, drawn, log_styles, most_rows, stacked
from foresail.reports.style import PolicyStyle

MARKS: Final[Mapping[str, str]] = {"yes": "✓", "no": "✗", "unknown": "?"}

_BRIEF: Final = 120
"""A longer command is printed at the table and at the end of the page, not under every figure."""

_MADE: Final = (
    "All numbers of all analyses: <a href='scalars.csv'>scalars.csv</a>. Logarithmic axes of "
    "durations begin at 1 s: what is shorter lies on their left edge."
)


def analysis_page(
    logs: Sequence[Analysed],
    styles: Sequence[PolicyStyle],
    figures: Sequence[Figure],
    command: str | None = None,
) -> str:
    """The whole page as text, of at least one log; ``styles`` are how the logs are drawn."""
    title = _title(logs)
    brief = command if command and len(command) <= _BRIEF else None
    rows = compared(logs)
    known = any(cell.verdict != "unknown" for _, cells in rows for cell in cells)
    body = [
        f"<header><h1>{html.as_html(title)}</h1>",
        _words(sentences(logs)),
        "</header><main id='numbers'>",
        _comparison(rows, styles, command) if known else "",
        "<div class='small'>",
        *(html.section(figure, html.key_of(figure), brief) for figure in figures),
        "</div>",
        _missing(logs),
        "</main>",
        html.footer([_MADE], command),
    ]
    return html.document(title, "".join(body), figures)


def sentences(logs: Sequence[Analysed]) -> list[str]:
    """Say what the page says first: how much there is, and which of the characteristics hold."""
    lines = []
    rows = compared(logs)
    for position, log in enumerate(logs):
        size = f"{count(log.jobs, 'job')} in {duration(log.span_seconds)}"
        cells = [(row, cells[position]) for row, cells in rows]
        answered = [row for row, cell in cells if cell.verdict != "unknown"]
        holding = [
            row.name[0].lower() + row.name[1:] for row, cell in cells if cell.verdict == "yes"
        ]
        hold = "holds" if len(holding) == 1 else "hold"
        if len(logs) > 1:
            part = f"{len(holding)} of the {len(answered)} that can be decided"
            lines.append(f"{log.log}: {size}; {part} {hold}.")
        elif answered:
            lines.append(
                f"{size}. Of the ten characteristics by which the study compares four platforms, "
                f"{len(answered)} can be decided here and {len(holding)} {hold}"
                f"{': ' + '; '.join(holding) if holding else ''}."
            )
        else:
            lines.append(f"{size}.")
    if len(logs) > 1:
        lines.insert(0, "The study compares four platforms by ten characteristics.")
    return lines


def _words(lines: Sequence[str]) -> str:
    lead = f"<p class='lead'>{html.as_html(lines[0])}</p>"
    return lead if len(lines) == 1 else lead + html.leading(lines[1:])


def _title(logs: Sequence[Analysed]) -> str:
    if len(logs) == 1:
        return f"{logs[0].log}: what is the workload like?"
    return f"{count(len(logs), 'workload')} compared"


def _comparison(
    rows: Sequence[tuple[Characteristic, tuple[Cell, ...]]],
    styles: Sequence[PolicyStyle],
    command: str | None,
) -> str:
    logs = [
        (html.swatch(style.colour, style.dash) if len(styles) > 1 else "")
        + html.as_html(style.label)
        for style in styles
    ]
    headings = ["characteristic", *logs, *map(escape, STUDIED)]
    lines = [
        html.row(
            [
                f"{html.as_html(each.name)}<br><small>yes: {html.as_html(each.yes_if)}</small>",
                *map(_cell, cells),
                *((_mark(said), "unknown verdict") for said in each.studied),
            ],
            words=len(headings),
        )
        for each, cells in rows
    ]
    said = html.note(
        "Grey columns: the verdicts of the study (Park, “Distribution-based cluster scheduling”, "
        "2019, table 3.1). It gives no thresholds; the ones here separate what it says of its "
        "platforms."
    )
    verdicts = html.table("Characteristics", headings, lines, words=len(headings))
    title = "Is it like the studied platforms?"
    return html.numbers_section("characteristics", title, verdicts + said, command)


def _cell(cell: Cell) -> tuple[str, str]:
    value = f"<br><small>{html.as_html(cell.said)}</small>" if cell.value is not None else ""
    kinds = "verdict unknown" if cell.verdict == "unknown" else "verdict"
    return f"{_mark(cell.verdict)}{value}", kinds


def _mark(said: str) -> str:
    return f"<b aria-hidden='true'>{MARKS[said]}</b>{said}"


def _missing(logs: Sequence[Analysed]) -> str:
    lacking = [
        (found.title, log.log, found.reason)
        for log in logs
        for found in log.findings
        if isinstance(found, Unavailable)
    ]
    if not lacking:
        return ""
    logs_named = ["log"] if len(logs) > 1 else []
    headings = ["question", *logs_named, "what lacks"]
    rows = [
        html.row([html.as_html(text) for text in (title, log, _sentence(reason)) if text], words=3)
        for title, log, reason in sorted(
            (title, log if logs_named else "", reason) for title, log, reason in lacking
        )
    ]
    lacks = html.table("Missing", headings, rows, words=3)
    return f"<section id='missing'><h2>What could not be answered</h2>{lacks}</section>"


def _sentence(reason: str) -> str:
    begun = reason[0].upper() + reason[1:]
    return begun if begun.endswith(".") else begun + "."


_MOST_MARKS: Final = 10_000


def analysis_figures(logs: Sequence[Analysed]) -> list[Figure]:
    """A figure per plot of every finding; logs that have it are overlaid."""
    groups = _groups(logs)
    every = [part for found in groups.values() for _, part in found]
    rows = most_rows([count for part in every for count in part.lines()], _MOST_MARKS)
    longest = max(map(_longest, every), default=0.0)
    figures: list[Figure] = []
    spoken: set[str] = set()
    taken: set[str] = set()
    for found in groups.values():
        finding, parts = found[0][0], [part for _, part in found]
        first = finding.name not in spoken
        spoken.add(finding.name)
        stem = _stem(finding.name, parts[0].plot.table)
        name = stem if stem not in taken else _stem(stem, parts[0].plot.y)
        taken |= {stem, name}
        figures.append(
            drawn(
                name,
                finding.title,
                [
                    (f"{part.style.label}: " if len(logs) > 1 else "")
                    + (each.verdict if first else part.plot.alternative)
                    for each, part in found
                ],
                [parts],
                rows=rows,
                longest=longest,
                table=stacked(parts, "log"),
                note=_notes(found) if first else "",
            )
        )
    return figures


def write_analysis(logs: Sequence[Analysed], folder: Path, command: str | None = None) -> None:
    """Write ``report.html`` and the CSV files into a folder, which is made unless it is there.

    Raises ``InputError`` if the folder cannot be written to.
    """
    figures = analysis_figures(logs)
    tables = {figure.name: figure.table for figure in figures}
    for name, parts in _tables(logs).items():
        tables.setdefault(name, pl.concat(parts, how="diagonal_relaxed"))
    tables |= {"scalars": _scalars_table(logs), "characteristics": _characteristics_table(logs)}
    styles = log_styles([log.log for log in logs])
    page = analysis_page(logs, styles, figures, command)
    write_page(folder / "report.html", page, tables)


def _scalars_table(logs: Sequence[Analysed]) -> pl.DataFrame:
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


def _characteristics_table(logs: Sequence[Analysed]) -> pl.DataFrame:
    """A row per characteristic and log, the study's verdicts on its platforms among them."""
    rows: list[tuple[str, str, str, float | None, str | None]] = []
    for each, cells in compared(logs):
        rows += [
            (each.name, log.log, cell.verdict, cell.value, each.yes_if)
            for log, cell in zip(logs, cells, strict=True)
        ]
        rows += [
            (each.name, f"study: {platform}", said, None, None)
            for platform, said in zip(STUDIED, each.studied, strict=True)
        ]
    columns = {
        "characteristic": pl.String(),
        "log": pl.String(),
        "verdict": pl.String(),
        "value": pl.Float64(),
        "yes_if": pl.String(),
    }
    return pl.DataFrame(rows, columns, orient="row")


def _groups(logs: Sequence[Analysed]) -> dict[tuple[str, ...], list[tuple[Finding, PlottedTable]]]:
    """Plots that belong into one figure, in the order of the analyses."""
    found: dict[tuple[str, ...], list[tuple[Finding, PlottedTable]]] = {}
    order = [each.name for each in logs[0].findings]
    for style, log in zip(log_styles([log.log for log in logs]), logs, strict=True):
        for finding in log.findings:
            if not isinstance(finding, Finding):
                continue
            for plot in finding.plots:
                table = finding.tables[plot.table]
                if table.height:
                    key = (finding.name, plot.table, plot.y, plot.kind)
                    found.setdefault(key, []).append((finding, PlottedTable(style, plot, table)))
    return dict(sorted(found.items(), key=lambda item: order.index(item[0][0])))


def _tables(logs: Sequence[Analysed]) -> dict[str, list[pl.DataFrame]]:
    tables: dict[str, list[pl.DataFrame]] = {}
    for log in logs:
        for found in log.findings:
            for name, rows in found.tables.items() if isinstance(found, Finding) else ():
                named = rows.select(pl.lit(log.log).alias("log"), pl.all())
                tables.setdefault(_stem(found.name, name), []).append(named)
    return tables


def _notes(found: Sequence[tuple[Finding, PlottedTable]]) -> str:
    """The notes once each; those that not all logs share are said with the logs' names."""
    said: dict[str, list[str]] = {}
    for finding, part in found:
        for remark in finding.notes:
            said.setdefault(remark, []).append(part.style.label)
    by_logs: dict[tuple[str, ...], list[str]] = {}
    for remark, logs in said.items():
        by_logs.setdefault(tuple(logs) if len(logs) < len(found) else (), []).append(remark)
    return " ".join(
        f"{', '.join(logs)}: {' '.join(notes)}" if logs else " ".join(notes)
        for logs, notes in by_logs.items()
    )


def _longest(part: PlottedTable) -> float:
    if part.plot.x_kind != "duration" or not part.plot.log_x:
        return 0.0
    return float(part.table[part.plot.x].cast(pl.Float64).to_numpy().max(initial=0.0))


def _stem(*names: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", "-".join(names).lower()).strip("-")
