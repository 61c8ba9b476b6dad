"""The HTML page of an evaluation: one file, no request to anywhere, words before pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Final

import polars as pl

from foresail.evaluation.derived import Derived
from foresail.evaluation.scores import Scores
from foresail.model.words import count, duration, number, percent
from foresail.reports.coverage_figures import coverage_users_section
from foresail.reports.document import as_html, behind, document, section
from foresail.reports.evaluation_table import (
    COLUMNS,
    Column,
    amount,
    memory,
    microseconds,
    score_rows,
    words_of,
)
from foresail.reports.evaluation_view import EvaluationView
from foresail.reports.figure import Figure, MissingFigure
from foresail.reports.style import PolicyStyle

_MOST_USER_TABLES: Final = 3
_STROKES: Final = {
    "dash": "8 4",
    "dot": "3 3",
    "dashdot": "9 3 3 3",
    "longdash": "14 4",
    "longdashdot": "12 3 3 3",
}


def _state(told: Scores) -> float:
    return math.nan if told.state_bytes is None else float(told.state_bytes)


_MORE: Final = (
    Column(
        "NMAE of median",
        lambda told: told.nmae_of_median.value,
        lambda _, v: number(v),
        better=-1,
    ),
    Column(
        "MAE",
        lambda told: told.mean_absolute_error,
        lambda told, v: amount(told.unit, v),
        better=-1,
    ),
    Column(
        "µs, 99.9 %",
        lambda told: told.p999_seconds,
        lambda _, v: microseconds(v),
        better=0,
    ),
    Column("state", _state, lambda _, v: memory(v), better=0),
)


def page(
    view: EvaluationView,
    parts: Sequence[Figure | MissingFigure],
    derived: Sequence[tuple[str, tuple[Derived, ...]]] = (),
    command: str | None = None,
) -> str:
    """The whole page as text.

    Parameters
    ----------
    view
        What the report looks at.
    parts
        Figures in the order in which they are shown.
    derived
        Predictors, with the runtimes derived from their estimates of the cpu time.
    command
        The command that made it.
    """
    title = f"{view.first.source}: can the predictions be trusted?"
    body = [
        f"<header><h1>{as_html(title)}</h1><p class='situation'>{as_html(_situation(view))}</p>",
        "<ul class='lead'>" + "".join(f"<li>{as_html(s)}</li>" for s in sentences(view)) + "</ul>",
        "</header><main id='numbers'>",
        _scores_section(view, command),
        *(section(part, _key(part, view.styles), command) for part in parts),
        coverage_users_section(view, command),
        _derived_section(derived, command),
        _users_section(view, command),
        "</main>",
        _footer(view, command),
    ]
    return document(title, "".join(body), [part for part in parts if isinstance(part, Figure)])


def sentences(view: EvaluationView) -> list[str]:
    """What the evaluation says, in words."""
    said = []
    if len(view.told) > 1:
        known = [i for i, told in enumerate(view.told) if told.relative_crps.value >= 0]
        if known:
            best = min(known, key=lambda i: view.told[i].relative_crps.value)
            said.append(_verdict(view, best))
    for style, told in zip(view.styles, view.told, strict=True):
        shares = told.errors
        words = (
            f"{style.label}: {percent(shares.within_factor_two)} of the estimates are within a "
            f"factor of two, {percent(shares.under)} too low, {percent(shares.tail)} too high by "
            "more than 95 %"
            if shares.jobs
            else f"{style.label}: no relative error, every {words_of(told.quantity)} is zero"
        )
        if told.ranges:
            words += f"; its 80 % ranges hold {percent(told.coverage[80].value)} of the truths"
        said.append(f"{words}.")
    return said


def _verdict(view: EvaluationView, best: int) -> str:
    told, baseline = view.told[best], view.first
    words = (
        f"Closest to what happened is {view.styles[best].label}: its CRPS, the error of the whole "
        f"distribution, is {number(told.relative_crps.value)} of the mean "
        f"{words_of(told.quantity)}"
    )
    if best and baseline.relative_crps.value > 0:
        less = 1.0 - told.relative_crps.value / baseline.relative_crps.value
        words += f", {percent(less)} less than that of {view.styles[0].label}"
    return f"{words}."


def _situation(view: EvaluationView) -> str:
    first = view.first
    words = [
        f"{count(first.jobs, 'job')} over {duration(view.span_seconds)}",
        f"the {words_of(first.quantity)} predicted at submission",
        "each job learned when it had ended"
        if first.learning == "on_completion"
        else "each job learned right after it was predicted",
    ]
    if first.unknown_jobs:
        words.append(
            f"{count(first.unknown_jobs, 'job')} left out, {words_of(first.quantity)} unknown"
        )
    if first.errors.zero_jobs:
        words.append(f"{first.errors.zero_jobs:,} of zero not in relative errors")
    return ", ".join(words) + "."


def _scores_section(view: EvaluationView, command: str | None) -> str:
    columns = (*COLUMNS, *_MORE)
    body = "".join(
        f"<tr><th scope='row'>{_name(style)}</th>"
        + "".join(
            f"<td class='number{' best' if best else ''}'>{as_html(text)}"
            f"{'<span class=mark title=best> ★</span>' if best else ''}</td>"
            for text, best in row
        )
        + "</tr>"
        for style, row in zip(view.styles, score_rows(view.told, columns), strict=True)
    )
    head = "".join(
        f"<th scope='col' class='number'>{as_html(column.heading.replace(chr(10), ' '))}</th>"
        for column in columns
    )
    star = "★ best of its column. " if len(view.told) > 1 else ""
    return (
        "<section id='summary'><h2>The numbers</h2><div class='wide' tabindex='0' role='region' "
        "aria-label='Scores'><table><thead><tr><th scope='col'>predictor</th>"
        f"{head}</tr></thead><tbody>{body}</tbody></table></div>"
        f"<p class='note'>{star}The estimate is the mean of the belief. MAE, NMAE: mean absolute "
        "error, and over the mean truth. Median error: in per cent of the truth. 80 % holds, "
        "width: share of the truths in the range from the 10 % to the 90 % quantile, and its "
        "median width over the median estimate. µs: all that a predictor does for a job, in the "
        "median and the 99.9 % quantile.</p>"
        f"{behind('scores', command)}</section>"
    )


def _derived_section(
    derived: Sequence[tuple[str, tuple[Derived, ...]]], command: str | None
) -> str:
    if not derived:
        return ""
    rows = "".join(
        f"<tr><th scope='row'>{as_html(predictor)}</th><td>{_way(each)}</td>"
        f"<td class='number'>{percent(each.shares.within_factor_two)}</td>"
        f"<td class='number'>{percent(each.shares.under)}</td>"
        f"<td class='number'>{percent(each.shares.under_by_half)}</td>"
        f"<td class='number'>{percent(each.shares.tail)}</td>"
        f"<td class='number'>{each.shares.jobs:,}</td></tr>"
        for predictor, ways in derived
        for each in ways
    )
    headings = ("within 2×", "too short", "by more than half", "over by more than 95 %", "jobs")
    head = "".join(f"<th scope='col' class='number'>{heading}</th>" for heading in headings)
    return (
        "<section id='derived-table'><h2>Is the work easier to predict than the runtime?</h2>"
        "<div class='wide' tabindex='0' role='region' aria-label='Derived runtimes'><table>"
        "<thead><tr><th scope='col'>predictor</th><th scope='col'>runtime estimated from</th>"
        f"{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        "<p class='note'>Only jobs that all ways can estimate. A predictor that limits its "
        "estimates to the requested time is no good for work.</p>"
        f"{behind('derived', command)}</section>"
    )


def _way(each: Derived) -> str:
    return "itself" if each.name == "runtime" else f"cpu time ÷ {words_of(each.name)}"


def _users_section(view: EvaluationView, command: str | None) -> str:
    tables = [
        (style, details["worst_users"])
        for style, details in zip(view.styles, view.details, strict=True)
    ]
    if all(table["user"].is_null().all() for _, table in tables):
        return (
            "<section class='missing'><h2>Whose jobs are predicted worst?</h2><p><strong>The log "
            "does not name users.</strong></p></section>"
        )
    order = sorted(range(len(tables)), key=lambda i: _crps(view.told[i]))[:_MOST_USER_TABLES]
    blocks = [
        f"<h3>{_name(tables[i][0])}</h3>{_users_table(tables[i][1], view.first.unit)}"
        for i in sorted(order)
    ]
    left_out = len(tables) - len(blocks)
    more = (
        f"<p class='note'>The {count(len(blocks), 'predictor')} with the least CRPS; "
        f"{count(left_out, 'further one')} in the CSV.</p>"
        if left_out
        else ""
    )
    return (
        "<section id='worst-users-table'><h2>Whose jobs are predicted worst?</h2>"
        f"{''.join(blocks)}{more}{behind('worst-users', command)}</section>"
    )


def _crps(told: Scores) -> float:
    return told.crps if math.isfinite(told.crps) else math.inf


def _users_table(users: pl.DataFrame, unit: str) -> str:
    rows = "".join(
        f"<tr><th scope='row'>{as_html(str(row['user'] if row['user'] is not None else '–'))}</th>"
        f"<td class='number'>{row['jobs']:,}</td>"
        f"<td class='number'>{percent(row['share_of_error'])}</td>"
        f"<td class='number'>{percent(row['within_factor_two'])}</td>"
        f"<td class='number'>{percent(row['under'])}</td>"
        f"<td class='number'>{as_html(amount(unit, row['median_actual']))}</td>"
        f"<td class='number'>{as_html(amount(unit, row['median_predicted']))}</td></tr>"
        for row in users.iter_rows(named=True)
    )
    headings = (
        "jobs",
        "of all error",
        "within 2×",
        "too low",
        "median truth",
        "median estimate",
    )
    head = "".join(f"<th scope='col' class='number'>{heading}</th>" for heading in headings)
    return (
        "<div class='wide' tabindex='0' role='region' aria-label='Worst predicted users'><table>"
        f"<thead><tr><th scope='col'>user</th>{head}</tr></thead><tbody>{rows}</tbody></table>"
        "</div>"
    )


def _name(style: PolicyStyle) -> str:
    full = (
        f" <code class='full'>{escape(style.policy)}</code>" if style.label != style.policy else ""
    )
    swatch = _swatch(style.colour, style.dash)
    return f"<span class='policy'>{swatch}{as_html(style.label)}</span>{full}"


def _key(part: Figure | MissingFigure, styles: Sequence[PolicyStyle]) -> str:
    """What the lines mean."""
    if isinstance(part, MissingFigure) or len(styles) == 1:
        return ""
    entries = "".join(
        f"<li>{_swatch(style.colour, style.dash)} {as_html(style.label)}</li>"
        for style in styles
        if style.drawn in part.legend
    )
    return f"<ul class='key'>{entries}</ul>"


def _swatch(colour: str, dash: str) -> str:
    return (
        "<svg class='swatch' viewBox='0 0 22 12' aria-hidden='true'><line x1='0' y1='6' x2='22' "
        f"y2='6' stroke='var(--{colour[1:]})' stroke-width='4' "
        f"stroke-dasharray='{_STROKES.get(dash, 'none')}'/></svg>"
    )


def _footer(view: EvaluationView, command: str | None) -> str:
    made = f"<p>Made by <code>{escape(command)}</code></p>" if command else ""
    blocks = view.first.blocks
    intervals = (
        f"Intervals are 95 % ranges over draws of {blocks} blocks of "
        f"{duration(view.first.block_seconds)} of submission."
        if blocks
        else "The log is too short for intervals."
    )
    return (
        f"<footer>{made}<p>{intervals} “Too low”, “under-estimated”: below the truth. CRPS: twice "
        "the pinball loss, averaged over all quantiles; for a single number the absolute error."
        "</p><p id='keys'>Keys in a figure: + and − zoom along the axis, ← and → move, 0 shows the "
        "whole range, S saves a PNG.</p></footer>"
    )
