"""What jobs ask for over the course of a log, and how much of it commitments hold."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from foresail.cloud.purchasing.demand import BoughtJobs
from foresail.cloud.work import work_until
from foresail.model.arrays import Floats

_MOST_SLOTS: Final = 200_000


def demand_course(jobs: BoughtJobs, units: Floats, level: float, bins: int) -> pl.DataFrame:
    """Units asked for of a resource, and those below a level, in equal parts of the log.

    ``units`` are the cores or GPUs that each job holds from its submission on, shape (jobs,);
    ``level`` are those reserved. There are fewer parts than ``bins`` where the log has fewer slots.

    Returns
    -------
    pl.DataFrame
        A row per part: ``begin_hours``, ``end_hours``, mean ``units``, ``below_level`` (mean of
        what lies below it, hour by hour), ``level``, ``peak_units`` (the busiest hour's mean).
    """
    slots = int(np.clip(np.ceil(jobs.span_hours), 1, _MOST_SLOTS))
    edges = np.linspace(0.0, jobs.span_hours, slots + 1)
    length = float(edges[1] - edges[0])
    end_hours = jobs.start_hours + jobs.hours
    asked = np.diff(work_until(edges, jobs.start_hours, end_hours, units)) / length
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
