"""Parts of every HTML page: the document, sections, tables, keys, names, the footer."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape, unescape
from importlib import resources
from typing import Any, Final, Generic, TypeAlias, TypeVar

from rich.table import Table
from rich.text import Text

from foresail.model.words import count, folded
from foresail.reports.figure import Figure, MissingFigure
from foresail.reports.style import DARK, LIGHT, PolicyStyle

Compared = TypeVar("Compared")


@dataclass(frozen=True, slots=True)
class RankedColumn(Generic[Compared]):
    """A number: how it is headed, read and said, and whether less (-1) or more (1) is better."""

    heading: str
    value: Callable[[Compared], float]
    say: Callable[[float], str]
    better: int = 0


@dataclass(frozen=True)
class RankedTable(Generic[Compared]):
    """A row for each of what is compared; printed on terminals and written on pages.

    The best of a column is chosen as it is printed: values that read the same are all best, and
    none is where all are.
    """

    heading: str
    """Heading of the column of names."""
    names: Sequence[str]
    compared: Sequence[Compared]
    columns: Sequence[RankedColumn[Compared]]

    @property
    def headings(self) -> list[str]:
        """The heading of each column of numbers, on one line."""
        return [column.heading.replace("\n", " ") for column in self.columns]

    def rows(self) -> list[list[tuple[str, bool]]]:
        """For each its cells as (text, whether it is the best of its column)."""
        values = [[float(column.value(each)) for column in self.columns] for each in self.compared]
        best = [
            _best([row[at] for row in values], column) for at, column in enumerate(self.columns)
        ]
        said = [
            [column.say(value) for column, value in zip(self.columns, row, strict=True)]
            for row in values
        ]
        return [[(text, text == top) for text, top in zip(row, best, strict=True)] for row in said]

    def for_terminal(self, width: int, caption: str, title: str | None = None) -> Table:
        """Lay it out for a terminal, names this wide; ``*`` marks the best of each column."""
        table = Table(
            box=None,
            pad_edge=False,
            padding=(0, 2, 0, 0),
            title=title,
            title_justify="left",
            title_style="bold",
            caption=caption,
            caption_justify="left",
            caption_style="dim",
        )
        table.add_column(self.heading, vertical="bottom", max_width=width)
        for column in self.columns:
            table.add_column(column.heading, justify="right", no_wrap=True, vertical="bottom")
        for name, row in zip(self.names, self.rows(), strict=True):
            cells = [
                Text(text + ("*" if best else " "), style="bold" if best else "")
                for text, best in row
            ]
            table.add_row(Text("\n".join(folded(name, width))), *cells)
        return table


def _best(values: Sequence[float], column: RankedColumn[Compared]) -> str | None:
    known = [value for value in values if math.isfinite(value)]
    if not column.better or len({column.say(value) for value in known}) < 2:
        return None
    return column.say(max(known, key=lambda value: column.better * value))


_UNIT: Final = re.compile(r"(\d) (s|min|h|d|%)(?![a-z])")

_SECOND_UNIT: Final = re.compile(r"(\u00a0[hd]) (?=\d+\u00a0(?:min|h)\b)")

_SECURITY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:"
)
"""The browser itself refuses any request that this page might make."""


def document(title: str, body: str, figures: Sequence[Figure]) -> str:
    """The whole page as text.

    The title is plain text. The body is HTML: it has the sections of these figures, and the element
    that the skip link leads to has the id ``numbers``.
    """
    from plotly.offline import get_plotlyjs

    specifications = {
        figure.name: {
            "data": list(figure.traces),
            "layout": figure.layout,
            "image": figure.image_layout,
        }
        for figure in figures
    }
    asset = resources.files("foresail.reports")
    return "".join(
        [
            "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>",
            f"<meta http-equiv='Content-Security-Policy' content=\"{_SECURITY}\">",
            "<meta name='viewport' content='width=device-width, initial-scale=1'>",
            "<meta name='color-scheme' content='light dark'>",
            f"<title>{as_html(title)}</title>",
            f"<style>{_variables()}{asset.joinpath('page.css').read_text('utf-8')}</style>",
            "</head><body><a class='skip' href='#numbers'>Skip to the numbers and figures</a>",
            body,
            _data("figures", specifications),
            _data("themes", {"light": LIGHT, "dark": DARK}),
            _data("details", {figure.name: figure.detail for figure in figures if figure.detail}),
            f"<script type='text/plain' id='plotly'>{get_plotlyjs()}</script>",
            f"<script>{asset.joinpath('zoom.js').read_text('utf-8')}</script>",
            f"<script>{asset.joinpath('page.js').read_text('utf-8')}</script>",
            "</body></html>\n",
        ]
    )


def as_html(text: str) -> str:
    """Text for the page; a number keeps together with its unit, a duration with both of its."""
    kept = _UNIT.sub("\\1\u00a0\\2", escape(text))
    return _SECOND_UNIT.sub("\\1\u00a0", kept)


def section(part: Figure | MissingFigure, key: str, command: str | None = None) -> str:
    """A figure with its heading, findings, buttons and numbers; or what is missing, in words.

    ``key`` is HTML that distinguishes the lines.
    """
    if isinstance(part, MissingFigure):
        return missing(part.title, part.problem, part.remedy)
    name = escape(part.name)
    zoomed = f"<span class='note' role='status' id='{name}-bins'></span>" if part.detail else ""
    return (
        f"<section class='figure' id='section-{name}'><h2>{as_html(part.title)}</h2>"
        f"<figure>{_findings(part)}{key}"
        f"<div class='plot' id='{name}' tabindex='0' role='img' data-figure='{name}' "
        f"aria-labelledby='{name}-finding' aria-describedby='keys' "
        f"style='height:{part.layout['height']}px'>"
        "<p class='loading'>Drawing …</p></div>"
        f"<div class='tools'><button type='button' data-save='{name}'>Save as PNG</button>"
        f"<button type='button' data-reset='{name}'>Whole range</button>{zoomed}</div>"
        f"<figcaption>{as_html(part.note)}</figcaption></figure>"
        f"{behind(part.name, command)}</section>"
    )


def missing(title: str, problem: str, remedy: str = "") -> str:
    """A section that says what lacks, and what to do."""
    return (
        f"<section class='missing'><h2>{as_html(title)}</h2>"
        f"<p><strong>{as_html(problem)}</strong> {as_html(remedy)}</p></section>"
    )


def behind(name: str, command: str | None = None) -> str:
    """Say where the numbers are, and the command that made them."""
    made = f" Made by <code>{escape(command)}</code>" if command else ""
    return (
        f"<p class='behind'>Numbers behind it: <a href='{escape(name)}.csv'>{escape(name)}.csv</a>"
        f" beside this page.{made}</p>"
    )


def _findings(figure: Figure) -> str:
    name = f"{escape(figure.name)}-finding"
    if len(figure.findings) == 1:
        return f"<p class='finding' id='{name}'>{as_html(figure.findings[0])}</p>"
    items = "".join(f"<li>{as_html(finding)}</li>" for finding in figure.findings)
    return f"<ul class='finding' id='{name}'>{items}</ul>"


def _data(name: str, value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = text.replace("</", "<\\/").replace("<!--", "<\\u0021--")
    return f"<script type='application/json' id='{name}'>{text}</script>"


def _variables() -> str:
    def block(theme: Any) -> str:
        return "".join(f"--{role}:{colour};" for role, colour in theme.items())

    return (
        f":root{{color-scheme:light dark;{block(LIGHT)}}}"
        f"@media (prefers-color-scheme: dark){{:root{{{block(DARK)}}}}}"
    )


Cell: TypeAlias = str | tuple[str, str]
"""The HTML in a cell, and its classes if it has more than those of its column."""

Item = TypeVar("Item")

_STROKES: Final = {
    "dash": "8 4",
    "dot": "3 3",
    "dashdot": "9 3 3 3",
    "longdash": "14 4",
    "longdashdot": "12 3 3 3",
}
_SHAPES: Final = {
    "circle": "<circle r='5'/>",
    "diamond": "<path d='M0-6L6 0 0 6-6 0Z'/>",
    "square": "<rect x='-5' y='-5' width='10' height='10'/>",
    "triangle-up": "<path d='M0-5L6 5H-6Z'/>",
    "cross": "<path d='M-6-2H-2V-6H2V-2H6V2H2V6H-2V2H-6Z'/>",
    "x": "<path d='M-5-5L5 5M5-5L-5 5' stroke='{colour}' stroke-width='3'/>",
    "square-open": "<path d='M-7-5H7V5H-7Z' fill='none' stroke='{colour}' stroke-width='1.6'/>",
    "line-ns-open": "<path d='M0-6V6' stroke='{colour}' stroke-width='2'/>",
}


def table(
    label: str, headings: Sequence[Cell], rows: Iterable[str], words: int = 1, caption: str = ""
) -> str:
    """A table that scrolls by itself where the page is narrow.

    ``label`` (what it is, for those who do not see it) and ``caption`` (said above it) are plain
    text. The first ``words`` columns are words, the others numbers; ``row`` makes the rows.
    """
    head = "".join(_cell(each, "th", "col", at >= words) for at, each in enumerate(headings))
    above = f"<caption>{as_html(caption)}</caption>" if caption else ""
    return (
        f"<div class='wide' tabindex='0' role='region' aria-label='{escape(label)}'><table>{above}"
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def in_columns(
    items: Iterable[Item], *columns: tuple[str, Callable[[Item], str]]
) -> tuple[list[str], list[list[str]]]:
    """Headings, and texts of a row for each item: of columns, each a heading and its text."""
    headings = [heading for heading, _ in columns]
    return headings, [[ranked_table(item) for _, ranked_table in columns] for item in items]


def row(cells: Sequence[Cell], words: int = 1, kind: str = "") -> str:
    """A row of a table: its first cell names it, and so many at the left are words."""
    first = _cell(cells[0], "th", "row", is_number=False)
    others = "".join(_cell(each, "td", "", at >= words) for at, each in enumerate(cells[1:], 1))
    return f"<tr{_attribute('class', kind)}>{first}{others}</tr>"


def _cell(cell: Cell, tag: str, scope: str, is_number: bool) -> str:
    html, kinds = (cell, "") if isinstance(cell, str) else cell
    classes = " ".join(filter(None, ("number" if is_number else "", kinds)))
    return f"<{tag}{_attribute('scope', scope)}{_attribute('class', classes)}>{html}</{tag}>"


def _attribute(name: str, value: str) -> str:
    return f" {name}='{value}'" if value else ""


def ranked(label: str, ranked_table: RankedTable[Any], names: Iterable[str]) -> str:
    """A table of what is compared, named in HTML; the best of each column is marked."""
    rows = [
        row([name, *(_starred(text) if best else as_html(text) for text, best in cells)])
        for name, cells in zip(names, ranked_table.rows(), strict=True)
    ]
    return table(label, [ranked_table.heading, *map(as_html, ranked_table.headings)], rows)


def _starred(text: str) -> Cell:
    return f"{as_html(text)}<span class=mark title=best> ★</span>", "best"


def user_name(user: str | None) -> str:
    """A user as a table names them, also where the log does not."""
    return "–" if user is None else as_html(str(user))


def policy_name(style: PolicyStyle) -> str:
    """A policy as it is called, with its line, and in full where that is cut."""
    full = (
        f" <code class='full'>{escape(style.policy)}</code>" if style.label != style.policy else ""
    )
    line = swatch(style.colour, style.dash)
    return f"<span class='policy'>{line}{as_html(style.label)}</span>{full}"


def swatch(colour: str, dash: str = "solid", opacity: float = 1.0) -> str:
    """A piece of a line, of a colour ``@role``."""
    faint = "" if opacity == 1.0 else f" stroke-opacity='{opacity}'"
    return _drawing(
        f"<line x1='0' y1='6' x2='22' y2='6' stroke='var(--{colour[1:]})' stroke-width='4'{faint} "
        f"stroke-dasharray='{_STROKES.get(dash, 'none')}'/>"
    )


def _swatch_of(trace: Mapping[str, Any]) -> str:
    """A piece of what a trace draws: of a line, of a bar, or one of its marks."""
    if "line" in trace or trace.get("type") == "bar":
        return swatch(*_stroke(trace))
    marker = trace["marker"]
    colour = f"var(--{marker['color'][1:]})"
    shape = _SHAPES[marker.get("symbol", "circle")].format(colour=colour)
    return _drawing(f"<g fill='{colour}' transform='translate(11 6)'>{shape}</g>")


def _drawing(marks: str) -> str:
    return f"<svg class='swatch' viewBox='0 0 22 12' aria-hidden='true'>{marks}</svg>"


def key(entries: Iterable[str]) -> str:
    """Say what colours, dashes and shapes mean, an entry each; nothing if there is none."""
    items = "".join(f"<li>{entry}</li>" for entry in entries)
    return f"<ul class='key' aria-label='Key'>{items}</ul>" if items else ""


def key_of(part: Figure | MissingFigure, styles: Sequence[PolicyStyle] = ()) -> str:
    """The key of all that a figure draws and does not name itself, if that is more than one.

    Of several series of several, each by itself: colours and dashes. Names that are cut in drawings
    are said in full where their styles are given.
    """
    if isinstance(part, MissingFigure) or len(part.legend) < 2:
        return ""
    shown = [trace for trace in part.traces if trace.get("showlegend")]
    whose, series = _first_by("legendgroup", shown), _first_by("meta", shown)
    if len(whose) > 1 and len(series) > 1:
        colours = {name: swatch(_stroke(trace)[0]) for name, trace in whose.items()}
        dashes = {name: swatch("@ink", *_stroke(trace)[1:]) for name, trace in series.items()}
        return key(f"{mark}{_said(name)}" for name, mark in [*colours.items(), *dashes.items()])
    full = {style.drawn: style for style in styles if style.is_cut}
    return key(
        f"{_swatch_of(trace)} {_full(full[name]) if name in full else _said(name)}"
        for name, trace in ((each["name"], each) for each in shown)
    )


def _said(drawn: str) -> str:
    """A name from a drawing, for the page."""
    return as_html(unescape(drawn))


def _full(style: PolicyStyle) -> str:
    """A name without a cut, behind the letter that it goes by if it has one."""
    letter, _, _ = style.label.partition(": ")
    policy = escape(style.policy).replace(",", ",<wbr>")
    return f"<span title='{escape(style.policy)}'>{as_html(letter)}: <code>{policy}</code></span>"


def _first_by(field: str, traces: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The first trace of each value of a field, those without one left out."""
    found: dict[str, Mapping[str, Any]] = {}
    for trace in traces:
        if trace.get(field):
            found.setdefault(trace[field], trace)
    return found


