"""The HTML page of a report: one file, no request to anywhere, words before pictures."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

import polars as pl

from foresail.metrics.comparison import movers
from foresail.metrics.prediction import worst_predicted_users
from foresail.model.words import count, duration, number, percent, signed
from foresail.reports.document import as_html, behind, document, section
from foresail.reports.figure import Figure, MissingFigure
from foresail.reports.plan_page import RunCourse
from foresail.reports.prediction_figures import coverage
from foresail.reports.recorded_words import how_near
from foresail.reports.sentences import (
    against_baseline,
    alone,
    deadlines_against,
    deadlines_alone,
    situation,
)
from foresail.reports.style import PolicyStyle
from foresail.reports.table import held_up_words, policy_rows
from foresail.reports.view import ReportView

_MOST_MOVER_TABLES: Final = 3
_MOST_WORST_TABLES: Final = 3

_STROKES: Final = {
    "dash": "8 4",
    "dot": "3 3",
    "dashdot": "9 3 3 3",
    "longdash": "14 4",
    "longdashdot": "12 3 3 3",
}


def page(
    view: ReportView,
    parts: Sequence[Figure | MissingFigure],
    command: str | None = None,
    course: RunCourse | None = None,
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
    course
        What the event log says of a moment, and of why jobs waited.
    """
    title = f"{view.baseline.workload}: {_subject(view)}"
    drawn = [part for part in parts if isinstance(part, Figure)]
    drawn += [] if course is None else course.figures
    body = [
        f"<header><h1>{as_html(title)}</h1><p class='situation'>{as_html(situation(view))}</p>",
        _words(view),
        "</header>",
        "<main id='numbers'>",
        _summary_section(view, command),
        *(_part(part, view.styles, command) for part in parts),
        "" if course is None else course.html(command),
        _coverage_section(view),
        _worst_predicted_section(view, command),
        _movers_section(view),
        "</main>",
        _footer(view, command),
    ]
    return document(title, "".join(body), drawn)


def _subject(view: ReportView) -> str:
    names = [style.label for style in view.styles]
    if len(names) == 1:
        return names[0]
    if len(names) == 2:
        return f"{names[0]} against {names[1]}"
    return f"{len(names)} policies compared"


def _name(style: PolicyStyle) -> str:
    full = (
        f" <code class='full'>{escape(style.policy)}</code>" if style.label != style.policy else ""
    )
    return f"<span class='policy'>{_swatch(style.colour)}{as_html(style.label)}</span>{full}"


def _full(style: PolicyStyle) -> str:
    """Nothing cut: after the letter that it goes by, if it has one."""
    if not style.is_cut:
        return as_html(style.label)
    letter, _, _ = style.label.partition(": ")
    policy = escape(style.policy).replace(",", ",<wbr>")
    return f"{as_html(letter)}: <code>{policy}</code>"


def _swatch(colour: str, dash: str = "solid") -> str:
    return (
        "<svg class='swatch' viewBox='0 0 22 12' aria-hidden='true'><line x1='0' y1='6' x2='22' "
        f"y2='6' stroke='var(--{colour[1:]})' stroke-width='4' "
        f"stroke-dasharray='{_STROKES.get(dash, 'none')}'/></svg>"
    )


def _words(view: ReportView) -> str:
    if not view.comparisons:
        return _paragraphs([*deadlines_alone(view.baseline), *alone(view.baseline)])
    blocks = []
    for style, other, comparison, pair in zip(
        view.styles[1:], view.summaries[1:], view.comparisons, view.pairs, strict=True
    ):
        versus = f"{_name(style)} <small>against {as_html(view.styles[0].label)}</small>"
        sentences = [
            *deadlines_against(view.baseline, other),
            *against_baseline(comparison, pair),
        ]
        blocks.append(f"<h2 class='versus'>{versus}</h2>{_list(sentences)}")
    return "".join(blocks)


def _paragraphs(sentences: Sequence[str]) -> str:
    return f"<p class='lead'>{as_html(' '.join(sentences))}</p>"


def _list(sentences: Sequence[str]) -> str:
    return "<ul class='lead'>" + "".join(f"<li>{as_html(s)}</li>" for s in sentences) + "</ul>"


