"""Jobs that come, and tasks to be placed, in each hour of the log's whole days."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from foresail.analysis import columns
from foresail.analysis.columns import (
    DAY_BEGINS,
    DAY_ENDS,
    LocalTimes,
    local_times,
    per_hour,
    quartiles_by_hour,
)
from foresail.analysis.finding import Answer, Plot, study
from foresail.model.arrays import Floats
from foresail.model.registry import register
from foresail.model.words import count, duration, number, percent
from foresail.traces.workload import Workload

_NO_WHOLE_DAY: Final = "The log holds no whole day from midnight to midnight."


@register("analysis", "hourly_submissions")
@study("When are jobs submitted?", "3.3")
def hourly_submissions(workload: Workload) -> Answer | str:
    """Jobs submitted per hour of the day: median and quartiles over the days.

    Spec section 10, W3 (dissertation, figure 3.3). Incomplete first and last days are dropped.
    """
    times = local_times(workload)
    if not times.whole_days:
        return _NO_WHOLE_DAY
    table, scalars = _by_hour(times, np.ones(times.hours.size), "jobs")
    scalars["hours_are_local"] = float(times.is_local)
    verdict = (
        f"{number(scalars['mean_jobs_per_hour'])} jobs an hour on average and "
        f"{number(scalars['most_jobs_per_hour'])} in the busiest one; "
        f"{percent(scalars['share_by_day'])} come between 7 and 19 h, most at "
        f"{scalars['busiest_hour']:.0f} h."
    )
    plot = _plot("jobs submitted per hour", verdict)
    return Answer(verdict, scalars, {"hours": table}, (plot,), _notes(times))


@register("analysis", "hourly_tasks")
@study("How many tasks are to be placed?", "3.3")
def hourly_tasks(workload: Workload) -> Answer | str:
    """Tasks submitted per hour of the day: median and quartiles over the days.

    Spec section 10, W4 (dissertation, figure 3.4). Incomplete first and last days are dropped.
    """
    times = local_times(workload)
    tasks = columns.tasks(workload)
    if not np.isfinite(tasks).any():
        return "No job says how many tasks it has."
    if not times.whole_days:
        return _NO_WHOLE_DAY
    table, scalars = _by_hour(times, np.nan_to_num(tasks), "tasks")
    most = scalars["most_tasks_per_hour"]
    apart = f", one every {duration(3600 / most)}" if most else ""
    verdict = (
        f"{number(scalars['mean_tasks_per_hour'])} tasks an hour on average and "
        f"{number(most)} in the busiest one{apart}."
    )
    plot = _plot("tasks submitted per hour", verdict)
    notes = _notes(times, "Logs in the Standard Workload Format count every processor as a task.")
    return Answer(verdict, scalars, {"hours": table}, (plot,), notes)


def _by_hour(
    times: LocalTimes, amounts: Floats, what: str
) -> tuple[pl.DataFrame, dict[str, float]]:
    """Quartiles by hour; rates, the share by day and the busiest hour, of what is counted."""
    counts = per_hour(times, amounts)
    table = quartiles_by_hour(counts)
    by_hour = counts.sum(axis=0)
    total = float(by_hour.sum())
    scalars = {
        f"mean_{what}_per_hour": float(counts.mean()),
        f"most_{what}_per_hour": float(counts.max()),
        f"busiest_median_{what}_per_hour": float(table["median"].to_numpy().max()),
        f"quietest_median_{what}_per_hour": float(table["median"].to_numpy().min()),
        "busiest_hour": float(by_hour.argmax()),
        "share_by_day": float(by_hour[DAY_BEGINS:DAY_ENDS].sum()) / total if total else 0.0,
        "whole_days": float(counts.shape[0]),
    }
    return table, scalars


def _plot(label: str, said: str) -> Plot:
    return Plot(
        kind="band",
        table="hours",
        x="hour",
        y="median",
        x_label="hour of the day",
        y_label=label,
        alternative=said,
        x_kind="hour",
    )


def _notes(times: LocalTimes, *more: str) -> tuple[str, ...]:
    days = count(len(times.whole_days), "whole day")
    return ("Line: median over the days; band: quartiles.", *more, times.said, f"{days}.")
