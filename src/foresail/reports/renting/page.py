"""A page about renting: words first, then tables and figures, and a CSV file behind each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from foresail.reports.document import (
    as_html,
    document,
    footer,
    key_of,
    leading,
    note,
    numbers_section,
    row,
    section,
    table,
)
from foresail.reports.figure import Figure, MissingFigure, write_page


@dataclass(frozen=True)
class NumbersTable:
    """A table of a page, and the numbers behind it in a CSV file of this name.

    Rows are texts, one per heading; the first of each is its name. The note is what must be said
    with it.
    """

    name: str
    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    table: pl.DataFrame
    note: str = ""


@dataclass(frozen=True)
class CloudPage:
    """All of a page: the question it answers, what was asked (in a sentence), and what comes out.

    Tables and figures are in the order in which they are shown; the notes say how it was computed
    and what it rests on, a paragraph each.
    """

    title: str
    situation: str
    sentences: Sequence[str]
    parts: Sequence[NumbersTable | Figure | MissingFigure]
    notes: Sequence[str] = ()


def write_cloud_page(page: CloudPage, folder: Path, *, command: str | None = None) -> Path:
    """Write ``report.html``, whose path is given, and a CSV file for each table and figure.

    Raises ``InputError`` if the folder, which is made unless it is there, cannot be written to.
    """
    tables = {part.name: part.table for part in page.parts if not isinstance(part, MissingFigure)}
    path = folder / "report.html"
    write_page(path, as_document(page, command), tables)
    return path


def as_document(page: CloudPage, command: str | None = None) -> str:
    """The page as text."""
    body = [
        f"<header><h1>{as_html(page.title)}</h1>",
        f"<p class='situation'>{as_html(page.situation)}</p>{leading(page.sentences)}</header>",
        "<main id='numbers'>",
        *(
            _table(part, command)
            if isinstance(part, NumbersTable)
            else section(part, key_of(part), command)
            for part in page.parts
        ),
        "</main>",
        footer(map(as_html, page.notes), command),
    ]
    figures = [part for part in page.parts if isinstance(part, Figure)]
    return document(page.title, "".join(body), figures)


def _table(part: NumbersTable, command: str | None) -> str:
    rows = [row([as_html(text) for text in texts]) for texts in part.rows]
    numbers = table(part.title, [as_html(text) for text in part.headings], rows)
    return numbers_section(part.name, part.title, numbers + note(part.note), command)
