"""Why did jobs wait: the waiting time of a run, by what the scheduler gave as its reason."""

from __future__ import annotations

from typing import Any

import polars as pl

from foresail.explain.reason_words import REASONS
from foresail.explain.run_snapshot import ReasonShare
from foresail.model.words import count, duration, percent
from foresail.reports.figure import Figure, MissingFigure
from foresail.reports.style import axis, layout, rows_axis

_TITLE = "Why did jobs wait?"


def waiting_by_reason(shares: tuple[ReasonShare, ...]) -> Figure | MissingFigure:
    """A bar per reason: its share of all waiting time, and how many jobs it kept waiting."""
    total = sum(each.seconds for each in shares)
    if total <= 0.0:
        return MissingFigure(_TITLE, "No job has waited.", "All started when they were submitted.")
    names = [_name(each) for each in shares]
    portions = [each.seconds / total for each in shares]
    words = [
        f"{percent(portion)}, {count(each.jobs, 'job')}"
        for each, portion in zip(shares, portions, strict=True)
    ]
    bars: dict[str, Any] = {
        "type": "bar",
        "orientation": "h",
        "name": "share",
        "x": [100 * portion for portion in portions],
        "y": list(range(len(shares))),
        "width": 0.62,
        "text": words,
        "textposition": "outside",
        "cliponaxis": False,
        "marker": {"color": "@policy1", "line": {"width": 0}},
        "hovertemplate": "%{text}<extra></extra>",
        "showlegend": False,
    }
    drawing = layout(
        90 + 34 * len(shares),
        xaxis=axis("share of all waiting time (%)", range=[0, 130 * max(portions)], nticks=6),
        yaxis=rows_axis(names),
    )
    return Figure(
        name="waiting-by-reason",
        title=_TITLE,
        findings=[_finding(shares, total)],
        traces=[bars],
        layout=drawing,
        table=pl.DataFrame(
            {
                "reason": [_code(each) for each in shares],
                "waiting_seconds": [each.seconds for each in shares],
                "share": portions,
                "jobs": [each.jobs for each in shares],
            }
        ),
        note="From the event log: every second that a job waited counts for the reason that was "
        "the last to be given for it. A job may have waited for several reasons, one after the "
        "other.",
    )


def _code(share: ReasonShare) -> str:
    return "none" if share.code is None else share.code.value


def _name(share: ReasonShare) -> str:
    return "the next pass is still to come" if share.code is None else REASONS[share.code]


def _finding(shares: tuple[ReasonShare, ...], total: float) -> str:
    first = shares[0]
    share = percent(first.seconds / total)
    name = _name(first)
    return f"Jobs waited for {duration(total)} in all, {share} of it with the reason “{name}”."
