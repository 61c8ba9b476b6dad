"""Jobs that never wait: prices of their work, and demand as priced stacks (section 4.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.cloud.over_time import require_within_horizon
from foresail.cloud.prices import GIB
from foresail.cloud.purchasing.stacked_demand import Stacks, segment_counts, stack_jobs
from foresail.cloud.purchasing.terms import PurchaseTerms, TransientTerms
from foresail.model.distribution import Booleans, Floats, Integers
from foresail.model.errors import InputError
from foresail.traces.workload import Workload

ON_DEMAND: Final = 0
TRANSIENT: Final = 1
FURTHER: Final = 2
RENTED: Final = ("on-demand", "transient", "further")
"""Options without a commitment, by code."""


@dataclass(frozen=True, slots=True, eq=False)
class JobPrices:
    """The cheapest option without a commitment, per job; all arrays have shape (jobs,)."""

    kind: NDArray[np.int8]
    """Code of the option: see ``RENTED``."""
    unit_price: Floats
    """Relative cost of one unit of the job for one hour of its runtime."""
    on_demand_share: Floats
    """Hours on demand among that: 1 for jobs on demand, the expected restarts of transient ones."""


def transient_cost(hours: Floats, terms: TransientTerms, on_demand_price: float = 1.0) -> Floats:
    """Expected cost of jobs on transient capacity, restarted on demand once (eq. 5.1).

    ``hours`` are runtimes, of any shape, as that of the result; the restart costs
    ``on_demand_price`` an hour. The cost is of one unit of each job, relative to an hour on demand.
    """
    lost = terms.revocation.revoked(hours)
    run = terms.revocation.mean_run(hours)
    return (1.0 - lost) * terms.price * hours + lost * (terms.price * run + on_demand_price * hours)


def expected_costs(believed_hours: Floats, terms: PurchaseTerms) -> tuple[Floats, Booleans]:
    """Least expected cost of jobs whose runtimes are believed, and whether it is on transient ones.

    A job that is revoked is paid again on demand. With one believed runtime a job this is the
    published rule (section 4.2): transient capacity if E[C] is below the cost on demand.

    ``believed_hours`` are equally likely runtimes, shape (jobs, runtimes). Costs are of one unit of
    each job, relative to an hour on demand; shape (jobs,).
    """
    cheapest = believed_hours.mean(axis=1)
    if terms.transient is None:
        return cheapest, np.zeros(cheapest.size, np.bool_)
    expected = transient_cost(believed_hours, terms.transient).mean(axis=1)
    return np.minimum(expected, cheapest), expected < cheapest


def job_prices(hours: Floats, terms: PurchaseTerms, on_demand_price: float = 1.0) -> JobPrices:
    """The cheapest option without a commitment for jobs of known lengths (section 4.1).

    ``hours`` are runtimes, shape (jobs,); ``on_demand_price`` is what an hour on demand is worth,
    less than 1 with a sustained-use discount. The transient cost is per hour of useful work.
    """
    price = np.full(hours.shape, on_demand_price)
    kind = np.full(hours.shape, ON_DEMAND, np.int8)
    share = np.ones(hours.shape)
    if terms.transient is not None:
        cost = transient_cost(hours, terms.transient, on_demand_price)
        transient = np.full(hours.shape, terms.transient.price)
        np.divide(cost, hours, out=transient, where=hours > 0.0)
        restarts = np.where(hours > 0.0, terms.transient.revocation.revoked(hours), 0.0)
        cheaper = transient < price
        price[cheaper], share[cheaper] = transient[cheaper], restarts[cheaper]
        kind[cheaper] = TRANSIENT
    further = terms.further_prices(hours)
    if further is not None:
        cheaper = further < price
        price[cheaper], kind[cheaper], share[cheaper] = further[cheaper], FURTHER, 0.0
    return JobPrices(kind, price, share)


HOURS_PER_YEAR: Final = 8760.0
HOURS_PER_MONTH: Final = 730.0
"""A month is a twelfth of a year: logs need not say which month they began in."""
GIB_PER_CORE: Final = 4.0
"""Memory of a job whose log does not say: that of a standard machine."""
_SECONDS_PER_HOUR: Final = 3600.0

Extension = Literal["refuse", "repeat"]


@dataclass(frozen=True, eq=False)
class BoughtJobs:
    """Jobs as a buyer sees them, by start; arrays have shape (jobs,)."""

    row: Integers
    """Row in the workload's jobs table."""
    start_hours: Floats
    """Start of each, from the first start of any."""
    hours: Floats
    """Runtimes."""
    tasks: Integers
    """Pieces that may be on different machines."""
    cores_per_task: Floats
    gib_per_task: Floats
    gpus_per_task: Floats
    """Resources that each piece asks for."""
    left_out: int
    """Jobs of the log without a runtime or a size above 0."""
    memory_known: bool
    """True if the log says what memory jobs ask for; else it is 4 GiB per core."""
    first_hour_of_week: float
    """Hours from Monday 00:00 (UTC) to the first start; 0 where the log does not say."""

    @property
    def cores(self) -> Floats:
        """Cores of whole jobs."""
        return self.tasks * self.cores_per_task

    @property
    def gib(self) -> Floats:
        """Memory of whole jobs, in GiB."""
        return self.tasks * self.gib_per_task

    @property
    def gpus(self) -> Floats:
        """GPUs of whole jobs."""
        return self.tasks * self.gpus_per_task

    @property
    def span_hours(self) -> float:
        """Hours from the first start to the last end."""
        return float((self.start_hours + self.hours).max())

    def between(self, begin_hours: float, end_hours: float) -> BoughtJobs:
        """The jobs that start in a period, its beginning the new zero."""
        kept = (self.start_hours >= begin_hours) & (self.start_hours < end_hours)
        chosen = self.only(kept)
        return replace(
            chosen,
            start_hours=chosen.start_hours - begin_hours,
            left_out=0,
            first_hour_of_week=(self.first_hour_of_week + begin_hours) % 168.0,
        )

    def only(self, kept: Booleans) -> BoughtJobs:
        """Some of the jobs; ``kept`` has shape (jobs,)."""
        return replace(
            self,
            row=self.row[kept],
            start_hours=self.start_hours[kept],
            hours=self.hours[kept],
            tasks=self.tasks[kept],
            cores_per_task=self.cores_per_task[kept],
            gib_per_task=self.gib_per_task[kept],
            gpus_per_task=self.gpus_per_task[kept],
        )


