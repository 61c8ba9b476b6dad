"""A page about renting: words first, then tables and figures, and a CSV file behind each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, Generic, TypeVar

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


Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Column(Generic[Item]):
    """A column of a page's table, of its CSV file, or of both."""

    heading: str
    """Empty: in the CSV file only."""
    key: str
    """Its name in the CSV file; empty: on the page only."""
    value: Callable[[Item], Any]
    say: Callable[[Any], str] = str
    """A value in words."""


def field(heading: str, key: str, say: Callable[[Any], str] = str) -> Column[dict[str, Any]]:
    """The column of rows that are records already."""
    return Column(heading, key, itemgetter(key), say)


def numbers_table(
    name: str,
    title: str,
    items: Iterable[Item],
    columns: Sequence[Column[Item]],
    note: str = "",
    *,
    total: Sequence[str] | None = None,
) -> NumbersTable:
    """A table with a row for each item, and perhaps one of what they come to together."""
    items = list(items)
    shown = [column for column in columns if column.heading]
    rows = [[column.say(column.value(item)) for column in shown] for item in items]
    return NumbersTable(
        name,
        title,
        [column.heading for column in shown],
        rows if total is None else [*rows, total],
        pl.DataFrame(records_of(items, columns), infer_schema_length=None),
        note,
    )


def records_of(items: Iterable[Item], columns: Sequence[Column[Item]]) -> list[dict[str, Any]]:
    """A record for each item, as it is in the CSV file."""
    kept = [column for column in columns if column.key]
    return [{column.key: column.value(item) for column in kept} for item in items]


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
