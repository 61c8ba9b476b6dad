"""The practical policy's machines: what it reserves after a training period (5.3 of 003)."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from foresail.cloud.prices import PriceCatalogue
from foresail.cloud.purchasing.demand import HOURS_PER_YEAR, BoughtJobs
from foresail.cloud.purchasing.machines import Amount, ReservedMachines, machines_for, sizes_of
from foresail.cloud.purchasing.offline import plan_offline
from foresail.cloud.purchasing.offline_plan import (
    COMMITTED,
    DEFAULT_SETTINGS,
    SCHEDULED,
    OfflinePlan,
    OfflineSettings,
    reserved_name,
)
from foresail.cloud.purchasing.resources import (
    gpu_ratios,
    hours_left,
    resources_of,
    running_commitments,
)
from foresail_studies.purchasing.retired_offers import (
    LevelSchedule,
    PublishedTerms,
    ScheduledMachines,
)


@dataclass(frozen=True, slots=True, eq=False)
class OnlinePolicy:
    """Machines reserved after a training period; ready to serve jobs."""

    catalogue: PriceCatalogue
    """Of the machines on sale."""
    terms: PublishedTerms
    """What is sold, relative to on demand."""
    settings: OfflineSettings
    """Of the plan in hindsight for the training period."""
    reserved: tuple[ReservedMachines, ...]
    """The machines, those that the buyer had before among them."""
    first_hour_of_week: float
    """Of the training period, from Monday 00:00."""


def train(
    jobs: BoughtJobs,
    catalogue: PriceCatalogue,
    terms: PublishedTerms,
    settings: OfflineSettings = DEFAULT_SETTINGS,
) -> OnlinePolicy:
    """Reserve what would have been best for past jobs, if they come again (spec section 4.2).

    The amounts of each term become machines (see ``machines_for``). So does the amount that was
    scheduled; its machines, the largest first, stand for as many levels as they have cores, from
    the bottom, and have the windows of the level in the middle of these. Machines that the
    catalogue says are committed already are there until their last day, counted from the end of the
    training period, and less is reserved.

    Raises ``InputError`` if jobs ask for GPUs and none are on sale.
    """
    repeated = replace(settings, extension="repeat")
    resources = resources_of(jobs, catalogue, settings.amounts, terms.customised_markup)
    plans = {
        each.name: plan_offline(
            jobs, each.units, terms, repeated, resource=each.name, held=each.held
        )
        for each in resources
    }
    sizes = sizes_of(catalogue)
    reserved = _committed(catalogue)
    per_gpu = gpu_ratios(jobs, resources)
    for years, price in terms.reserved:
        name = reserved_name(years)
        amount = {resource: plan.mean_units(name) for resource, plan in plans.items()}
        reserved += machines_for(Amount.from_units(amount, per_gpu), name, price, sizes)
    # Schedules are of cores: GPUs are not scheduled.
    scheduled = {name: plans[name].mean_units(SCHEDULED) for name in plans if name != "GPUs"}
    at_peak = 1.0 if terms.scheduled is None else terms.scheduled.peak
    found = machines_for(Amount.from_units(scheduled, (0.0, 0.0)), SCHEDULED, at_peak, sizes)
    reserved += _with_windows(found, plans["cores"])
    return OnlinePolicy(catalogue, terms, settings, tuple(reserved), jobs.first_hour_of_week)


def _committed(catalogue: PriceCatalogue) -> list[ReservedMachines]:
    """Return what the buyer has, at no further cost."""
    found = []
    for each in running_commitments(catalogue):
        offer = catalogue.find(each.instance)
        left = hours_left(each, catalogue)
        found.append(
            ReservedMachines(
                offer.instance, each.count, COMMITTED, 0.0, offer.on_demand_per_hour, left
            )
        )
    return found


def _with_windows(machines: list[ReservedMachines], plan: OfflinePlan) -> list[ReservedMachines]:
    """Scheduled machines, each with the windows of the middle one of the levels that it is for."""
    of_years = [each for each in plan.reservations if each.option == SCHEDULED]
    first = [each for each in of_years if each.start_hours < HOURS_PER_YEAR]
    # Where the first year has none, those of a later one: what is planned for repeats.
    levels = first or of_years
    tops = np.cumsum([each.units for each in levels])
    found: list[ReservedMachines] = []
    below = 0.0
    for each in (replace(kind, count=1) for kind in machines for _ in range(kind.count)):
        middle = below + each.instance.cores / 2.0
        level = min(int(np.searchsorted(tops, middle)), tops.size - 1)
        schedule = levels[level].schedule
        assert isinstance(schedule, LevelSchedule)
        own = {name.name: getattr(each, name.name) for name in fields(each)}
        found.append(ScheduledMachines(**own, schedule=schedule))
        below += each.instance.cores
    return found