def bought_jobs(workload: Workload) -> BoughtJobs:
    """The jobs of a log, each starting when it was submitted.

    Raises ``InputError`` if no job has a runtime and a size above 0, or the log lasts for more than
    a century.
    """
    require_within_horizon(workload)
    table = workload.jobs.select(
        *("submit_seconds", "runtime_seconds", "tasks"),
        *("cpus_per_task", "memory_bytes_per_task", "gpus_per_task"),
    ).with_row_index("row")
    sized = table.filter(
        (pl.col("runtime_seconds") > 0.0)
        & (pl.col("tasks") > 0)
        & (pl.col("cpus_per_task") > 0.0)
        & pl.col("submit_seconds").is_finite()
    ).sort("submit_seconds", maintain_order=True)
    if not sized.height:
        raise workload.meta.nothing_left(
            "no jobs to buy for", "jobs with a submit time, a runtime and cpus above 0"
        )
    submit = sized["submit_seconds"].to_numpy()
    cores = sized["cpus_per_task"].to_numpy().astype(np.float64)
    memory = sized["memory_bytes_per_task"].cast(pl.Float64)
    known = memory.is_not_null() & (memory > 0.0)
    gib = memory.fill_null(0.0).to_numpy() / GIB
    origin = workload.meta.origin_unix_seconds
    # The Unix epoch was a Thursday: three days after a Monday.
    hour = 0.0 if origin is None else (origin + submit[0]) / _SECONDS_PER_HOUR + 72.0
    return BoughtJobs(
        row=sized["row"].to_numpy().astype(np.int64),
        start_hours=(submit - submit[0]) / _SECONDS_PER_HOUR,
        hours=sized["runtime_seconds"].to_numpy() / _SECONDS_PER_HOUR,
        tasks=sized["tasks"].to_numpy().astype(np.int64),
        cores_per_task=cores,
        gib_per_task=np.where(known.to_numpy(), gib, GIB_PER_CORE * cores),
        gpus_per_task=sized["gpus_per_task"].fill_null(0.0).to_numpy().astype(np.float64),
        left_out=table.height - sized.height,
        memory_known=bool(known.any()),
        first_hour_of_week=hour % 168.0,
    )


