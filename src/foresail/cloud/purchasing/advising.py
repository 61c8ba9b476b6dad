"""The advised amounts of a plan at risk, as machines, and demand beside them."""

from __future__ import annotations

import polars as pl

from foresail.cloud.prices import PriceCatalogue
from foresail.cloud.purchasing.course import demand_course
from foresail.cloud.purchasing.demand import bought_jobs
from foresail.cloud.purchasing.machines import (
    Amount,
    ReservedMachines,
    machines_for,
    sizes_of,
)
from foresail.cloud.purchasing.mix_report import MixReport
from foresail.cloud.purchasing.offline_plan import reserved_name
from foresail.cloud.purchasing.resources import gpu_ratios
from foresail.traces.workload import Workload

_BINS = 250


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
