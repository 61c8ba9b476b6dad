"""The practical policy at work: jobs run on reserved machines, or on rented ones (5.3 of 003)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.cloud.purchasing.demand import HOURS_PER_MONTH, ON_DEMAND, BoughtJobs
from foresail.cloud.purchasing.machines import ReservedMachines, pieces_of, rent_per_hour, sizes_of
from foresail.cloud.purchasing.offline import Row, month_table
from foresail.cloud.purchasing.offline_plan import COMMITTED, SCHEDULED
from foresail.cloud.purchasing.terms import resource_prices
from foresail.model.arrays import Floats
from foresail.model.errors import InputError
from foresail_studies.purchasing.placing import Fleet, FleetPlacement, fleets_of, place
from foresail_studies.purchasing.renting import RentedJobs, by_month
from foresail_studies.purchasing.retired_offers import choose_options, price_of_hours
from foresail_studies.purchasing.training import OnlinePolicy

RESERVED = "reserved"


@dataclass(frozen=True, eq=False)
class OnlineOutcome:
    """Payments of the policy after the training period, in the catalogue's currency."""

    reserved: tuple[ReservedMachines, ...]
    """The machines it reserved at the beginning, and those it had."""
    jobs: int
    hours: float
    """How many jobs it served, over what time."""
    cost: float
    """What it paid; reserved machines are paid for this time alone (they serve on), and what was
    committed before is in it for nothing."""
    all_on_demand_cost: float
    """What the same jobs cost on machines on demand, each the cheapest that holds it."""
    over_time: pl.DataFrame
    """Month, option, and there: core hours used and idle, cost."""
    revoked_hours: float
    """Expected core hours of transient runs that were lost."""


def serve(
    policy: OnlinePolicy, jobs: BoughtJobs, predicted_hours: Floats, elapsed_hours: float = 0.0
) -> OnlineOutcome:
    """Run jobs on what is paid for, and rent machines for those that find no room (section 4.2).

    A job runs on reserved machines if all of it fits there when it starts; on machines that are
    given back, as scheduled ones are at the end of their window, only if it is predicted to end
    before. Else it is rented the option that is cheapest for its predicted runtime (see
    ``choose_options``), on the cheapest machines that hold it. One that outlives its spot block or
    window, or is revoked, starts again on demand; revocations are paid in expectation.

    Jobs are in order of start. ``predicted_hours`` are runtimes as they are predicted, shape
    (jobs,); or equally likely ones, shape (jobs, runtimes), of which the expected cost decides.
    ``elapsed_hours`` lie between the first job of the training period and the first of these.

    Raises ``InputError`` if there are no jobs, or a prediction is not above 0.
    """
    if not jobs.hours.size:
        raise InputError("no jobs after the training period", expected="a longer log")
    if not (predicted_hours > 0.0).all():
        raise InputError(
            "not a prediction",
            field="predicted_hours",
            value=float(np.min(predicted_hours)),
            expected="hours above 0",
        )
    sizes = sizes_of(policy.catalogue)
    pieces = pieces_of(jobs, sizes)
    resource = resource_prices(policy.catalogue)
    standard = rent_per_hour(pieces, sizes, resource, None)
    rent = rent_per_hour(pieces, sizes, resource, policy.terms.customised_markup)
    believed = predicted_hours.reshape(jobs.hours.size, -1)
    first_hour = policy.first_hour_of_week + elapsed_hours
    fleets = fleets_of(policy.reserved)
    placed = place(jobs, fleets, believed.mean(axis=1), first_hour)
    choice = choose_options(believed, policy.terms)
    choice.kind[placed.cut] = ON_DEMAND
    rented = RentedJobs(jobs, rent, ~placed.done, choice, policy.terms)
    months = int(jobs.span_hours / HOURS_PER_MONTH) + 1
    rows = [
        *_paid_rows(policy, jobs, fleets, placed, months, first_hour),
        *rented.rows(months),
    ]
    over_time = month_table(rows)
    return OnlineOutcome(
        reserved=policy.reserved,
        jobs=jobs.hours.size,
        hours=jobs.span_hours,
        cost=float(over_time["cost"].sum()),
        all_on_demand_cost=float(standard @ jobs.hours),
        over_time=over_time,
        revoked_hours=rented.revoked_hours,
    )


def _paid_rows(
    policy: OnlinePolicy,
    jobs: BoughtJobs,
    fleets: list[Fleet],
    placed: FleetPlacement,
    months: int,
    first_hour: float,
) -> list[Row]:
    """Return a row for each committed, reserved (whatever the term) and scheduled purchase."""
    rows: dict[str, Row] = {}
    for place_of, fleet in enumerate(fleets):
        option = fleet.machines[0].option
        name = option if option in (COMMITTED, SCHEDULED) else RESERVED
        own = jobs.cores * ((placed.fleet == place_of) & ~placed.cut)
        used = by_month(jobs.start_hours, jobs.hours, own, months)
        hours, price = _hours_there(policy, fleet, jobs.span_hours, months, first_hour)
        cores = sum(each.count * each.instance.cores for each in fleet.machines)
        money = sum(each.count * each.on_demand_per_hour for each in fleet.machines)
        cost = money * price
        if fleet.schedule is None:
            cost = hours * sum(each.per_hour for each in fleet.machines)
        _, before, idle, paid = rows.get(name, (name, *np.zeros((3, months))))
        rows[name] = (name, before + used, idle + cores * hours - used, paid + cost)
    return list(rows.values())


def _hours_there(
    policy: OnlinePolicy, fleet: Fleet, span_hours: float, months: int, first_hour: float
) -> tuple[Floats, Floats]:
    """Hours of each month in which a fleet is there; and of a scheduled one, what they cost."""
    edges = np.minimum(np.arange(months + 1) * HOURS_PER_MONTH, span_hours)
    if fleet.schedule is None:
        return np.diff(np.minimum(edges, fleet.hours_left)), np.zeros(months)
    hour: Floats = np.arange(np.ceil(span_hours), dtype=np.float64)
    there = np.isfinite(fleet.closes(hour, first_hour)).astype(np.float64)
    assert policy.terms.scheduled is not None
    price = price_of_hours(policy.terms.scheduled, hour + first_hour) * there
    month = np.minimum((hour / HOURS_PER_MONTH).astype(np.int64), months - 1)
    return _by_month(month, there, months), _by_month(month, price, months)


def _by_month(month: NDArray[np.int64], weight: Floats, months: int) -> Floats:
    return np.bincount(month, weight, months).astype(np.float64)
