"""How many jobs come in each hour of the day, over the whole days of the log."""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np

from foresail.analysis._hourly import NO_WHOLE_DAY, QUARTILES, hourly_plot, hourly_scalars
from foresail.analysis.clock import local_times, per_hour, quartiles_by_hour
from foresail.analysis.finding import Finding, PlainAnalysis, Unavailable
from foresail.model.registry import register
from foresail.model.words import count, number, percent
from foresail.traces.workload import Workload

TITLE: Final = "When are jobs submitted?"


@register("analysis", "hourly_submissions")
class HourlySubmissions(PlainAnalysis):
    """Jobs submitted per hour of the day: median and quartiles over the days.

    Spec section 10, W3 (dissertation, figure 3.3).
    """

    section: ClassVar[str] = "3.3"

    def examine(self, workload: Workload) -> Finding | Unavailable:
        """Submissions by hour; incomplete first and last days are dropped."""
        times = local_times(workload)
        if not times.whole_days:
            return Unavailable("hourly_submissions", TITLE, NO_WHOLE_DAY)
        counts = per_hour(times, np.ones(times.hours.size))
        table = quartiles_by_hour(counts)
        scalars = hourly_scalars(counts, table, "jobs") | {"hours_are_local": float(times.is_local)}
        verdict = (
            f"{number(scalars['mean_jobs_per_hour'])} jobs an hour on average and "
            f"{number(scalars['most_jobs_per_hour'])} in the busiest one; "
            f"{percent(scalars['share_by_day'])} come between 7 and 19 h, most at "
            f"{scalars['busiest_hour']:.0f} h."
        )
        return Finding(
            name="hourly_submissions",
            title=TITLE,
            verdict=verdict,
            scalars=scalars,
            tables={"hours": table},
            plots=(hourly_plot("jobs submitted per hour", verdict),),
            notes=(QUARTILES, times.said, f"{count(len(times.whole_days), 'whole day')}."),
        )
