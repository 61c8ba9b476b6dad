"""Coverage of the stated ranges: the picture over time, and a table by user."""

from __future__ import annotations

from typing import Any, Final

import polars as pl

from foresail.evaluation.tables import STATED
from foresail.model.words import percent
from foresail.reports.document import as_html, note, numbers_section, row, table, user_name
from foresail.reports.evaluation.view import EvaluationView
from foresail.reports.figure import Figure, MissingFigure
from foresail.reports.style import PolicyStyle, axis, layout, level_at, line_of

_FEWEST_STRETCHES: Final = 3
_MOST_MARKERS: Final = 80
_MOST_TABLES: Final = 3
_GAP: Final = 0.06


def coverage_over_time_figure(view: EvaluationView) -> Figure | MissingFigure:
    """The share of truths inside each stated range by stretch of submission, a band per range."""
    title = "Do the ranges hold all the time?"
    stating = [i for i in range(len(view.told)) if view.has_ranges(i)]
    if not stating:
        return without_ranges(title)
    if max(view.coverage[i].height for i in stating) < _FEWEST_STRETCHES:
        return MissingFigure(
            title,
            f"The log has fewer than {_FEWEST_STRETCHES} {view.stretch}s with jobs.",
            "A longer log would show it.",
        )
    height = (1.0 + _GAP) / len(STATED)
    axes: dict[str, Any] = {}
    lines: list[dict[str, Any]] = []
    traces: list[dict[str, Any]] = []
    for place, stated in enumerate(STATED):
        name = f"y{place + 1}" if place else "y"
        top = 1.0 - place * height
        axes[f"yaxis{place + 1}" if place else "yaxis"] = axis(
            f"{stated} % range",
            tickformat=".0%",
            range=[0, 1.02],
            domain=[max(top - height + _GAP, 0.0), top],
        )
        lines.append(level_at(stated / 100.0, yref=name, layer="below"))
        column = f"covered_{stated}"
        hover = f"%{{y:.1%}} of %{{customdata:,}} jobs in the {stated} % range"
        traces += [
            line_over_time(view, view.coverage[i], column, view.styles[i], name, hover, 5)
            for i in stating
        ]
    return Figure(
        name="coverage",
        title=title,
        findings=[_finding(view, i) for i in stating],
        traces=traces,
        layout=layout(
            640,
            xaxis=stretch_axis(view, f"y{len(STATED)}"),
            shapes=lines,
            **axes,
        ),
        table=pl.concat(
            view.coverage[i]
            .rename({"stretch": view.stretch})
            .select(pl.lit(view.styles[i].policy).alias("predictor"), pl.all())
            for i in stating
        ),
        note=f"By {view.stretch} of submission: the share of truths inside the range, ends "
        "included. Grey: what is stated. How wide the ranges are is in the CSV too.",
    )


def coverage_users_section(view: EvaluationView, command: str | None) -> str:
    """The users with most jobs, and what each range held of theirs, as HTML."""
    stating = [i for i in range(len(view.told)) if view.has_ranges(i)]
    known = [i for i in stating if view.details[i]["coverage_by_user"].height]
    if not known:
        return ""
    shown = sorted(known, key=lambda i: view.told[i].crps)[:_MOST_TABLES]
    blocks = [
        f"<h3>{as_html(view.styles[i].label)}</h3>"
        f"{_users_table(view.styles[i], view.details[i]['coverage_by_user'])}"
        for i in sorted(shown)
    ]
    said = note(
        "The users with most jobs: the share of their truths inside each stated range, and the "
        "median width of their 80 % range over their median estimate."
    )
    name, title = "coverage-by-user", "Do the ranges hold for every user?"
    tables = "".join(blocks) + said
    return numbers_section(name, title, tables, command)


def _users_table(style: PolicyStyle, users: pl.DataFrame) -> str:
    rows = [
        row(
            [
                user_name(each["user"]),
                f"{each['jobs']:,}",
                *(percent(each[f"covered_{stated}"]) for stated in STATED),
                _width(each["relative_width_80"]),
            ]
        )
        for each in users.iter_rows(named=True)
    ]
    headings = ("user", "jobs", *(f"in {stated} %" for stated in STATED), "80 % width")
    return table(f"Ranges of {style.label} by user", headings, rows)


def _width(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _finding(view: EvaluationView, position: int) -> str:
    told = view.told[position]
    held = ", ".join(f"{stated} %: {percent(told.coverage[stated].value)}" for stated in STATED)
    weeks = view.coverage[position]
    off = ((weeks["covered_90"] - 0.9).abs() > 0.1).sum()
    return (
        f"{view.styles[position].label}: its ranges hold {held}; the 90 % range is more than ten "
        f"points off in {off} of {weeks.height} {view.stretch}s."
    )


def without_ranges(title: str) -> MissingFigure:
    """Say that no predictor of the view has stated more than a number."""
    return MissingFigure(
        title,
        "These predictors name one number for each job, so there is no range.",
        "Evaluate one that keeps the whole distribution.",
    )


def stretch_axis(view: EvaluationView, anchor: str = "y") -> dict[str, Any]:
    """The axis of time of what is shown by stretch of submission, at the foot of another axis."""
    title = f"{view.stretch} since the first submission"
    return axis(title, anchor=anchor, tickangle=0, tickformat="d")


def line_over_time(
    view: EvaluationView,
    curve: pl.DataFrame,
    column: str,
    style: PolicyStyle,
    at: str,
    hover: str,
    digits: int = 6,
) -> dict[str, Any]:
    """A column of a table by stretch of submission, rounded, on the axis of this name."""
    return line_of(
        style,
        curve["stretch"].to_list(),
        [None if y is None else round(float(y), digits) for y in curve[column]],
        f"{view.stretch} %{{x}}: {hover}",
        mode="lines+markers" if curve.height <= _MOST_MARKERS else "lines",
        yaxis=at,
        marker={"size": 4, "symbol": style.symbol},
        customdata=curve["jobs"].to_list(),
        showlegend=at == "y",
    )
