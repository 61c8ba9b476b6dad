"""How many tasks have to be placed in each hour of the day, over the whole days of the log."""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np

from foresail.analysis import columns
from foresail.analysis._hourly import NO_WHOLE_DAY, QUARTILES, hourly_plot, hourly_scalars
from foresail.analysis.clock import local_times, per_hour, quartiles_by_hour
from foresail.analysis.finding import Finding, PlainAnalysis, Unavailable
from foresail.model.registry import register
from foresail.model.words import count, duration, number
from foresail.traces.workload import Workload

TITLE: Final = "How many tasks are to be placed?"


@register("analysis", "hourly_tasks")
class HourlyTasks(PlainAnalysis):
    """Tasks submitted per hour of the day: median and quartiles over the days.

    Spec section 10, W4 (dissertation, figure 3.4).
    """

    section: ClassVar[str] = "3.3"

    def examine(self, workload: Workload) -> Finding | Unavailable:
        """Tasks by hour; incomplete first and last days are dropped."""
        times = local_times(workload)
        tasks = columns.tasks(workload)
        if not np.isfinite(tasks).any():
            return Unavailable("hourly_tasks", TITLE, "No job says how many tasks it has.")
        if not times.whole_days:
            return Unavailable("hourly_tasks", TITLE, NO_WHOLE_DAY)
        counts = per_hour(times, np.nan_to_num(tasks))
        table = quartiles_by_hour(counts)
        scalars = hourly_scalars(counts, table, "tasks")
        most = scalars["most_tasks_per_hour"]
        apart = f", one every {duration(3600 / most)}" if most else ""
        verdict = (
            f"{number(scalars['mean_tasks_per_hour'])} tasks an hour on average and "
            f"{number(most)} in the busiest one{apart}."
        )
        return Finding(
            name="hourly_tasks",
            title=TITLE,
            verdict=verdict,
            scalars=scalars,
            tables={"hours": table},
            plots=(hourly_plot("tasks submitted per hour", verdict),),
            notes=(
                QUARTILES,
                "Logs in the Standard Workload Format count every processor as a task.",
                times.said,
                f"{count(len(times.whole_days), 'whole day')}.",
            ),
        )