def _summary_section(view: ReportView, command: str | None) -> str:
    headings, rows = policy_rows(view.summaries)
    body = "".join(
        f"<tr><th scope='row'>{_name(style)}</th>"
        + "".join(
            f"<td class='number{' best' if best else ''}'>{as_html(text)}"
            f"{'<span class=mark title=best> ★</span>' if best else ''}</td>"
            for text, best in row
        )
        + "</tr>"
        for style, row in zip(view.styles, rows, strict=True)
    )
    head = "".join(f"<th scope='col' class='number'>{as_html(text)}</th>" for text in headings)
    star = "<p class='note'>★ best of its column.</p>" if len(rows) > 1 else ""
    against = held_up_words(view.summaries)
    held_up = f"<p class='note'>{as_html(against)}.</p>" if against else ""
    near = how_near(view.summaries)
    recorded = f"<p class='note'>{as_html(near)}</p>" if near else ""
    return (
        "<section id='summary'><h2>The numbers</h2><div class='wide' tabindex='0' role='region' "
        "aria-label='Summary table'><table><thead><tr><th scope='col'>policy</th>"
        f"{head}</tr></thead><tbody>{body}</tbody></table></div>{star}{held_up}{recorded}"
        f"{behind('summary', command)}</section>"
    )


def _key(figure: Figure, styles: Sequence[PolicyStyle]) -> str:
    dashes = {
        trace["name"]: trace.get("line", {}).get("dash", "solid")
        for trace in figure.traces
        if trace.get("name")
    }
    named = {trace["name"] for trace in figure.traces if trace.get("showlegend")}
    if len(styles) == 1:
        return ""
    entries = "".join(
        f"<li title='{escape(style.policy)}'>{_swatch(style.colour, dashes[style.drawn])}"
        f"{_full(style)}</li>"
        for style in styles
        if style.drawn in named or (style.is_cut and style.drawn in dashes)
    )
    return f"<ul class='key' aria-label='Key'>{entries}</ul>" if entries else ""


def _part(part: Figure | MissingFigure, styles: Sequence[PolicyStyle], command: str | None) -> str:
    key = _key(part, styles) if isinstance(part, Figure) else ""
    return section(part, key, command)


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


def _worst_predicted_section(view: ReportView, command: str | None) -> str:
    """Tables for the policies whose predictions came with a range; equal ones are shown once."""
    blocks: list[str] = []
    shown: list[pl.DataFrame] = []
    for style, jobs in zip(view.styles, view.jobs, strict=True):
        table = worst_predicted_users(jobs)
        if not table.height or any(table.equals(other) for other in shown):
            continue
        shown.append(table)
        if len(shown) <= _MOST_WORST_TABLES:
            blocks.append(f"<h3>{_name(style)}</h3>{_worst_predicted_table(table)}")
    if not shown:
        return ""
    left_out = len(shown) - len(blocks)
    more = (
        f"<p class='note'>{count(left_out, 'further policy', 'further policies')} in the CSV.</p>"
        if left_out
        else ""
    )
    return (
        "<section id='worst-predicted'><h2>Whose jobs are predicted worst?</h2>"
        f"{''.join(blocks)}{more}{behind('worst-predicted-users', command)}</section>"
    )


def _worst_predicted_table(users: pl.DataFrame) -> str:
    rows = "".join(
        f"<tr><th scope='row'>{as_html(str(row['user'] if row['user'] is not None else '–'))}</th>"
        f"<td class='number'>{row['jobs']:,}</td>"
        f"<td class='number'>{duration(row['absolute_error_seconds'])}</td>"
        f"<td class='number'>{percent(row['share_of_error'])}</td>"
        f"<td class='number'>{percent(row['too_short'])}</td>"
        f"<td class='number'>{duration(row['median_runtime_seconds'])}</td>"
        f"<td class='number'>{duration(row['median_prediction_seconds'])}</td></tr>"
        for row in users.iter_rows(named=True)
    )
    headings = (
        "jobs",
        "summed error",
        "of all error",
        "predicted too short",
        "median runtime",
        "median prediction",
    )
    head = "".join(f"<th scope='col' class='number'>{heading}</th>" for heading in headings)
    return (
        "<div class='wide' tabindex='0' role='region' aria-label='Worst predicted users'><table>"
        f"<thead><tr><th scope='col'>user</th>{head}</tr></thead><tbody>{rows}</tbody></table>"
        "</div>"
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
        f"<tr><th scope='row'>{as_html(str(job['job_id']))}</th>"
        f"<td>{as_html(str(job['user'] if job['user'] is not None else '–'))}</td>"
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
    engines = ", ".join(sorted({s.meta.engine or "real run" for s in view.schedules}))
    return (
        f"<footer>{made}<p>Carried out by: {as_html(engines)}. "
        f"Conventions of the replay: {as_html(conventions)}. “Overtaken”: a job "
        "submitted later started first; “would have fitted”: into the processors free at that "
        "instant. Times count from the first submission; day 1 is its first 24 hours.</p>"
        "<p id='keys'>Keys in a figure: + and − zoom in time or along the axis, ← and → move, "
        "0 shows the whole range, S saves a PNG.</p></footer>"
    )