def _stroke(trace: Mapping[str, Any]) -> tuple[str, str, float]:
    if "line" in trace:
        return trace["line"]["color"], trace["line"].get("dash", "solid"), 1.0
    return trace["marker"]["color"], "solid", trace["marker"].get("opacity", 1.0)


def leading(sentences: Sequence[str]) -> str:
    """List the sentences that a page begins with."""
    items = "".join(f"<li>{as_html(each)}</li>" for each in sentences)
    return f"<ul class='lead'>{items}</ul>"


def note(text: str) -> str:
    """Write a note below a table; nothing if there is none."""
    return f"<p class='note'>{as_html(text)}</p>" if text else ""


def further(left_out: int, one: str, several: str = "", *, where: str = "in the CSV") -> str:
    """Say how much more there is than is shown; nothing if that is all."""
    return note(f"{count(left_out, one, several or f'{one}s')} {where}.") if left_out else ""


def numbers_section(name: str, title: str, tables: str, command: str | None = None) -> str:
    """A section of tables with the CSV file of this name behind them; its id is ``name-table``."""
    return (
        f"<section id='{escape(name)}-table'><h2>{as_html(title)}</h2>{tables}"
        f"{behind(name, command)}</section>"
    )


def footer(paragraphs: Iterable[str], command: str | None = None) -> str:
    """The end of a page: the command that made it, how, as HTML, and the keys of figures."""
    made = f"<p>Made by <code>{escape(command)}</code></p>" if command else ""
    said = "".join(f"<p>{each}</p>" for each in paragraphs)
    return (
        f"<footer>{made}{said}<p id='keys'>Keys in a figure: + and − zoom, ← and → move, 0 shows "
        "the whole range, S saves a PNG.</p></footer>"
    )
