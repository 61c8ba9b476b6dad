"""Everything a report's parts look at, computed once; tables and verdict for terminals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from typing import Any, Final

import polars as pl
from rich.table import Table

from foresail.metrics import comparison
from foresail.metrics.jobs import per_job
from foresail.metrics.summary import PartitionSummary, Summary, summaries
from foresail.metrics.usage import Span, span
from foresail.model.words import count, duration, number, percent
from foresail.reports.document import RankedColumn, RankedTable
from foresail.reports.style import PolicyStyle, policy_styles
from foresail.traces.schedule import Schedule
from foresail.traces.workload import Workload

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
"""Column beside the mean wait where jobs wait for others, or for what is known to come."""
_LOST_COLUMN: Final[RankedColumn[Summary]] = RankedColumn(
    "lost\ncpu h", attrgetter("lost_hours"), number, -1
)
"""Column beside use where attempts were preempted or lost."""
_AGAINST_COLUMNS: Final[tuple[RankedColumn[Summary], ...]] = (
    RankedColumn("slowdown\nless by", attrgetter("slowdown_saved_share"), percent, 1),
    RankedColumn("longest wait,\ntimes", attrgetter("longest_wait_ratio"), number, -1),
    RankedColumn("jobs\ndelayed", attrgetter("held_up_share"), percent, -1),
    RankedColumn("longer\nby", attrgetter("held_up_mean_seconds"), duration, -1),
)
"""Further columns where there is more than one policy: gains, and who pays for them."""
_DEADLINE_COLUMNS: Final[tuple[RankedColumn[Summary], ...]] = (
    RankedColumn("deadlines\nmissed", attrgetter("slo_miss_rate"), percent, -1),
    RankedColumn("goodput\ncpu h", attrgetter("goodput_hours"), number, 1),
    RankedColumn("on-time\ncpu h", attrgetter("slo_on_time_goodput_hours"), number, 1),
    RankedColumn("best-effort\ncpu h", attrgetter("best_effort_goodput_hours"), number, 1),
    RankedColumn("best-effort\nlatency", attrgetter("best_effort_latency_seconds"), duration, -1),
    RankedColumn("stopped", attrgetter("preemptions"), number),
)
"""Further columns where jobs have deadlines."""
_RESERVATION_COLUMNS: Final[tuple[RankedColumn[Summary], ...]] = (
    RankedColumn("deadlines\nmet", attrgetter("slo_attainment"), percent, 1),
    RankedColumn("requests\naccepted", attrgetter("accepted_slo_jobs"), number),
    RankedColumn("of these\nmet", attrgetter("accepted_slo_attainment"), percent, 1),
    RankedColumn("of rejected\nones met", attrgetter("unreserved_slo_attainment"), percent, 1),
    RankedColumn("best-effort\ndone", attrgetter("best_effort_completed"), number, 1),
)
"""Further columns where jobs have asked for reservations."""
_PARTITION_COLUMNS: Final[tuple[RankedColumn[PartitionSummary], ...]] = (
    RankedColumn("processors", attrgetter("processors"), number),
    RankedColumn("jobs", attrgetter("jobs"), number),
    RankedColumn("average\nslowdown", attrgetter("average_bounded_slowdown"), number),
    RankedColumn("mean\nwait", attrgetter("mean_wait_seconds"), duration),
    RankedColumn("longest\nwait", attrgetter("max_wait_seconds"), duration),
    RankedColumn("used by\nits jobs", attrgetter("steady_utilization"), percent),
)
"""Columns of each partition where the machine is divided."""
_MOST_PARTITIONS: Final = 24


def summary_tables(summaries: Sequence[Summary]) -> list[tuple[RankedTable[Summary], str]]:
    """Waits and use, what differs from the first policy, deadlines and reservations.

    A row per policy, a caption each, and no table of what there is none of.
    """
    tables = [(summaries, _columns(summaries), _caption(summaries))]
    if any(math.isfinite(summary.held_up_share) for summary in summaries):
        caption = (
            f"against {summaries[0].policy}; delayed: waits more than 1.1 times as long as there"
        )
        tables.append((summaries[1:], _AGAINST_COLUMNS, f"{caption}, and an hour"))
    if any(summary.slo_jobs for summary in summaries):
        jobs = f"{count(summaries[0].slo_jobs, 'job')} with a deadline"
        caption = f"{jobs}; goodput is the work of jobs that completed"
        tables.append((summaries, _DEADLINE_COLUMNS, caption))
    if any(
        each.accepted_slo_jobs or math.isfinite(each.unreserved_slo_attainment)
        for each in summaries
    ):
        caption = "requests for reservations by jobs with a deadline, at submission"
        tables.append((summaries, _RESERVATION_COLUMNS, caption))
    return [(_by_policy(some, columns), caption) for some, columns, caption in tables]


def _by_policy(
    summaries: Sequence[Summary], columns: Sequence[RankedColumn[Summary]]
) -> RankedTable[Summary]:
    """A row per policy; no column has a best where policies killed different numbers of jobs."""
    if len({each.killed_jobs for each in summaries}) > 1:
        columns = [replace(column, better=0) for column in columns]
    return RankedTable("policy", [each.policy for each in summaries], summaries, columns)


def terminal_tables(summaries: Sequence[Summary]) -> list[Table]:
    """Lay them out for a terminal, 100 characters wide."""
    return [
        each.for_terminal(_POLICY_WIDTH, caption) for each, caption in summary_tables(summaries)
    ]


def partition_table(every: Sequence[PartitionSummary]) -> RankedTable[PartitionSummary]:
    """Summaries of the jobs of each partition; named with the policy, if there are several."""
    several = len({each.policy for each in every}) > 1
    names = [(f"{each.policy}: " if several else "") + (each.partition or "any") for each in every]
    return RankedTable("partition", names, every, _PARTITION_COLUMNS)


def partition_tables(every: Sequence[PartitionSummary]) -> list[Table]:
    """The first partitions for a terminal; no table of one pool."""
    if not every:
        return []
    more = len(every) - _MOST_PARTITIONS
    caption = f"and {count(more, 'other')} (--format json has all)" if more > 0 else ""
    shown = partition_table(every[:_MOST_PARTITIONS])
    return [shown.for_terminal(_POLICY_WIDTH, caption)]


def _columns(summaries: Sequence[Summary]) -> tuple[RankedColumn[Summary], ...]:
    """Waits and use, with what stands apart where there is any of it."""
    columns = list(_COLUMNS)
    if any(each.lost_hours for each in summaries):
        columns.insert(-1, _LOST_COLUMN)
    if any(each.mean_wait_seconds > each.mean_eligible_wait_seconds for each in summaries):
        columns.insert(2, _ELIGIBLE_COLUMN)
    return tuple(columns)


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


def never_started_words(summaries: Sequence[Summary]) -> str:
    """Say how many jobs never started under which policy; empty where all did under each."""
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
    """Say how many jobs each policy killed at their requested time; empty where none did."""
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


@dataclass(frozen=True)
class ReportView:
    """Schedules of one workload, the first being the baseline, with all that follows from them.

    ``comparisons`` and ``pairs`` have an entry for each schedule but the first.
    """

    schedules: tuple[Schedule, ...]
    styles: tuple[PolicyStyle, ...]
    jobs: tuple[pl.DataFrame, ...]
    summaries: tuple[Summary, ...]
    comparisons: tuple[comparison.Comparison, ...]
    pairs: tuple[pl.DataFrame, ...]
    window: Span

    @property
    def baseline(self) -> Summary:
        """Summary of the first schedule."""
        return self.summaries[0]


def view_of(schedules: Sequence[Schedule]) -> ReportView:
    """Compute what a report needs.

    Raises ``InputError`` if a schedule has no job in common with the first although both have jobs.
    """
    jobs = tuple(per_job(schedule) for schedule in schedules)
    comparable = len(jobs) > 1 and all(table.height for table in jobs)
    others = schedules[1:] if comparable else ()
    return ReportView(
        schedules=tuple(schedules),
        styles=policy_styles(schedules),
        jobs=jobs,
        summaries=tuple(summaries(schedules)),
        comparisons=tuple(comparison.compare(schedules[0], other) for other in others),
        pairs=tuple(comparison.paired(schedules[0], other) for other in others),
        window=span(schedules),
    )


def verdict_of(workload: Workload, schedules: Sequence[Schedule]) -> Mapping[str, Any] | None:
    """Return what a log's recorded waits say of simulations of it: ``words``, and the figures.

    None where nobody is known to have waited. Of fewer than half of the jobs, and of a machine of
    another size, they say nothing.
    """
    recorded = comparison.recorded_waits(workload)
    if recorded is None:
        waited = workload.jobs.filter(pl.col("recorded_wait_seconds") > 0.0).height
        known = f"{count(waited, 'job')} of {len(workload):,} are known to have waited"
        said = f"{known}: the log's waits are known of too few jobs to be compared."
        return {"words": said} if waited else None
    stated, simulated = workload.meta.stated_processors, workload.meta.processors
    if stated not in (None, simulated):
        of = f"{stated:,} processors, not of {simulated:,}"
        return {"words": f"What the log recorded is of {of}: it is not compared."}
    found = comparison.nearest(recorded, schedules)
    if found is None:
        return {"words": "No job whose wait was recorded came to its end here."}
    return {"words": _said(found), "is_usable": found.is_usable, **asdict(found)}


def _said(found: comparison.Resemblance) -> str:
    every = count(found.of_jobs, "job")
    jobs = f"all {every}"
    if found.jobs < found.of_jobs:
        jobs = f"{found.jobs:,} of {every}, those with a recorded wait that came to their end,"
    compared = (
        f"{jobs} {_side_said(found.recorded)} as recorded, and "
        f"{_side_said(found.simulated)} under {found.policy}, which comes nearest; the rank "
        f"correlation of their waits is {number(found.rank_correlation)}"
    )
    if not found.is_judged:
        return f"Too few jobs that waited to judge the model of the machine by: {compared}."
    if found.is_usable:
        return (
            f"The model of the machine passes: {compared}. It knows nothing of outages, "
            "reservations and limits of queues and users, so go by the differences between "
            "policies, not by how long their waits are."
        )
    return (
        f"Do not use this model of the machine: {compared}. To be of use, that is to be at least "
        f"{number(comparison.LEAST_RANK_CORRELATION)}, and mean and median within "
        f"{number(comparison.MOST_TIMES)} times of each other. Partitions, limits of queues and "
        "users, reservations, outages or another number of processors, which it knows nothing of, "
        "decided how long jobs waited."
    )


def _side_said(side: comparison.Side) -> str:
    return (
        f"waited {duration(side.mean_wait_seconds)} on average (median "
        f"{duration(side.median_wait_seconds)}, slowdown {number(side.average_bounded_slowdown)})"
    )
