"""A page about renting: words first, then tables and figures, and a CSV file behind each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import polars as pl

from foresail.model.words import duration, number, percent
from foresail.reports import document as html
from foresail.reports.curve_figure import Axis, Curve, curve_figure
from foresail.reports.figure import Figure, MissingFigure, write_page
from foresail.reports.style import named_styles


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
    """Its title on the page; empty: in the CSV file only."""
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


def demand_figure(table: pl.DataFrame, unit: str, called: str) -> Figure | MissingFigure:
    """Draw what is in use over time, were there always room, and a level of nodes or cores.

    ``table`` is as of ``foresail.cloud.over_time.use_over_time``; ``unit`` says what it counts, and
    ``called`` what its level is.
    """
    title = "How much is needed, and when?"
    if table.height < 2:
        return MissingFigure(title, "The log is of less than two hours.")
    mean, highest, below = (table[name].to_numpy() for name in ("mean", "highest", "below_level"))
    level, weights = float(table["level"][0]), table["hours"].to_numpy()
    total, held = (float(np.average(each, weights=weights)) for each in (mean, below))
    finding = (
        f"{number(total)} {unit} are in use on average, {number(float(highest.max()))} in the "
        "busiest hour; "
        + (
            f"the {number(level)} {called} would do {percent(held / total)} of the work, and be in "
            f"use {percent(held / level)} of the time."
            if level
            else f"none are {called}."
        )
    )
    slot, days = duration(3600.0 * float(weights.max())), table["hour"].to_numpy() / 24.0
    figure = curve_figure(
        "demand",
        title,
        [finding],
        [Curve(named_styles(["", unit])[1], days, mean, low=mean, high=highest)],
        Axis("day of the log"),
        Axis(f"{unit} in use"),
        table=table,
        note=f"Means of {slot}, with the busiest hour of each as the band; as if every job had "
        "started when it was submitted.",
        level=(level, f"{called}: {number(level)} {unit}") if level else None,
    )
    # The level stands in front of the demand, its words legible over it.
    line = {"color": "@ink", "width": 1.6, "dash": "dash"}
    words = {"bgcolor": "@paper", "font": {"color": "@ink", "size": 12}, "yshift": 3}
    drawn: dict[str, dict[str, Any]] = {
        "shapes": {"line": line, "layer": "above"},
        "annotations": words,
    }
    layout = {key: [{**each, **drawn[key]} for each in figure.layout.get(key, ())] for key in drawn}
    return replace(figure, layout={**figure.layout, **layout})


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
        f"<header><h1>{html.as_html(page.title)}</h1>",
        f"<p class='situation'>{html.as_html(page.situation)}</p>",
        f"{html.leading(page.sentences)}</header>",
        "<main id='numbers'>",
        *(
            _table(part, command)
            if isinstance(part, NumbersTable)
            else html.section(part, html.key_of(part), command)
            for part in page.parts
        ),
        "</main>",
        html.footer(map(html.as_html, page.notes), command),
    ]
    figures = [part for part in page.parts if isinstance(part, Figure)]
    return html.document(page.title, "".join(body), figures)


def _table(part: NumbersTable, command: str | None) -> str:
    rows = [html.row([html.as_html(text) for text in texts]) for texts in part.rows]
    numbers = html.table(part.title, [html.as_html(text) for text in part.headings], rows)
    return html.numbers_section(part.name, part.title, numbers + html.note(part.note), command)
