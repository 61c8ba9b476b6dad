"""The HTML page of a report: one file, no request to anywhere, words before pictures."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from importlib import resources
from typing import Any, Final

import polars as pl
from plotly.offline import get_plotlyjs

from foresail.metrics.comparison import movers
from foresail.reports.figure import Figure, MissingFigure
from foresail.reports.prediction_figures import coverage
from foresail.reports.sentences import against_baseline, alone, situation
from foresail.reports.style import DARK, LIGHT, PolicyStyle
from foresail.reports.table import policy_rows
from foresail.reports.view import ReportView
from foresail.reports.words import count, duration, number, percent, signed

_MOST_MOVER_TABLES: Final = 3

_UNIT: Final = re.compile(r"(\d) (s|min|h|d|%)(?![a-z])")

_SECOND_UNIT: Final = re.compile(r"(\u00a0[hd]) (?=\d+\u00a0(?:min|h)\b)")

_STROKES: Final = {
    "dash": "8 4",
    "dot": "3 3",
    "dashdot": "9 3 3 3",
    "longdash": "14 4",
    "longdashdot": "12 3 3 3",
}

_SECURITY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:"
)
"""The browser itself refuses any request that this page might make."""


def page(
    view: ReportView, parts: Sequence[Figure | MissingFigure], command: str | None = None
) -> str:
    """The whole page as text.

    Parameters
    ----------
    view
        What the report looks at.
    parts
        Figures in the order in which they are shown.
    command
        The command that made it.
    """
    title = f"{view.baseline.workload}: {_subject(view)}"
    drawn = [part for part in parts if isinstance(part, Figure)]
    body = [
        f"<header><h1>{_text(title)}</h1><p class='situation'>{_text(situation(view))}</p>",
        _words(view),
        "</header>",
        "<main id='numbers'>",
        _summary_section(view, command),
        *(_part(part, view.styles, command) for part in parts),
        _coverage_section(view),
        _movers_section(view),
        "</main>",
        _footer(view, command),
    ]
    specifications = {
        figure.name: {
            "data": list(figure.traces),
            "layout": figure.layout,
            "image": figure.image_layout,
        }
        for figure in drawn
    }
    asset = resources.files("foresail.reports")
    return "".join(
        [
            "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>",
            f"<meta http-equiv='Content-Security-Policy' content=\"{_SECURITY}\">",
            "<meta name='viewport' content='width=device-width, initial-scale=1'>",
            "<meta name='color-scheme' content='light dark'>",
            f"<title>{_text(title)}</title>",
            f"<style>{_variables()}{asset.joinpath('page.css').read_text('utf-8')}</style>",
            "</head><body><a class='skip' href='#numbers'>Skip to the numbers and figures</a>",
            *body,
            _data("figures", specifications),
            _data("themes", {"light": LIGHT, "dark": DARK}),
            f"<script type='text/plain' id='plotly'>{get_plotlyjs()}</script>",
            f"<script>{asset.joinpath('page.js').read_text('utf-8')}</script>",
            "</body></html>\n",
        ]
    )


def _text(text: str) -> str:
    """Text for the page; a number keeps together with its unit, a duration with both of its."""
    kept = _UNIT.sub("\\1\u00a0\\2", escape(text))
    return _SECOND_UNIT.sub("\\1\u00a0", kept)


def _subject(view: ReportView) -> str:
    names = [style.label for style in view.styles]
    if len(names) == 1:
        return names[0]
    if len(names) == 2:
        return f"{names[0]} against {names[1]}"
    return f"{len(names)} policies compared"


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


def _name(style: PolicyStyle) -> str:
    full = (
        f" <code class='full'>{escape(style.policy)}</code>" if style.label != style.policy else ""
    )
    return f"<span class='policy'>{_swatch(style.colour)}{_text(style.label)}</span>{full}"


def _swatch(colour: str, dash: str = "solid") -> str:
    return (
        "<svg class='swatch' viewBox='0 0 22 12' aria-hidden='true'><line x1='0' y1='6' x2='22' "
        f"y2='6' stroke='var(--{colour[1:]})' stroke-width='4' "
        f"stroke-dasharray='{_STROKES.get(dash, 'none')}'/></svg>"
    )


def _words(view: ReportView) -> str:
    if not view.comparisons:
        return _paragraphs(alone(view.baseline))
    blocks = [
        f"<h2 class='versus'>{_name(style)} <small>against {_text(view.styles[0].label)}</small>"
        f"</h2>{_list(against_baseline(comparison, pair))}"
        for style, comparison, pair in zip(
            view.styles[1:], view.comparisons, view.pairs, strict=True
        )
    ]
    return "".join(blocks)


def _paragraphs(sentences: Sequence[str]) -> str:
    return f"<p class='lead'>{_text(' '.join(sentences))}</p>"


def _list(sentences: Sequence[str]) -> str:
    return "<ul class='lead'>" + "".join(f"<li>{_text(s)}</li>" for s in sentences) + "</ul>"


def _summary_section(view: ReportView, command: str | None) -> str:
    headings, rows = policy_rows(view.summaries)
    body = "".join(
        f"<tr><th scope='row'>{_name(style)}</th>"
        + "".join(
            f"<td class='number{' best' if best else ''}'>{_text(text)}"
            f"{'<span class=mark title=best> ★</span>' if best else ''}</td>"
            for text, best in row
        )
        + "</tr>"
        for style, row in zip(view.styles, rows, strict=True)
    )
    head = "".join(f"<th scope='col' class='number'>{_text(text)}</th>" for text in headings)
    star = "<p class='note'>★ best of its column.</p>" if len(rows) > 1 else ""
    return (
        "<section id='summary'><h2>The numbers</h2><div class='wide' tabindex='0' role='region' "
        "aria-label='Summary table'><table><thead><tr><th scope='col'>policy</th>"
        f"{head}</tr></thead><tbody>{body}</tbody></table></div>{star}"
        f"{_behind('summary', command)}</section>"
    )


def _findings(figure: Figure) -> str:
    name = f"{escape(figure.name)}-finding"
    if len(figure.findings) == 1:
        return f"<p class='finding' id='{name}'>{_text(figure.findings[0])}</p>"
    items = "".join(f"<li>{_text(finding)}</li>" for finding in figure.findings)
    return f"<ul class='finding' id='{name}'>{items}</ul>"


def _key(figure: Figure, styles: Sequence[PolicyStyle]) -> str:
    dashes = {
        trace["name"]: trace.get("line", {}).get("dash", "solid")
        for trace in figure.traces
        if trace.get("showlegend")
    }
    if len(styles) == 1:
        return ""
    entries = "".join(
        f"<li>{_swatch(style.colour, dashes[style.label])}{_text(style.label)}</li>"
        for style in styles
        if style.label in dashes
    )
    return f"<ul class='key' aria-label='Key'>{entries}</ul>" if entries else ""


def _part(part: Figure | MissingFigure, styles: Sequence[PolicyStyle], command: str | None) -> str:
    if isinstance(part, MissingFigure):
        return (
            f"<section class='missing'><h2>{_text(part.title)}</h2>"
            f"<p><strong>{_text(part.problem)}</strong> {_text(part.remedy)}</p></section>"
        )
    name = escape(part.name)
    return (
        f"<section class='figure' id='section-{name}'><h2>{_text(part.title)}</h2>"
        f"<figure>{_findings(part)}{_key(part, styles)}"
        f"<div class='plot' id='{name}' tabindex='0' role='img' data-figure='{name}' "
        f"aria-labelledby='{name}-finding' aria-describedby='keys' "
        f"style='height:{part.layout['height']}px'>"
        "<p class='loading'>Drawing …</p></div>"
        f"<div class='tools'><button type='button' data-save='{name}'>Save as PNG</button>"
        f"<button type='button' data-reset='{name}'>Whole range</button></div>"
        f"<figcaption>{_text(part.note)}</figcaption></figure>"
        f"{_behind(part.name, command)}</section>"
    )


def _behind(name: str, command: str | None) -> str:
    made = f" Made by <code>{escape(command)}</code>" if command else ""
    return (
        f"<p class='behind'>Numbers behind it: <a href='{escape(name)}.csv'>{escape(name)}.csv</a>"
        f" beside this page.{made}</p>"
    )


def _coverage_section(view: ReportView) -> str:
    table = coverage(view)
    title = "<h2>Do stated ranges keep their word?</h2>"
    if not table.height:
        return (
            f"<section class='missing'>{title}<p><strong>No prediction came with a range.</strong> "
            "Predictors that keep the whole distribution state one; single numbers cannot be "
            "checked this way.</p></section>"
        )
    looks = {style.policy: style for style in view.styles}
    rows = "".join(
        f"<tr><th scope='row'>{_name(looks[row['policy']])}</th>"
        f"<td class='number'>{row['jobs']:,}</td>"
        + "".join(
            f"<td class='number'>{percent(row[part])}</td>" for part in ("below", "inside", "above")
        )
        + "</tr>"
        for row in table.iter_rows(named=True)
    )
    return (
        f"<section id='coverage'>{title}<div class='wide' tabindex='0' role='region' "
        "aria-label='Coverage table'><table><thead><tr><th scope='col'>policy</th>"
        "<th scope='col' class='number'>jobs</th>"
        "<th scope='col' class='number'>shorter than the 10 % quantile</th>"
        "<th scope='col' class='number'>within the range</th>"
        "<th scope='col' class='number'>longer than the 90 % quantile</th></tr></thead><tbody>"
        "<tr class='stated'><th scope='row'>as stated</th><td class='number'></td>"
        "<td class='number'>10 %</td><td class='number'>80 %</td><td class='number'>10 %</td></tr>"
        f"{rows}</tbody></table></div></section>"
    )


def _movers_section(view: ReportView) -> str:
    if not view.pairs:
        return ""
    blocks = []
    for style, pair in list(zip(view.styles[1:], view.pairs, strict=True))[:_MOST_MOVER_TABLES]:
        gained, lost = movers(pair)
        blocks.append(
            f"<h3>{_name(style)}</h3><div class='pair'>"
            + _movers_table("gained", gained, view)
            + _movers_table("lost", lost, view)
            + "</div>"
        )
    left_out = len(view.pairs) - len(blocks)
    more = (
        f"<p class='note'>{count(left_out, 'further policy', 'further policies')} not shown.</p>"
        if left_out
        else ""
    )
    return (
        "<section id='movers'><h2>Which jobs gained and lost most?</h2>"
        f"{''.join(blocks)}{more}</section>"
    )


def _movers_table(what: str, jobs: pl.DataFrame, view: ReportView) -> str:
    if not jobs.height:
        return f"<p class='none'>No job {what} anything.</p>"
    begin = view.window.begin_seconds
    rows = "".join(
        f"<tr><th scope='row'>{_text(str(job['job_id']))}</th>"
        f"<td>{_text(str(job['user'] if job['user'] is not None else '–'))}</td>"
        f"<td class='number'>{int((job['submit_seconds'] - begin) // 86400) + 1:,}</td>"
        f"<td class='number'>{number(job['cpus'])}</td>"
        f"<td class='number'>{duration(job['runtime_seconds'])}</td>"
        f"<td class='number'>{duration(job['wait_seconds'])}</td>"
        f"<td class='number'>{duration(job['wait_seconds_other'])}</td>"
        f"<td class='number'>{signed(duration(job['difference_seconds']))}</td></tr>"
        for job in jobs.iter_rows(named=True)
    )
    caption = f"{count(jobs.height, 'job')} that {what} most"
    return (
        f"<div class='wide' tabindex='0' role='region' aria-label='{caption}'><table>"
        f"<caption>{caption}</caption><thead><tr><th scope='col'>job</th><th scope='col'>user</th>"
        "<th scope='col' class='number'>day</th><th scope='col' class='number'>processors</th>"
        "<th scope='col' class='number'>runtime</th>"
        "<th scope='col' class='number'>wait before</th>"
        "<th scope='col' class='number'>wait now</th>"
        "<th scope='col' class='number'>change</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _footer(view: ReportView, command: str | None) -> str:
    made = f"<p>Made by <code>{escape(command)}</code></p>" if command else ""
    conventions = ", ".join(sorted({s.meta.conventions for s in view.schedules}))
    return (
        f"<footer>{made}<p>Conventions of the replay: {_text(conventions)}. “Overtaken”: a job "
        "submitted later started first; “would have fitted”: into the processors free at that "
        "instant. Times count from the first submission; day 1 is its first 24 hours.</p>"
        "<p id='keys'>Keys in a figure: + and − zoom in time or along the axis, ← and → move, "
        "0 shows the whole range, S saves a PNG.</p></footer>"
    )
