"""The advised amounts of a plan at risk, as machines, and demand beside them."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from foresail.cloud.prices import PriceCatalogue
from foresail.cloud.purchasing.demand import BoughtJobs, bought_jobs
from foresail.cloud.purchasing.machines import (
    Amount,
    ReservedMachines,
    machines_for,
    sizes_of,
)
from foresail.cloud.purchasing.mix_report import MixReport
from foresail.cloud.purchasing.offline_plan import reserved_name
from foresail.cloud.purchasing.resources import gpu_ratios
from foresail.cloud.work import work_until
from foresail.model.arrays import Floats
from foresail.traces.workload import Workload

_BINS: Final = 250
_MOST_SLOTS: Final = 200_000


def advised_machines(
    workload: Workload, report: MixReport, catalogue: PriceCatalogue
) -> tuple[ReservedMachines, ...]:
    """What to reserve at the risk that was asked for: whole machines, below the amounts."""
    sizes = sizes_of(catalogue)
    per_gpu = gpu_ratios(bought_jobs(workload), report.resources)
    found: list[ReservedMachines] = []
    for years, price in report.terms.reserved:
        name = reserved_name(years)
        units = {resource: plan.units[name] for resource, plan in report.risk.items()}
        found += machines_for(Amount.of(units, per_gpu), name, price, sizes)
    return tuple(found)


def advised_course(workload: Workload, report: MixReport) -> pl.DataFrame:
    """Demand over the log with the advised level of what is counted (see ``demand_course``).

    The level is on top of what is committed on the day of the prices.
    """
    jobs = bought_jobs(workload)
    counted = report.counted
    units = jobs.gpus if counted == "GPUs" else jobs.cores
    level = sum(report.risk[counted].units.values()) + report.held_units(counted)
    return demand_course(jobs, units, level, _BINS)


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
