"""What is for sale to the one who asks: a node to own or reserve, and machines to rent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from foresail.cloud.prices import Catalogue, InstanceType, Offer
from foresail.cloud.waiting.jobs import FixedMachines, RentedType, TraceJobs
from foresail.cloud.waiting.offers import rented_family
from foresail.model.errors import InputError

_MANY_NODES: Final = 20
_FEW_NODES: Final = 4
_WIDE_WORK: Final = 0.01


@dataclass(frozen=True, slots=True)
class Market:
    """A node and its price, and what can be rented beside it.

    Parameters
    ----------
    node
        The type that is owned or reserved.
    node_price_per_hour
        Of one, used or not.
    bought_as
        How, in words.
    committed
        Nodes that are paid for already, whatever is bought.
    committed_price_per_hour
        Of one of them.
    family
        Machines to rent.
    spanning
        Whether a job may use several nodes at once: they are then one pool of cores.
    memory_known
        Whether the jobs' memory counts.
    """

    node: InstanceType
    node_price_per_hour: float
    bought_as: str
    committed: int
    committed_price_per_hour: float
    family: tuple[RentedType, ...]
    spanning: bool
    memory_known: bool

    def fixed(self, nodes: int) -> FixedMachines:
        """So many nodes, as they are simulated."""
        cores = max(int(self.node.cores), 1)
        memory = self.node.memory_bytes if self.memory_known else math.inf
        if not self.spanning or nodes == 0:
            return FixedMachines(nodes, cores, memory, self.node_price_per_hour)
        return FixedMachines(1, nodes * cores, nodes * memory, nodes * self.node_price_per_hour)

    def fixed_per_hour(self, nodes: int) -> float:
        """What so many nodes cost per hour; commitments are paid even where they are not used."""
        more = max(nodes - self.committed, 0)
        sunk = self.committed * self.committed_price_per_hour
        return sunk + more * self.node_price_per_hour


def market_of(
    catalogue: Catalogue,
    jobs: TraceJobs,
    mean_cores: float,
    node: str | None = None,
    term_years: int = 3,
    node_price_per_hour: float | None = None,
) -> Market:
    """The market of one region, after the buyer's discounts.

    Parameters
    ----------
    catalogue
        Prices of one region.
    jobs
        What must find room.
    mean_cores
        In use on average: nodes are small enough for it to fill a number of them.
    node, term_years, node_price_per_hour
        As for ``AdviceQuestion``.

    Raises
    ------
    InputError
        If the node has no price for the term and none is given.
    UnknownNameError
        If there is no such type.
    """
    offers = catalogue.after_discounts().offers
    if node is None:
        offer = _default_node(offers, jobs, mean_cores, term_years, node_price_per_hour)
    else:
        offer = catalogue.after_discounts().find(node)
    price, bought_as = _node_price(offer, term_years, node_price_per_hour)
    name = offer.instance.name
    held = [
        c
        for c in catalogue.commitments
        if c.instance == name and (c.until is None or c.until >= catalogue.valid_on)
    ]
    committed = sum(each.count for each in held)
    sunk = sum(each.count * each.price_per_hour for each in held)
    return Market(
        node=offer.instance,
        node_price_per_hour=price,
        bought_as=bought_as,
        committed=committed,
        committed_price_per_hour=sunk / committed if committed else 0.0,
        family=rented_family(catalogue),
        spanning=_wide_share(jobs, offer.instance.cores) > _WIDE_WORK,
        memory_known=jobs.memory_bytes is not None,
    )


def _default_node(
    offers: Sequence[Offer],
    jobs: TraceJobs,
    mean_cores: float,
    term_years: int,
    price: float | None,
) -> Offer:
    """The cheapest by the core of those that mean demand fills some of; else the smallest.

    They are as large as almost all work needs, if mean demand fills a few of such.
    """
    sold = [o for o in offers if price is not None or o.reserved_for(term_years) is not None]
    plain = [o for o in sold if o.instance.gpus == 0.0] or sold
    if not plain:
        raise InputError(
            f"nothing is reserved for {term_years} years at these prices",
            field="reserved",
            expected="a reserved price, another --term, or --node with --node-price",
        )
    sizes = sorted({o.instance.cores for o in plain})
    most = max(mean_cores / _MANY_NODES, sizes[0])
    enough = [size for size in sizes if _wide_share(jobs, size) <= _WIDE_WORK]
    if enough and mean_cores >= _FEW_NODES * enough[0]:
        most = max(most, enough[0])
    small = [o for o in plain if o.instance.cores <= most and o.instance.cores >= most / 2.0]
    small = small or [o for o in plain if o.instance.cores <= most]
    return min(small, key=lambda o: (round(_by_core(o, term_years), 6), -o.instance.cores))


def _wide_share(jobs: TraceJobs, cores: float) -> float:
    """Share of the work of jobs that ask for more cores."""
    work = jobs.runtime_seconds * jobs.cores
    return float(work[jobs.cores > cores].sum()) / max(float(work.sum()), 1e-300)


def _by_core(offer: Offer, term_years: int) -> float:
    term = offer.reserved_for(term_years)
    price = offer.on_demand_per_hour if term is None else term.price_per_hour
    return price / offer.instance.cores


def _node_price(offer: Offer, term_years: int, price: float | None) -> tuple[float, str]:
    if price is not None:
        return price, "owned"
    term = offer.reserved_for(term_years)
    if term is None:
        raise InputError(
            f"is not reserved for {term_years} years at these prices",
            field="node",
            value=offer.instance.name,
            expected="another type, another --term, or --node-price",
        )
    words = "a year" if term_years == 1 else f"{term_years} years"
    return term.price_per_hour, f"reserved for {words}"
