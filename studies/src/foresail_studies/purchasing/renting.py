"""Payments of jobs that find no room on reserved machines, month by month."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.purchasing.demand import (
    HOURS_PER_MONTH,
    ON_DEMAND,
    TRANSIENT,
    BoughtJobs,
    transient_cost,
)
from foresail.cloud.purchasing.offline import Row, month_cost
from foresail.model.arrays import Floats
from foresail_studies.purchasing.retired_offers import (
    KINDS,
    SPOT_BLOCK,
    PublishedTerms,
    RentedOptions,
    block_cost,
)


class RentedJobs:
    """Jobs that found no room, by the option that was chosen for each.

    Parameters
    ----------
    jobs
        All jobs.
    rent
        What the machines that a job fills cost an hour on demand; shape (jobs,).
    rented
        Which jobs found no room; shape (jobs,).
    choice
        The option of each.
    terms
        What is sold.
    """

    def __init__(
        self,
        jobs: BoughtJobs,
        rent: Floats,
        rented: NDArray[np.bool_],
        choice: RentedOptions,
        terms: PublishedTerms,
    ) -> None:
        hours, kind = jobs.hours, choice.kind
        self._jobs, self._rent, self._rented, self._kind = jobs, rent, rented, kind
        self._tiers = terms.sustained_tiers
        self._own = np.zeros(hours.size)
        self._on_demand = np.where(kind == ON_DEMAND, hours, 0.0)
        self._lost = np.zeros(hours.size)
        if terms.transient is not None:
            of_kind = kind == TRANSIENT
            lives = terms.transient.revocation
            cost = transient_cost(hours, terms.transient, on_demand_price=0.0)
            lost = lives.revoked(hours)
            self._own[of_kind] = cost[of_kind]
            self._on_demand[of_kind] = (lost * hours)[of_kind]
            self._lost[of_kind] = (lost * lives.mean_run(hours))[of_kind]
        if terms.spot_blocks:
            of_kind = kind == SPOT_BLOCK
            block, ran = choice.block[of_kind], hours[of_kind]
            again = np.where(ran > block, ran, 0.0)
            price = np.asarray(terms.spot_blocks)[block - 1]
            self._own[of_kind] = block_cost(ran, block, price) - again
            self._on_demand[of_kind] = again

    @property
    def revoked_hours(self) -> float:
        """Expected core hours of transient runs that come to nothing."""
        return float(self._lost @ (self._jobs.cores * self._rented))

    def rows(self, months: int) -> list[Row]:
        """Month by month: core hours used and money, of each option."""
        jobs = self._jobs
        rows = []
        for code, name in enumerate(KINDS):
            chosen = self._rented & (self._kind == code)
            if code != ON_DEMAND and not chosen.any():
                continue
            used = by_month(jobs.start_hours, jobs.hours, jobs.cores * chosen, months)
            per_hour = self._own * self._rent / jobs.hours
            cost = by_month(jobs.start_hours, jobs.hours, per_hour * chosen, months)
            if code == ON_DEMAND:
                cost = cost + self._on_demand_cost(months)
            rows.append((name, used, np.zeros(months), cost))
        return rows

    def _on_demand_cost(self, months: int) -> Floats:
        """Return the on-demand cost, restarts too, after the discount for sustained use."""
        jobs = self._jobs
        share = self._on_demand / jobs.hours * self._rented
        money = by_month(jobs.start_hours, jobs.hours, share * self._rent, months)
        if not self._tiers:
            return money
        cores = by_month(jobs.start_hours, jobs.hours, share * jobs.cores, months)
        average = cores / HOURS_PER_MONTH
        ratio = np.ones(months)
        np.divide(month_cost(average, self._tiers), average, out=ratio, where=average > 0.0)
        return money * ratio


def by_month(start_hours: Floats, hours: Floats, weight: Floats, months: int) -> Floats:
    """Hours times weight of all jobs in every month; shape (months,)."""
    kept = weight != 0.0
    start, weight = start_hours[kept], weight[kept]
    end = start + hours[kept]
    done = np.empty(months + 1)
    for month in range(months + 1):
        at = month * HOURS_PER_MONTH if month < months else np.inf
        done[month] = weight @ (np.minimum(end, at) - np.minimum(start, at))
    return np.diff(done)
