"""Summaries as a terminal table and as CSV."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Final

import polars as pl
from rich.table import Table

from foresail.metrics.partitions import PartitionSummary
from foresail.metrics.summary import Summary
from foresail.model.words import count, duration, number, percent
from foresail.reports.ranked_table import RankedColumn, ranked_rows, ranked_table

_POLICY_WIDTH: Final = 30

_COLUMNS: Final[tuple[RankedColumn[Summary], ...]] = (
    RankedColumn("average\nslowdown", attrgetter("average_bounded_slowdown"), number, -1),
    RankedColumn("mean\nwait", attrgetter("mean_wait_seconds"), duration, -1),
    RankedColumn("median\nwait", attrgetter("median_wait_seconds"), duration, -1),
    RankedColumn("99 %\nwait", attrgetter("p99_wait_seconds"), duration, -1),
    RankedColumn("longest\nwait", attrgetter("max_wait_seconds"), duration, -1),
    RankedColumn("used", attrgetter("steady_utilization"), percent, 1),
    RankedColumn("replay", attrgetter("replay_seconds"), duration),
)
"""Used: from the first to the last submission (``foresail.metrics.usage.steady_window``)."""
_ELIGIBLE_COLUMN: Final[RankedColumn[Summary]] = RankedColumn(
    "once\neligible", attrgetter("mean_eligible_wait_seconds"), duration, -1
)
"""What is shown beside the mean wait where jobs wait for others, or for what is known to come."""
_LOST_COLUMN: Final[RankedColumn[Summary]] = RankedColumn(
    "lost\ncpu h", attrgetter("lost_hours"), number, -1
)
"""What is shown beside use where attempts were preempted or lost."""
_AGAINST_COLUMNS: Final[tuple[RankedColumn[Summary], ...]] = (
    RankedColumn("slowdown\nless by", attrgetter("slowdown_saved_share"), percent, 1),
    RankedColumn("longest wait,\ntimes", attrgetter("longest_wait_ratio"), number, -1),
    RankedColumn("jobs\nheld up", attrgetter("held_up_share"), percent, -1),
    RankedColumn("longer\nby", attrgetter("held_up_mean_seconds"), duration, -1),
)
"""What is shown besides where there is more than one policy: gains, and who pays for them."""
_DEADLINE_COLUMNS: Final[tuple[RankedColumn[Summary], ...]] = (
    RankedColumn("deadlines\nmissed", attrgetter("slo_miss_rate"), percent, -1),
    RankedColumn("goodput\ncpu h", attrgetter("goodput_hours"), number, 1),
    RankedColumn("on-time\ncpu h", attrgetter("slo_on_time_goodput_hours"), number, 1),
    RankedColumn("best-effort\ncpu h", attrgetter("best_effort_goodput_hours"), number, 1),
    RankedColumn("best-effort\nlatency", attrgetter("best_effort_latency_seconds"), duration, -1),
    RankedColumn("stopped", attrgetter("preemptions"), number),
)
"""What is shown besides where jobs have deadlines."""
_RESERVATION_COLUMNS: Final[tuple[RankedColumn[Summary], ...]] = (
    RankedColumn("deadlines\nmet", attrgetter("slo_attainment"), percent, 1),
    RankedColumn("requests\naccepted", attrgetter("accepted_slo_jobs"), number),
    RankedColumn("of these\nmet", attrgetter("accepted_slo_attainment"), percent, 1),
    RankedColumn("of rejected\nones met", attrgetter("unreserved_slo_attainment"), percent, 1),
    RankedColumn("best-effort\ndone", attrgetter("best_effort_completed"), number, 1),
)
"""What is shown besides where jobs have asked for reservations."""
_PARTITION_COLUMNS: Final[tuple[RankedColumn[PartitionSummary], ...]] = (
    RankedColumn("processors", attrgetter("processors"), number),
    RankedColumn("jobs", attrgetter("jobs"), number),
    RankedColumn("average\nslowdown", attrgetter("average_bounded_slowdown"), number),
    RankedColumn("mean\nwait", attrgetter("mean_wait_seconds"), duration),
    RankedColumn("longest\nwait", attrgetter("max_wait_seconds"), duration),
    RankedColumn("used by\nits jobs", attrgetter("steady_utilization"), percent),
)
"""What is shown of each partition where the machine is divided."""
_MOST_PARTITIONS: Final = 24


def terminal_tables(summaries: Sequence[Summary]) -> list[Table]:
    """Waits and use, what differs from the first policy, deadlines and reservations.

    A row per policy, and no table of what there is none of.

    Tables are 100 characters wide.

    ``*`` marks the best of each column as it is printed: values that read the same are all best,
    and no mark is set where all are.
    """
    tables = [_terminal_table(summaries, _columns(summaries), _caption(summaries))]
    if any(math.isfinite(summary.held_up_share) for summary in summaries):
        tables.append(_terminal_table(summaries[1:], _AGAINST_COLUMNS, held_up_words(summaries)))
    if any(summary.slo_jobs for summary in summaries):
        tables.append(_terminal_table(summaries, _DEADLINE_COLUMNS, _deadline_caption(summaries)))
    if any(_has_reservations(summary) for summary in summaries):
        caption = "requests for reservations by jobs with a deadline, at submission"
        tables.append(_terminal_table(summaries, _RESERVATION_COLUMNS, caption))
    return tables


def _terminal_table(
    summaries: Sequence[Summary], columns: Sequence[RankedColumn[Summary]], caption: str
) -> Table:
    names, ranked = [summary.policy for summary in summaries], _ranked(columns, summaries)
    return ranked_table(
        names, summaries, ranked, heading="policy", width=_POLICY_WIDTH, caption=caption
    )


def partition_tables(every: Sequence[PartitionSummary]) -> list[Table]:
    """What the jobs of each partition experienced under each policy; no table of one pool."""
    if not every:
        return []
    some, more = every[:_MOST_PARTITIONS], len(every) - _MOST_PARTITIONS
    names = partition_names(some)
    caption = f"and {count(more, 'other')} (--format json has all)" if more > 0 else ""
    width = _POLICY_WIDTH
    return [
        ranked_table(
            names, some, _PARTITION_COLUMNS, heading="partition", width=width, caption=caption
        )
    ]


def partition_names(every: Sequence[PartitionSummary]) -> list[str]:
    """Names for rows: with the policy, if there are several."""
    several = len({each.policy for each in every}) > 1
    return [(f"{each.policy}: " if several else "") + (each.partition or "any") for each in every]


def partition_rows(
    every: Sequence[PartitionSummary],
) -> tuple[list[str], list[list[str]]]:
    """Headings, and the cells of each partition."""
    headings = [column.heading.replace("\n", " ") for column in _PARTITION_COLUMNS]
    cells = ranked_rows(every, _PARTITION_COLUMNS)
    return headings, [[text for text, _ in row] for row in cells]


def _columns(summaries: Sequence[Summary]) -> tuple[RankedColumn[Summary], ...]:
    """Waits and use, with what stands apart where there is any of it."""
    columns = list(_COLUMNS)
    if any(each.lost_hours for each in summaries):
        columns.insert(-1, _LOST_COLUMN)
    if any(each.mean_wait_seconds > each.mean_eligible_wait_seconds for each in summaries):
        columns.insert(2, _ELIGIBLE_COLUMN)
    return tuple(columns)


def _ranked(
    columns: Sequence[RankedColumn[Summary]], summaries: Sequence[Summary]
) -> Sequence[RankedColumn[Summary]]:
    """The columns, none of which has a best where policies killed different numbers of jobs."""
    if len({each.killed_jobs for each in summaries}) < 2:
        return columns
    return [replace(column, better=0) for column in columns]


def policy_rows(
    summaries: Sequence[Summary],
) -> tuple[list[str], list[list[tuple[str, bool]]]]:
    """Headings, and for each policy its cells as (text, whether it is the best of its column)."""
    deadlines = any(summary.slo_jobs for summary in summaries)
    against = len(summaries) > 1
    columns = (
        _columns(summaries)
        + (_AGAINST_COLUMNS if against else ())
        + (_DEADLINE_COLUMNS if deadlines else ())
    )
    headings = [column.heading.replace("\n", " ") for column in columns]
    return headings, ranked_rows(summaries, _ranked(columns, summaries))


def as_table(summaries: Sequence[Summary]) -> pl.DataFrame:
    """A row per policy, a column per field of ``Summary``."""
    return pl.DataFrame([summary.as_json() for summary in summaries], infer_schema_length=None)


def as_csv(summaries: Sequence[Summary]) -> str:
    """The table as CSV text, empty for what is unknown."""
    return as_table(summaries).write_csv()


def _caption(summaries: Sequence[Summary]) -> str:
    if not summaries:
        return "no schedule"
    first = summaries[0]
    words = f"{count(first.jobs, 'job')} on {count(round(first.processors), first.unit)}"
    return words + ("; * best of its column" if len(summaries) > 1 else "")


def held_up_words(summaries: Sequence[Summary]) -> str:
    """What the columns against the first policy mean; empty where there is only one."""
    if len(summaries) < 2:
        return ""
    return (
        f"against {summaries[0].policy}; held up: waits more than 1.1 times as long as there, and "
        "an hour"
    )


def never_started_words(summaries: Sequence[Summary]) -> str:
    """How many jobs never started under which policy; empty where all did under each."""
    left = [
        f"{count(summary.never_started, 'job')} under {summary.policy}"
        for summary in summaries
        if summary.never_started
    ]
    if not left:
        return ""
    return (
        f"Never started, and in no figure of waits or use: {', '.join(left)}. With --events, "
        "foresail explain says of each job why."
    )


def killed_words(summaries: Sequence[Summary]) -> str:
    """How many jobs each policy killed at their requested time; empty where none did."""
    alike = len({each.killed_jobs for each in summaries}) == 1
    killed = [
        f"{each.killed_jobs:,} of {count(each.jobs, 'job')} under "
        f"{'every policy' if alike and len(summaries) > 1 else each.policy}"
        for each in (summaries[:1] if alike else summaries)
        if each.killed_jobs
    ]
    if not killed:
        return ""
    return (
        f"Killed at their requested time, unfinished: {', '.join(killed)}. That waits and "
        "slowdowns are shorter for it is no better service."
    )


def _deadline_caption(summaries: Sequence[Summary]) -> str:
    return (
        f"{count(summaries[0].slo_jobs, 'job')} with a deadline; goodput is the work of jobs that "
        "completed"
    )


def _has_reservations(summary: Summary) -> bool:
    return summary.accepted_slo_jobs > 0 or math.isfinite(summary.unreserved_slo_attainment)
