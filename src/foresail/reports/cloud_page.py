"""A page about renting: words first, then tables and figures, and a CSV file behind each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import polars as pl

from foresail.reports.document import as_html, behind, document, section
from foresail.reports.figure import Figure, MissingFigure
from foresail.reports.files import make_folder, write_whole


@dataclass(frozen=True)
class NumbersTable:
    """A table of a page.

    Parameters
    ----------
    name
        Stem of its CSV file.
    title
        Its heading.
    headings
        Of the columns.
    rows
        Texts, one per heading; the first of each is its name.
    table
        The numbers behind it.
    note
        What must be said with it.
    """

    name: str
    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    table: pl.DataFrame
    note: str = ""


@dataclass(frozen=True)
class CloudPage:
    """All of a page.

    Parameters
    ----------
    title
        The question it answers.
    situation
        What was asked, in a sentence.
    sentences
        What comes out, in words.
    parts
        Tables and figures in the order in which they are shown.
    notes
        How it was computed and what it rests on, a paragraph each.
    """

    title: str
    situation: str
    sentences: Sequence[str]
    parts: Sequence[NumbersTable | Figure | MissingFigure]
    notes: Sequence[str] = ()


def write_cloud_page(page: CloudPage, folder: Path, *, command: str | None = None) -> Path:
    """Write ``report.html``, and a CSV file for each of its tables and figures, into a folder.

    Parameters
    ----------
    page
        What to write.
    folder
        Made unless it is there.
    command
        The command that made it.

    Returns
    -------
    Path
        Of the page.

    Raises
    ------
    InputError
        If the folder cannot be written to.
    """
    make_folder(folder)
    for part in page.parts:
        if not isinstance(part, MissingFigure):
            write_whole(folder / f"{part.name}.csv", part.table.write_csv().encode())
    path = folder / "report.html"
    write_whole(path, as_document(page, command).encode())
    return path


def as_document(page: CloudPage, command: str | None = None) -> str:
    """The page as text."""
    body = [
        f"<header><h1>{as_html(page.title)}</h1>",
        f"<p class='situation'>{as_html(page.situation)}</p>",
        "<ul class='lead'>" + "".join(f"<li>{as_html(s)}</li>" for s in page.sentences) + "</ul>",
        "</header><main id='numbers'>",
        *(
            _table(part, command)
            if isinstance(part, NumbersTable)
            else section(part, _key(part), command)
            for part in page.parts
        ),
        "</main>",
        _footer(page.notes, command),
    ]
    figures = [part for part in page.parts if isinstance(part, Figure)]
    return document(page.title, "".join(body), figures)


def _table(part: NumbersTable, command: str | None) -> str:
    head = "".join(
        f"<th scope='col'{' class=number' if place else ''}>{as_html(heading)}</th>"
        for place, heading in enumerate(part.headings)
    )
    rows = "".join(
        f"<tr><th scope='row'>{as_html(row[0])}</th>"
        + "".join(f"<td class='number'>{as_html(text)}</td>" for text in row[1:])
        + "</tr>"
        for row in part.rows
    )
    note = f"<p class='note'>{as_html(part.note)}</p>" if part.note else ""
    return (
        f"<section id='section-{escape(part.name)}'><h2>{as_html(part.title)}</h2>"
        f"<div class='wide' tabindex='0' role='region' aria-label='{escape(part.title)}'>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        f"{note}{behind(part.name, command)}</section>"
    )


def _key(part: Figure | MissingFigure) -> str:
    """What the lines mean, by colour and dash."""
    if isinstance(part, MissingFigure) or len(part.legend) < 2:
        return ""
    entries = "".join(
        f"<li>{_swatch(_line(trace))} {trace['name']}</li>"
        for trace in part.traces
        if trace.get("showlegend")
    )
    return f"<ul class='key'>{entries}</ul>"


def _line(trace: Mapping[str, Any]) -> dict[str, str]:
    """Colour and dash of a line; of bars, their colour."""
    line: dict[str, str] = trace.get("line") or {"color": trace["marker"]["color"], "dash": "solid"}
    return line


_STROKES = {
    "dash": "8 4",
    "dot": "3 3",
    "dashdot": "9 3 3 3",
    "longdash": "14 4",
    "longdashdot": "12 3 3 3",
}


def _swatch(line: dict[str, str]) -> str:
    return (
        "<svg class='swatch' viewBox='0 0 22 12' aria-hidden='true'><line x1='0' y1='6' x2='22' "
        f"y2='6' stroke='var(--{line['color'][1:]})' stroke-width='4' "
        f"stroke-dasharray='{_STROKES.get(line['dash'], 'none')}'/></svg>"
    )


def _footer(notes: Sequence[str], command: str | None) -> str:
    made = f"<p>Made by <code>{escape(command)}</code></p>" if command else ""
    said = "".join(f"<p>{as_html(note)}</p>" for note in notes)
    return (
        f"<footer>{made}{said}<p id='keys'>Keys in a figure: + and − zoom along the axis, ← and → "
        "move, 0 shows the whole range, S saves a PNG.</p></footer>"
    )
