"""Summaries as a terminal table, as JSON and as CSV."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import polars as pl
from rich.table import Table
from rich.text import Text

from foresail.metrics.summary import Summary
from foresail.model.words import count, duration, folded, number, percent

_POLICY_WIDTH: Final = 30

Column: TypeAlias = tuple[str, str, Callable[[float], str], int]
"""Field, heading, how it is said, and whether less (-1) or more (1) is better."""

_COLUMNS: Final[tuple[Column, ...]] = (
    ("average_bounded_slowdown", "average\nslowdown", number, -1),
    ("mean_wait_seconds", "mean\nwait", duration, -1),
    ("median_wait_seconds", "median\nwait", duration, -1),
    ("p99_wait_seconds", "99 %\nwait", duration, -1),
    ("max_wait_seconds", "longest\nwait", duration, -1),
    ("utilization", "used", percent, 1),
    ("replay_seconds", "replay", duration, 0),
)
_AGAINST_COLUMNS: Final[tuple[Column, ...]] = (
    ("slowdown_saved_share", "slowdown\nless by", percent, 1),
    ("longest_wait_ratio", "longest wait,\ntimes", number, -1),
    ("held_up_share", "jobs\nheld up", percent, -1),
    ("held_up_mean_seconds", "longer\nby", duration, -1),
)
"""What is shown besides where there is more than one policy: gains, and who pays for them."""
_DEADLINE_COLUMNS: Final[tuple[Column, ...]] = (
    ("slo_miss_rate", "deadlines\nmissed", percent, -1),
    ("goodput_hours", "goodput\ncpu h", number, 1),
    ("slo_on_time_goodput_hours", "on-time\ncpu h", number, 1),
    ("best_effort_goodput_hours", "best-effort\ncpu h", number, 1),
    ("best_effort_latency_seconds", "best-effort\nlatency", duration, -1),
    ("preemptions", "stopped", number, 0),
)
"""What is shown besides where jobs have deadlines."""
_RESERVATION_COLUMNS: Final[tuple[Column, ...]] = (
    ("slo_attainment", "deadlines\nmet", percent, 1),
    ("accepted_slo_jobs", "requests\naccepted", number, 0),
    ("accepted_slo_attainment", "of these\nmet", percent, 1),
    ("unreserved_slo_attainment", "of rejected\nones met", percent, 1),
    ("best_effort_completed", "best-effort\ndone", number, 1),
)
"""What is shown besides where jobs have asked for reservations."""


def terminal_tables(summaries: Sequence[Summary]) -> list[Table]:
    """Waits and use, what differs from the first policy, deadlines and reservations.

    A row per policy, and no table of what there is none of.

    Tables are 100 characters wide.

    ``*`` marks the best of each column as it is printed: values that read the same are all best,
    and no mark is set where all are.
    """
    tables = [_terminal_table(summaries, _COLUMNS, _caption(summaries))]
    if any(math.isfinite(summary.held_up_share) for summary in summaries):
        tables.append(_terminal_table(summaries[1:], _AGAINST_COLUMNS, held_up_words(summaries)))
    if any(summary.slo_jobs for summary in summaries):
        tables.append(_terminal_table(summaries, _DEADLINE_COLUMNS, _deadline_caption(summaries)))
    if any(_has_reservations(summary) for summary in summaries):
        caption = "requests for reservations by jobs with a deadline, at submission"
        tables.append(_terminal_table(summaries, _RESERVATION_COLUMNS, caption))
    return tables


def _terminal_table(summaries: Sequence[Summary], columns: Sequence[Column], caption: str) -> Table:
    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        caption=caption,
        caption_justify="left",
        caption_style="dim",
        width=None,
    )
    table.add_column("policy", vertical="bottom", max_width=_POLICY_WIDTH)
    for _, heading, _, _ in columns:
        table.add_column(heading, justify="right", no_wrap=True, vertical="bottom")
    for summary, row in zip(summaries, _rows(summaries, columns), strict=True):
        cells = [
            Text(text + ("*" if best else " "), style="bold" if best else "") for text, best in row
        ]
        table.add_row(Text("\n".join(folded(summary.policy, _POLICY_WIDTH))), *cells)
    return table


def policy_rows(
    summaries: Sequence[Summary],
) -> tuple[list[str], list[list[tuple[str, bool]]]]:
    """Headings, and for each policy its cells as (text, whether it is the best of its column)."""
    deadlines = any(summary.slo_jobs for summary in summaries)
    against = len(summaries) > 1
    columns = (
        _COLUMNS + (_AGAINST_COLUMNS if against else ()) + (_DEADLINE_COLUMNS if deadlines else ())
    )
    return [heading.replace("\n", " ") for _, heading, _, _ in columns], _rows(summaries, columns)


def _rows(summaries: Sequence[Summary], columns: Sequence[Column]) -> list[list[tuple[str, bool]]]:
    best = {name: _best(summaries, name, say, sense) for name, _, say, sense in columns}
    rows = []
    for summary in summaries:
        texts = [(name, say(float(getattr(summary, name)))) for name, _, say, _ in columns]
        rows.append([(text, text == best[name]) for name, text in texts])
    return rows


def as_json(summaries: Sequence[Summary]) -> str:
    """A JSON array with an object per policy, null for what is unknown."""
    return json.dumps([summary.as_json() for summary in summaries], indent=2, ensure_ascii=False)


def as_table(summaries: Sequence[Summary]) -> pl.DataFrame:
    """A row per policy, a column per field of ``Summary``."""
    return pl.DataFrame([summary.as_json() for summary in summaries], infer_schema_length=None)


def as_csv(summaries: Sequence[Summary]) -> str:
    """The same as CSV text, empty for what is unknown."""
    return as_table(summaries).write_csv()


def _caption(summaries: Sequence[Summary]) -> str:
    if not summaries:
        return "no schedule"
    first = summaries[0]
    words = f"{count(first.jobs, 'job')} on {count(round(first.processors), 'processor')}"
    return words + ("; * best of its column" if len(summaries) > 1 else "")


def held_up_words(summaries: Sequence[Summary]) -> str:
    """What the columns against the first policy mean; empty where there is only one."""
    if len(summaries) < 2:
        return ""
    return (
        f"against {summaries[0].policy}; held up: waits more than 1.1 times as long as there, and "
        "an hour"
    )


def _deadline_caption(summaries: Sequence[Summary]) -> str:
    return (
        f"{count(summaries[0].slo_jobs, 'job')} with a deadline; goodput is the work of jobs that "
        "completed"
    )


def _has_reservations(summary: Summary) -> bool:
    return summary.accepted_slo_jobs > 0 or math.isfinite(summary.unreserved_slo_attainment)


def _best(
    summaries: Sequence[Summary], name: str, say: Callable[[float], str], sense: int
) -> str | None:
    values: list[Any] = [float(getattr(summary, name)) for summary in summaries]
    known = [value for value in values if math.isfinite(value)]
    if not sense or len({say(value) for value in known}) < 2:
        return None
    return say(min(known) if sense < 0 else max(known))
