"""What is for sale to the one who asks: a node to own or reserve, and machines to rent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from foresail.cloud.prices import Commitment, InstanceType, Offer, PriceCatalogue
from foresail.cloud.purchasing.resources import running_commitments
from foresail.cloud.waiting.jobs import FixedMachines, RentedType, TraceJobs, rents
from foresail.cloud.waiting.offers import rented_family
from foresail.model.errors import InputError

_MANY_NODES: Final = 20
_FEW_NODES: Final = 4
_WIDE_WORK: Final = 0.01


@dataclass(frozen=True, slots=True)
class Market:
    """A node and its price, and what can be rented beside it."""

    node: InstanceType
    """The type that is owned or reserved."""
    node_price_per_hour: float
    """Of one, used or not."""
    bought_as: str
    """How, in words."""
    committed: int
    """Nodes that are paid for already, whatever is bought."""
    committed_price_per_hour: float
    """Of one of them."""
    family: tuple[RentedType, ...]
    """Machines to rent."""
    spanning: bool
    """Whether a job may use several nodes at once: they are then one pool of cores (and gpus)."""
    memory_known: bool
    """Whether the jobs' memory counts."""
    unit: Literal["core", "gpu"] = "core"
    """What nodes and demand are measured in."""
    commitments: tuple[Commitment, ...] = ()
    """Those of the catalogue that have not ended, to nodes and to other types."""

    @property
    def node_size(self) -> float:
        """Of a node, in the unit."""
        return self.node.gpus if self.unit == "gpu" else self.node.cores

    def fixed(self, nodes: int) -> FixedMachines:
        """So many nodes, as they are simulated."""
        cores = max(int(self.node.cores), 1)
        memory = self.node.memory_bytes if self.memory_known else math.inf
        price, gpus = self.node_price_per_hour, self.node.gpus
        if not self.spanning or nodes == 0:
            return FixedMachines(nodes, cores, memory, price, gpus=gpus)
        return FixedMachines(1, nodes * cores, nodes * memory, nodes * price, gpus=nodes * gpus)

    def fixed_per_hour(self, nodes: int) -> float:
        """What so many nodes cost per hour; commitments are paid even where they are not used."""
        more = max(nodes - self.committed, 0)
        sunk = self.committed * self.committed_price_per_hour
        return sunk + more * self.node_price_per_hour


def market_of(
    catalogue: PriceCatalogue,
    jobs: TraceJobs,
    seconds: float,
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
    seconds
        Length of the log: nodes are small enough for its mean demand to fill a number of them.
    node, term_years, node_price_per_hour
        As for ``AdviceQuestion``; where commitments are running, the default node is the type that
        most cores are committed to.

    Raises
    ------
    InputError
        If the node has no price for the term and none is given.
    UnknownNameError
        If there is no such type.
    """
    offers = catalogue.after_discounts().offers
    family = rented_family(catalogue)
    running = running_commitments(catalogue)
    if node is None:
        own = _with_gpus if _mostly_gpus(jobs, family) else _without_gpus
        sold = [
            o
            for o in offers
            if node_price_per_hour is not None or o.reserved_for(term_years) is not None
        ]
        offer = _most_held(sold, running) or _default_node(
            own(sold, term_years), jobs, seconds, term_years
        )
    else:
        offer = catalogue.after_discounts().find(node)
    price, bought_as = _node_price(offer, term_years, node_price_per_hour)
    name = offer.instance.name
    held = [each for each in running if each.instance == name]
    committed = sum(each.count for each in held)
    sunk = sum(each.count * each.price_per_hour for each in held)
    return Market(
        node=offer.instance,
        node_price_per_hour=price,
        bought_as=bought_as,
        committed=committed,
        committed_price_per_hour=sunk / committed if committed else 0.0,
        family=family,
        spanning=_wide_share(jobs, offer.instance) > _WIDE_WORK,
        memory_known=jobs.memory_bytes is not None,
        unit="gpu" if offer.instance.gpus and jobs.gpus is not None else "core",
        commitments=running,
    )


def _most_held(offers: Sequence[Offer], commitments: Sequence[Commitment]) -> Offer | None:
    """What most cores are committed to of what is sold; None if nothing is."""
    cores = {
        each.instance.name: each.instance.cores
        * sum(held.count for held in commitments if held.instance == each.instance.name)
        for each in offers
    }
    most = max(cores, key=lambda name: cores[name], default="")
    return next((o for o in offers if o.instance.name == most and cores[most]), None)


def _mostly_gpus(jobs: TraceJobs, family: Sequence[RentedType]) -> bool:
    """Whether jobs that ask for gpus are most of what renting all would cost."""
    if jobs.gpus is None:
        return False
    rent = rents(jobs.requests, family)[jobs.requests.of_job] * jobs.runtime_seconds
    return float(rent[jobs.gpus > 0.0].sum()) > 0.5 * float(rent.sum())


def _without_gpus(sold: Sequence[Offer], term_years: int) -> Sequence[Offer]:
    """Plain machines, if any are sold."""
    if not sold:
        raise InputError(
            f"nothing is reserved for {term_years} years at these prices",
            field="reserved",
            expected="a reserved price, another --term, or --node with --node-price",
        )
    return [o for o in sold if o.instance.gpus == 0.0] or sold


def _with_gpus(sold: Sequence[Offer], term_years: int) -> Sequence[Offer]:
    """Machines with gpus."""
    found = [o for o in sold if o.instance.gpus > 0.0]
    if not found:
        raise InputError(
            f"most of the work asks for gpus, and nothing with gpus is reserved for {term_years} "
            "years at these prices",
            field="reserved",
            expected="a reserved price of a type with gpus, another --term, or --node with "
            "--node-price",
        )
    return found


def _default_node(sold: Sequence[Offer], jobs: TraceJobs, seconds: float, term_years: int) -> Offer:
    """The cheapest by size of those that mean demand fills some of; else the smallest.

    They are as large as almost all work needs, if mean demand fills a few of such. Size is in
    cores or, where all have some, in gpus.
    """
    by_gpus = all(o.instance.gpus for o in sold)

    def size(offer: Offer) -> float:
        return offer.instance.gpus if by_gpus else offer.instance.cores

    mean = (jobs.gpu_seconds if by_gpus else jobs.core_seconds) / seconds
    smallest = min(size(o) for o in sold)
    most = max(mean / _MANY_NODES, smallest)
    enough = [size(o) for o in sold if _wide_share(jobs, o.instance) <= _WIDE_WORK]
    if enough and mean >= _FEW_NODES * min(enough):
        most = max(most, min(enough))
    small = [o for o in sold if most / 2.0 <= size(o) <= most]
    small = small or [o for o in sold if size(o) <= most]
    return min(small, key=lambda o: (round(_price(o, term_years) / size(o), 6), -size(o)))


def _wide_share(jobs: TraceJobs, node: InstanceType) -> float:
    """Share of the work of jobs that ask for more than a node has of cores, or of its gpus."""
    work = jobs.runtime_seconds * jobs.cores
    wide = jobs.cores > node.cores
    if jobs.gpus is not None and node.gpus:
        work = jobs.runtime_seconds * np.maximum(jobs.gpus / node.gpus, jobs.cores / node.cores)
        wide = wide | (jobs.gpus > node.gpus)
    return float(work[wide].sum()) / max(float(work.sum()), 1e-300)


def _price(offer: Offer, term_years: int) -> float:
    term = offer.reserved_for(term_years)
    return offer.on_demand_per_hour if term is None else term.price_per_hour


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