def horizon_slots(
    span_hours: float, slot_hours: float, longest_term_years: int, extension: Extension
) -> tuple[int, int]:
    """Slots that the log fills, and slots to plan for.

    Raises ``InputError`` if the log is refused.

    Parameters
    ----------
    span_hours
        Of the log.
    slot_hours
        Length of a slot.
    longest_term_years
        Of the commitments on sale; 0 for none.
    extension
        What to do with a log shorter than that: ``repeat`` it over the whole term, or ``refuse``
        one that is shorter than a year.
    """
    filled = max(1, int(np.ceil(span_hours / slot_hours - 1e-9)))
    term = round(longest_term_years * HOURS_PER_YEAR / slot_hours)
    if filled >= term or extension == "repeat":
        return filled, max(filled, term)
    if span_hours < HOURS_PER_YEAR:
        raise InputError(
            "the log is shorter than the term of a reservation",
            field="extension",
            value=f"{span_hours / 24.0:.1f} days",
            expected="365 days of jobs or more, or extension=repeat to assume that it repeats over "
            f"the {longest_term_years * 365} days that are then planned for",
        )
    return filled, filled


@dataclass(frozen=True, eq=False)
class PricedDemand:
    """Demand of one resource in every slot, stacked with the dearest at the bottom."""

    stacks: Stacks
    """Unit hours by how often they are in use: see ``Stacks``."""
    price: Floats
    on_demand_share: Floats
    kind: NDArray[np.int8]
    """Kind of every class: see ``JobPrices``."""
    slot_hours: float
    """Length of a slot."""

    @property
    def slots(self) -> int:
        """Number of slots."""
        return self.stacks.first.size


def priced_demand(
    jobs: BoughtJobs, units: Floats, prices: JobPrices, slot_hours: float, filled: int, slots: int
) -> PricedDemand:
    """Stack jobs that start at once, each a class of price.

    ``units`` are what each job holds of the resource, shape (jobs,). Demand within a slot is
    averaged; slots beyond the filled ones (see ``horizon_slots``) repeat them.
    """
    # Jobs of one price hardly differ otherwise; where they do, they are more classes than need be.
    order = np.argsort(-prices.unit_price, kind="stable")
    sorted_price, sorted_kind = prices.unit_price[order], prices.kind[order]
    sorted_share = prices.on_demand_share[order]
    new = np.ones(order.size, np.bool_)
    new[1:] = (
        (np.diff(sorted_price) != 0.0)
        | (np.diff(sorted_kind) != 0)
        | (np.diff(sorted_share) != 0.0)
    )
    classes = np.empty(order.size, np.int32)
    classes[order] = np.cumsum(new) - 1
    start = jobs.start_hours / slot_hours
    end = np.minimum(start + jobs.hours / slot_hours, float(filled))
    counts = segment_counts(start, end, filled)
    first = np.cumsum(counts) - counts
    stacks = stack_jobs(start, end, units, classes, order, first, int(counts.sum()))
    slot = np.arange(slots) % filled
    repeated = Stacks(stacks.first[slot], stacks.size[slot], stacks.classes, stacks.units)
    return PricedDemand(
        repeated, sorted_price[new], sorted_share[new], sorted_kind[new], slot_hours
    )
