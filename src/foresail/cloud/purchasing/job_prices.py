"""What an hour of each job's work costs with the options whose price depends on its length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.purchasing.terms import PurchaseTerms, TransientTerms
from foresail.model.arrays import Floats

Normalisation = Literal["useful-hour", "running-hour"]
"""Expected cost per hour of useful work; or per hour of running, lost runs too, as printed."""

ON_DEMAND: Final = 0
TRANSIENT: Final = 1
SPOT_BLOCK: Final = 2
KINDS: Final = ("on-demand", "transient", "spot-block")
"""Options without a commitment, by code."""


@dataclass(frozen=True, slots=True, eq=False)
class JobPrices:
    """The cheapest option without a commitment, per job; all arrays have shape (jobs,)."""

    kind: NDArray[np.int8]
    """Code of the option: see ``KINDS``."""
    unit_price: Floats
    """Relative cost of one unit of the job for one hour of its runtime."""
    on_demand_share: Floats
    """Hours on demand among that: 1 for jobs on demand, the expected restarts of transient ones."""


def transient_cost(
    hours: Floats, terms: TransientTerms, on_demand_price: float = 1.0
) -> tuple[Floats, Floats]:
    """Expected cost of jobs on transient capacity, restarted on demand once (eq. 5.1).

    ``hours`` are runtimes, shape (jobs,); the restart costs ``on_demand_price`` an hour.

    Returns
    -------
    cost, running
        Money for one unit of each job, relative to an hour on demand; and the expected hours that
        it runs, lost ones too.
    """
    lost = terms.revocation.revoked(hours)
    run = terms.revocation.mean_run(hours)
    cost = (1.0 - lost) * terms.price * hours + lost * (terms.price * run + on_demand_price * hours)
    return cost, hours + lost * run


def block_prices(hours: Floats, terms: PurchaseTerms) -> Floats:
    """Price of an hour of each job on the shortest spot block that holds it, inf where none does.

    A job that ends early pays only for the time it held the block.
    """
    if not terms.spot_blocks:
        return np.full(hours.shape, np.inf)
    block = np.maximum(np.ceil(hours), 1.0)
    fits = block <= len(terms.spot_blocks)
    at = np.where(fits, block, 1.0).astype(np.int64) - 1
    return np.where(fits, np.asarray(terms.spot_blocks)[at], np.inf)


@dataclass(frozen=True, slots=True, eq=False)
class RentedOptions:
    """What is rented for each job before its runtime is known; arrays of shape (jobs,)."""

    kind: NDArray[np.int8]
    """Code of the option: see ``KINDS``."""
    block: NDArray[np.int64]
    """Hours of the spot block, where it is one; else 0."""


def choose_options(
    believed_hours: Floats, terms: PurchaseTerms, normalisation: Normalisation = "useful-hour"
) -> RentedOptions:
    """The option of least expected cost for jobs whose runtimes are believed, not known.

    A job that outlives its block, or is revoked, is paid again on demand. With one believed runtime
    a job this is the published rule (section 4.2): the shortest block that holds it, transient
    capacity if E[C] is below the cost on demand.

    ``believed_hours`` are equally likely runtimes, shape (jobs, runtimes); ``normalisation`` as for
    ``job_prices``.
    """
    cheapest = believed_hours.mean(axis=1)
    kind = np.full(cheapest.size, ON_DEMAND, np.int8)
    block = np.zeros(cheapest.size, np.int64)

    def offer(cost: Floats, code: int, hours: int) -> None:
        better = cost < cheapest
        cheapest[better], kind[better], block[better] = cost[better], code, hours

    if terms.transient is not None:
        cost, running = transient_cost(believed_hours, terms.transient)
        if normalisation == "running-hour":
            cost = cost / running * believed_hours
        offer(cost.mean(axis=1), TRANSIENT, 0)
    for hours, price in enumerate(terms.spot_blocks, start=1):
        offer(block_cost(believed_hours, hours, price).mean(axis=1), SPOT_BLOCK, hours)
    return RentedOptions(kind, block)


def block_cost(hours: Floats, block: NDArray[np.int64] | int, price: Floats | float) -> Floats:
    """Cost of a unit of jobs on spot blocks of these lengths; late ones start again on demand."""
    return np.asarray(np.where(hours <= block, price * hours, price * block + hours))


def job_prices(
    hours: Floats,
    terms: PurchaseTerms,
    normalisation: Normalisation = "useful-hour",
    on_demand_price: float = 1.0,
) -> JobPrices:
    """The cheapest of on demand, transient and spot block for jobs of known lengths (section 4.1).

    Parameters
    ----------
    hours
        Runtimes; shape (jobs,).
    terms
        What is sold.
    normalisation
        Of the transient cost. Per running hour it never exceeds the price on demand, so that every
        job becomes transient.
    on_demand_price
        What an hour on demand is worth: less than 1 with a sustained-use discount.
    """
    price = np.full(hours.shape, on_demand_price)
    kind = np.full(hours.shape, ON_DEMAND, np.int8)
    share = np.ones(hours.shape)
    if terms.transient is not None:
        cost, running = transient_cost(hours, terms.transient, on_demand_price)
        per = hours if normalisation == "useful-hour" else running
        known = per > 0.0
        transient = np.full(hours.shape, terms.transient.price)
        np.divide(cost, per, out=transient, where=known)
        restarts = np.zeros(hours.shape)
        restarted = terms.transient.revocation.revoked(hours) * hours
        np.divide(restarted, per, out=restarts, where=known)
        cheaper = transient < price
        price[cheaper], share[cheaper] = transient[cheaper], restarts[cheaper]
        kind[cheaper] = TRANSIENT
    blocks = block_prices(hours, terms)
    cheaper = blocks < price
    price[cheaper], kind[cheaper], share[cheaper] = blocks[cheaper], SPOT_BLOCK, 0.0
    return JobPrices(kind, price, share)
