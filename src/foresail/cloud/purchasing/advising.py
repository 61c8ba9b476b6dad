"""The advised amounts of a plan at risk, as machines, and demand beside them."""

from __future__ import annotations

import polars as pl

from foresail.cloud.prices import Catalogue
from foresail.cloud.purchasing.course import demand_course
from foresail.cloud.purchasing.demand import GIB_PER_CORE, bought_jobs
from foresail.cloud.purchasing.machines import ReservedMachines, machines_for, sizes_of
from foresail.cloud.purchasing.mix import MixReport
from foresail.cloud.purchasing.offline import reserved_name
from foresail.traces.workload import Workload

_BINS = 250


def advised_machines(report: MixReport, catalogue: Catalogue) -> tuple[ReservedMachines, ...]:
    """What to reserve at the risk that was asked for: whole machines, below the amounts."""
    sizes = sizes_of(catalogue)
    cores, memory = report.risk["cores"], report.risk.get("GiB")
    found: list[ReservedMachines] = []
    for years, price in report.terms.reserved:
        name = reserved_name(years)
        amount = cores.units[name]
        gib = GIB_PER_CORE * amount if memory is None else memory.units[name]
        found += machines_for(amount, gib, name, price, sizes)
    return tuple(found)


def advised_course(workload: Workload, report: MixReport) -> pl.DataFrame:
    """Demand over the log with the advised level of cores (see ``demand_course``)."""
    return demand_course(bought_jobs(workload), sum(report.risk["cores"].units.values()), _BINS)
