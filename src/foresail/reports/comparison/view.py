"""Everything a report's parts look at, computed once: schedules, summaries, pairs, styles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from foresail.metrics.comparison import Comparison, compare, paired
from foresail.metrics.jobs import per_job
from foresail.metrics.summary import Summary, summaries
from foresail.metrics.usage import Span, span
from foresail.reports.style import PolicyStyle, policy_styles
from foresail.traces.schedule import Schedule


@dataclass(frozen=True)
class ReportView:
    """Schedules of one workload, the first being the baseline, with all that follows from them.

    ``comparisons`` and ``pairs`` have an entry for each schedule but the first.
    """

    schedules: tuple[Schedule, ...]
    styles: tuple[PolicyStyle, ...]
    jobs: tuple[pl.DataFrame, ...]
    summaries: tuple[Summary, ...]
    comparisons: tuple[Comparison, ...]
    pairs: tuple[pl.DataFrame, ...]
    window: Span

    @property
    def baseline(self) -> Summary:
        """Summary of the first schedule."""
        return self.summaries[0]


def view_of(schedules: Sequence[Schedule]) -> ReportView:
    """Compute what a report needs.

    Raises
    ------
    InputError
        If a schedule has no job in common with the first although both have jobs.
    """
    jobs = tuple(per_job(schedule) for schedule in schedules)
    comparable = len(jobs) > 1 and all(table.height for table in jobs)
    others = schedules[1:] if comparable else ()
    return ReportView(
        schedules=tuple(schedules),
        styles=policy_styles(schedules),
        jobs=jobs,
        summaries=tuple(summaries(schedules)),
        comparisons=tuple(compare(schedules[0], other) for other in others),
        pairs=tuple(paired(schedules[0], other) for other in others),
        window=span(schedules),
    )
