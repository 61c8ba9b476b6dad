"""The question of who pays for machines, rules of waiting, and what is on sale to the buyer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
import polars as pl

from foresail.cloud.over_time import require_within_horizon, use_over_time
from foresail.cloud.prices import Commitment, InstanceType, Offer, PriceCatalogue, checked_price
from foresail.cloud.purchasing.forecast import ForecastSettings
from foresail.cloud.purchasing.resources import running_commitments
from foresail.cloud.waiting.jobs import FixedMachines, RentedType, TraceJobs, rented_family, rents
from foresail.cloud.waiting.simulating import QUEUES, Queue, WaitingPolicy, waiting_policy
from foresail.model import errors
from foresail.traces.workload import Workload

_MANY_NODES: Final = 20
_FEW_NODES: Final = 4
_WIDE_WORK: Final = 0.01


@dataclass(frozen=True, slots=True)
class Market:
    """A node and its price, and what can be rented beside it."""

    node: InstanceType
    """The type that is owned or reserved."""
    node_price_per_hour: float
    """Price of one node, used or not."""
    bought_as: str
    """Way in which nodes are bought, in words."""
    committed: int
    """Nodes that are paid for already, whatever is bought."""
    committed_price_per_hour: float
    """Price of one of these nodes."""
    family: tuple[RentedType, ...]
    """Machines to rent."""
    spanning: bool
    """True if a job may use several nodes at once: they are then one pool of cores (and gpus)."""
    memory_known: bool
    """True if the jobs' memory counts."""
    unit: Literal["core", "gpu"] = "core"
    """Unit of nodes and demand."""
    commitments: tuple[Commitment, ...] = ()
    """Commitments of the catalogue that have not ended, to nodes and to other types."""

    @property
    def node_size(self) -> float:
        """Size of a node, in the unit."""
        return self.node.gpus if self.unit == "gpu" else self.node.cores

    def use_over_time(self, jobs: TraceJobs, hours: float, nodes: int = 0) -> pl.DataFrame:
        """Cores, or gpus, in use if every job started when it was submitted.

        Where it is gpus, a job that takes more of a node's cores than of its gpus counts by those.
        The result is as of ``over_time.use_over_time``, with so many nodes as the level.
        """
        amount = jobs.cores.astype(np.float64)
        if self.unit == "gpu" and jobs.gpus is not None:
            amount = np.maximum(jobs.gpus, amount / self.node.cores * self.node.gpus)
        begin = jobs.submit_seconds - jobs.submit_seconds[0]
        level = nodes * self.node_size
        return use_over_time(begin, jobs.runtime_seconds, amount, hours, level)

    def fixed(self, nodes: int) -> FixedMachines:
        """So many nodes, as they are simulated."""
        cores = max(int(self.node.cores), 1)
        memory = self.node.memory_bytes if self.memory_known else math.inf
        price, gpus = self.node_price_per_hour, self.node.gpus
        if not self.spanning or nodes == 0:
            return FixedMachines(nodes, cores, memory, price, gpus=gpus)
        return FixedMachines(1, nodes * cores, nodes * memory, nodes * price, gpus=nodes * gpus)

    def fixed_per_hour(self, nodes: int) -> float:
        """Cost per hour of so many nodes; commitments are paid even where they are not used."""
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

    Raises ``InputError`` if the node has no price for the term and none is given;
    ``UnknownNameError`` if there is no such type.

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
    """Return the offer that most cores are committed to; None if none is."""
    cores = {
        each.instance.name: each.instance.cores
        * sum(held.count for held in commitments if held.instance == each.instance.name)
        for each in offers
    }
    most = max(cores, key=lambda name: cores[name], default="")
    return next((o for o in offers if o.instance.name == most and cores[most]), None)


def _mostly_gpus(jobs: TraceJobs, family: Sequence[RentedType]) -> bool:
    """True if jobs that ask for gpus are most of what renting all would cost."""
    if jobs.gpus is None:
        return False
    rent = rents(jobs.requests, family)[jobs.requests.of_job] * jobs.runtime_seconds
    return float(rent[jobs.gpus > 0.0].sum()) > 0.5 * float(rent.sum())


def _without_gpus(sold: Sequence[Offer], term_years: int) -> Sequence[Offer]:
    """Plain machines, if any are sold."""
    if not sold:
        raise errors.InputError(
            f"nothing is reserved for {term_years} years at these prices",
            field="reserved",
            expected="a reserved price, another --term, or --node with --node-price",
        )
    return [o for o in sold if o.instance.gpus == 0.0] or sold


