"""What jobs ask for over the course of a log, and how much of it commitments hold."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.cloud.purchasing.demand import BoughtJobs

Floats = NDArray[np.float64]

_MOST_SLOTS: Final = 200_000


def demand_course(jobs: BoughtJobs, units: Floats, level: float, bins: int) -> pl.DataFrame:
    """Units asked for of a resource, and those below a level, in equal parts of the log.

    Parameters
    ----------
    jobs
        Each running from its submission.
    units
        What each job holds, cores or GPUs; shape (jobs,).
    level
        Units that are reserved.
    bins
        Parts; fewer where the log has fewer slots.

    Returns
    -------
    pl.DataFrame
        A row per part: ``begin_hours``, ``end_hours``, mean ``units``, ``below_level`` (mean of
        what lies below it, hour by hour), ``level``, ``peak_units`` (the busiest hour's mean).
    """
    slots = int(np.clip(np.ceil(jobs.span_hours), 1, _MOST_SLOTS))
    edges = np.linspace(0.0, jobs.span_hours, slots + 1)
    length = float(edges[1] - edges[0])
    asked = np.diff(_work_until(jobs, units, edges)) / length
    first = np.unique(np.linspace(0, asked.size, bins + 1).astype(np.int64))[:-1]
    sizes = np.diff(np.append(first, asked.size))

    def mean(values: Floats) -> Floats:
        return np.asarray(np.add.reduceat(values, first) / sizes)

    return pl.DataFrame(
        {
            "begin_hours": edges[first],
            "end_hours": edges[first + sizes],
            "units": mean(asked),
            "below_level": mean(np.minimum(asked, level)),
            "level": np.full(first.size, level),
            "peak_units": np.maximum.reduceat(asked, first),
        }
    )


def _work_until(jobs: BoughtJobs, units: Floats, hours: Floats) -> Floats:
    """Unit hours of all jobs up to each moment."""

    def since(moments: Floats) -> Floats:
        order = np.argsort(moments, kind="stable")
        at = np.searchsorted(moments[order], hours, side="right")
        counted = np.concatenate([[0.0], np.cumsum(units[order])])[at]
        weighted = np.concatenate([[0.0], np.cumsum((units * moments)[order])])[at]
        return np.asarray(counted * hours - weighted)

    return since(jobs.start_hours) - since(jobs.start_hours + jobs.hours)