def _with_gpus(sold: Sequence[Offer], term_years: int) -> Sequence[Offer]:
    """Machines with gpus."""
    found = [o for o in sold if o.instance.gpus > 0.0]
    if not found:
        raise errors.InputError(
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
        raise errors.InputError(
            f"is not reserved for {term_years} years at these prices",
            field="node",
            value=offer.instance.name,
            expected="another type, another --term, or --node-price",
        )
    words = "a year" if term_years == 1 else f"{term_years} years"
    return term.price_per_hour, f"reserved for {words}"


_HOUR: Final = 3600.0
LIMITED: Final = ("all-jobs-wait-threshold", "compound", "speculative")
"""Rules under which a wait has a limit, so that it may help to know what would wait for longer."""

Waits = Literal["unknown", "learned"]
Trials = Literal["on demand", "transient"]


@dataclass(frozen=True, slots=True)
class WaitingRule:
    """A waiting policy by its long name, with the thresholds that it has."""

    name: str
    """Name of the rule, as for ``waiting_policy``."""
    waiting_seconds: float = math.inf
    """Wait after which a job is rented a machine; inf where it never is."""
    short_seconds: float = 0.0
    """A job that is believed to run for less is rented one at once, or, under ``speculative``, for
    how long every job is tried on one."""
    queue: Queue = "fcfs"
    """Order of the waiting jobs."""
    waits: Waits = "unknown"
    """Rent a machine at once for a job that is expected to wait for longer, by what the first third
    of the log taught; until then none is rented. With it, AJW-T is called SWW."""
    trials: Trials = "on demand"
    """Machines that jobs are tried on under ``speculative``."""

    @property
    def policy(self) -> WaitingPolicy:
        """The setting that is simulated."""
        return waiting_policy(self.name, self.waiting_seconds, self.short_seconds, self.queue)

    @property
    def goes_by_runtimes(self) -> bool:
        """True if it goes by runtimes, which are not known on submission."""
        return self.name == "compound" or (self.queue == "sjf" and self.name != "no-jobs-wait")

    def better_informed(self, *, transient: bool) -> Iterator[WaitingRule]:
        """The same rule with learned waits, and tried on transient machines if there are some."""
        if self.name not in LIMITED:
            return
        yield replace(self, waits="learned")
        if transient and self.name == "speculative":
            yield replace(self, trials="transient")
            yield replace(self, waits="learned", trials="transient")


@dataclass(frozen=True, slots=True)
class AdviceQuestion:
    """A question for advice; money is in the catalogue's currency."""

    owned: int | None = None
    """Nodes that there are today; None: those that the prices say are committed already, or as many
    as the log's machine makes, if it says."""
    node: str | None = None
    """Name of the type to own or reserve; None: the cheapest by the core of a suitable size."""
    term_years: int = 3
    """Time for which nodes are reserved."""
    node_price_per_hour: float | None = None
    """Cost of a node that is owned, used or not; None: the reserved price."""
    wait_price_per_hour: float | None = None
    """Worth of an hour that one job waits; None: ``usual_hour_value``."""
    most_wait_seconds: float | None = None
    most_cost_per_month: float | None = None
    """Targets: of the mean wait over all jobs, and of the cost."""
    waiting_seconds: tuple[float, ...] = (_HOUR, 4.0 * _HOUR, 24.0 * _HOUR)
    short_seconds: tuple[float, ...] = (180.0, 900.0)
    """Thresholds that are tried."""
    queue: Queue = "fcfs"
    """Order of the waiting jobs."""
    risk: float | None = None
    """A node is advised only if the chance that it does not pay is at most this; None: as many are
    as come to least in expectation."""
    growth: float = 1.0
    growth_spread: float = 0.2
    """Growth of demand until the nodes serve (factor), and standard deviation of its logarithm."""
    futures: int = 400
    """Number of futures that are drawn: weeks of the log, put together anew."""
    seed: int = 0
    """Seed of the draws."""
    workers: int = 1
    """Simulations at once."""

    def __post_init__(self) -> None:
        if self.queue not in QUEUES:
            raise errors.UnknownNameError("queue", self.queue, QUEUES)
        errors.require_at_least(self, 0, "owned", "node_price_per_hour", "wait_price_per_hour")
        for name in ("node_price_per_hour", "wait_price_per_hour"):
            if getattr(self, name):
                checked_price(getattr(self, name), name)
        errors.require_at_least(self, 0, "most_wait_seconds", "most_cost_per_month")
        errors.require_at_least(self, 1, "futures", "workers")
        errors.require_each_at_least(self, 0, "waiting_seconds", "short_seconds")
        ForecastSettings(growth=self.growth, growth_spread=self.growth_spread)  # or raises
        errors.require(self.term_years in (1, 3), self, "term_years", "1 or 3")
        sensible = self.risk is None or 0.0 < self.risk < 1.0
        errors.require(sensible, self, "risk", "above 0 and below 1")

    @property
    def has_targets(self) -> bool:
        """True if the cost or the wait is limited."""
        return self.most_cost_per_month is not None or self.most_wait_seconds is not None

    def rules(self) -> Iterator[WaitingRule]:
        """The rules to begin with; none needs to know what it could not know live."""
        # Of rules that come to the same, the first is advised.
        yield WaitingRule("no-jobs-wait", waiting_seconds=0.0, queue=self.queue)
        yield WaitingRule("all-jobs-wait", queue=self.queue)
        for waiting in self.waiting_seconds:
            yield WaitingRule("all-jobs-wait-threshold", waiting, queue=self.queue)
        for name in ("compound", "speculative"):
            for short in self.short_seconds:
                for waiting in self.waiting_seconds:
                    yield WaitingRule(name, waiting, short, self.queue)


@dataclass(frozen=True, slots=True, eq=False)
class CountedJobs:
    """Jobs of a log that advice counts, and which of its rows they are."""

    workload: Workload
    kept: np.ndarray[tuple[int], np.dtype[np.bool_]]


def countable(workload: Workload) -> CountedJobs:
    """Return the jobs with a submit time, a runtime and cpus.

    Raises ``InputError`` if there are none, or the log lasts for more than a century.
    """
    table = workload.jobs
    kept = (
        table["runtime_seconds"].is_not_null()
        & (table["runtime_seconds"].fill_null(-1.0) >= 0.0)
        & table["submit_seconds"].is_finite()
        & (table["tasks"] > 0)
        & (table["cpus_per_task"] > 0.0)
    ).fill_null(False)
    if not kept.any():
        raise workload.meta.nothing_left(
            "no jobs to advise on", "jobs with a submit time, a runtime and cpus above 0"
        )
    counted = CountedJobs(workload.with_jobs(table.filter(kept)), kept.to_numpy())
    require_within_horizon(counted.workload)
    return counted
