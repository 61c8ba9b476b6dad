"""Rules of waiting tried on a log: what they rent and which jobs wait, week by week."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from foresail.cloud.advising.question import Market, WaitingRule
from foresail.cloud.over_time import block_seconds
from foresail.cloud.purchasing.terms import TransientTerms
from foresail.cloud.waiting import simulating
from foresail.cloud.waiting.jobs import TraceJobs, rents
from foresail.cloud.waiting.kernels.waiting import AFTER_TRIAL, FIXED, TRIED
from foresail.cloud.waiting.kernels.waiting_choice import WaitModel
from foresail.model.distribution import Floats, Integers
from foresail.model.errors import InputError

_HOUR: Final = 3600.0
_DAY: Final = 86_400.0
_WEEK: Final = 7.0 * _DAY
_LIFE_STEPS: Final = 1000
_TRIAL_SEED: Final = 137


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """The jobs of a log with what renting costs, cut into blocks of weeks."""

    jobs: TraceJobs
    """In order of submission."""
    rent: Floats
    """Money for renting each job what it asks for on demand; shape (jobs,)."""
    cheapest_rent: Floats
    """The same, expected, with the cheapest option that it may be rented on."""
    on_demand_hour: Floats
    """Money for an hour of each job's machine on demand."""
    believed_seconds: Floats
    """Runtimes as they were believed at submission."""
    block: Integers
    """Block of each job; block lengths in hours, and jobs and money for renting all in each."""
    block_hours: Floats
    block_jobs: Floats
    block_rent: Floats
    """Shape (blocks,)."""
    block_name: str
    """``week`` or ``day``; or ``log`` where there would be too few."""
    transient: TransientTerms | None = None
    """Terms of machines that may be taken back, if jobs may be rented or tried on them."""

    @property
    def hours(self) -> float:
        """Length of the log: what is paid is per hour of it."""
        return float(self.block_hours.sum())

    def faster(self, factor: float) -> Demand:
        """The same jobs submitted in less time, or more: demand times a factor."""
        jobs = replace(self.jobs, submit_seconds=self.jobs.submit_seconds / factor)
        return replace(self, jobs=jobs, block_hours=self.block_hours / factor)

    def within(self, blocks: slice) -> Demand:
        """Return the demand of some of the blocks; the jobs stay."""
        return replace(
            self,
            block_hours=self.block_hours[blocks],
            block_jobs=self.block_jobs[blocks],
            block_rent=self.block_rent[blocks],
        )

    @property
    def work(self) -> Floats:
        """Work by job: core-seconds or, where gpus are asked for, what it costs on demand."""
        if self.jobs.gpus is not None:
            return self.rent
        return self.jobs.runtime_seconds * self.jobs.cores

    def trial_lost_seconds(self, trial_seconds: float) -> Floats:
        """Seconds of each job's trial on a transient machine until that was taken back, or 0."""
        assert self.transient is not None
        at = np.linspace(0.0, trial_seconds, _LIFE_STEPS)
        odds = np.maximum.accumulate(self.transient.revocation.revoked(at / _HOUR))
        luck = np.random.default_rng(_TRIAL_SEED).random(len(self.jobs))
        life = np.interp(luck, odds, at)
        tried = np.minimum(self.jobs.runtime_seconds, trial_seconds)
        return np.where((luck < odds[-1]) & (life < tried), life, 0.0)


def demand_of(
    jobs: TraceJobs,
    market: Market,
    believed_seconds: Floats,
    relative_rent: Floats | None = None,
    transient: TransientTerms | None = None,
) -> Demand:
    """The demand of a log.

    ``believed_seconds`` are runtimes as they were believed at submission, and ``relative_rent`` is
    the expected cost of each job on what it would be rented, relative to on demand; shape (jobs,).

    Raises ``InputError`` if nothing runs for any time.
    """
    hourly = rents(jobs.requests, market.family)[jobs.requests.of_job]
    rent = hourly * jobs.runtime_seconds / _HOUR
    if not rent.sum() > 0.0:
        raise InputError("no job runs for any time", expected="a log with runtimes above 0")
    cheapest = rent if relative_rent is None else rent * relative_rent
    submitted = jobs.submit_seconds - jobs.submit_seconds[0]
    span = float(submitted[-1])
    if span < _DAY:  # a log of an hour is paid at least until its jobs have ended
        span = max(span, float((submitted + jobs.runtime_seconds).max()))
    length = block_seconds(jobs.submit_seconds) or span
    blocks = int(np.ceil(span / length - 1e-9))
    block = np.minimum((submitted / length).astype(np.int64), blocks - 1)
    edges = np.minimum(np.arange(blocks + 1) * length, span)
    return Demand(
        jobs=jobs,
        rent=rent,
        cheapest_rent=cheapest,
        on_demand_hour=hourly,
        believed_seconds=believed_seconds,
        block=block,
        block_hours=np.diff(edges) / _HOUR,
        block_jobs=np.bincount(block, minlength=blocks).astype(np.float64),
        block_rent=_sums(block, rent, blocks),
        block_name={_WEEK: "week", _DAY: "day"}.get(length, "log") if blocks > 1 else "log",
        transient=transient,
    )


def _sums(block: Integers, values: Floats, blocks: int) -> Floats:
    return np.bincount(block, values, blocks).astype(np.float64, copy=False)


@dataclass(frozen=True, slots=True, eq=False)
class RuleResult:
    """Cost and waits of a rule on a number of nodes, on a log."""

    nodes: int
    rule: WaitingRule
    """Rule that was tried."""
    block_rent: Floats
    """Money for rented machines by the block in which jobs were submitted."""
    block_wait_hours: Floats
    """Hours that the jobs of each block waited, together."""
    p95_wait_seconds: float
    """Wait that one job in twenty exceeds."""
    waiting_jobs: float
    rented_jobs: float
    rented_work: float
    """Shares of jobs that waited at all, that ended on rented machines, and of work there."""
    utilisation: float
    """Share of the nodes' cores, or gpus if more, in use; above 1, the queue only grows."""

    @property
    def is_lasting(self) -> bool:
        """True if the nodes can do what waits for them."""
        return self.utilisation <= 1.0

    def within(self, blocks: slice) -> RuleResult:
        """Return rent and waits of jobs of some of the blocks; shares are still those of all."""
        return replace(
            self, block_rent=self.block_rent[blocks], block_wait_hours=self.block_wait_hours[blocks]
        )


def rented_altogether(demand: Demand) -> RuleResult:
    """All jobs on demand; no job waits."""
    return RuleResult(
        nodes=0,
        rule=WaitingRule("no-jobs-wait", waiting_seconds=0.0),
        block_rent=demand.block_rent,
        block_wait_hours=np.zeros_like(demand.block_rent),
        p95_wait_seconds=0.0,
        waiting_jobs=0.0,
        rented_jobs=1.0,
        rented_work=1.0,
        utilisation=0.0,
    )


def try_rule(
    demand: Demand, market: Market, nodes: int, rule: WaitingRule, *, foreseen: bool = False
) -> RuleResult:
    """Simulate a rule on a number of nodes.

    ``foreseen``: the rule knows true runtimes, and whose wait would time out, instead of what was
    believed.
    """
    jobs = demand.jobs
    fixed = market.fixed(nodes)
    lost = demand.trial_lost_seconds(rule.short_seconds) if rule.trials == "transient" else None
    ran = _ran(demand, market, nodes, rule, lost, foreseen=foreseen)
    wait = ran.start_seconds - jobs.submit_seconds
    kind = ran.place % AFTER_TRIAL
    own, tried = kind == FIXED, kind == TRIED
    rent = np.where(own | tried, 0.0, demand.cheapest_rent)
    if rule.name == "speculative":
        trial = _trial_costs(demand, rule, lost)
        np.copyto(trial, 0.0, where=ran.place < TRIED)
        rent += trial
    blocks = demand.block_hours.size
    work = demand.work
    return RuleResult(
        nodes=nodes,
        rule=rule,
        block_rent=_sums(demand.block, rent, blocks),
        block_wait_hours=_sums(demand.block, wait, blocks) / _HOUR,
        p95_wait_seconds=float(np.quantile(wait, 0.95)),
        waiting_jobs=float((wait > 0.0).mean()),
        rented_jobs=float(1.0 - own.mean()),
        rented_work=1.0 - float(work[own].sum()) / max(float(work.sum()), 1e-300),
        utilisation=fixed.kept_busy(jobs.among(own)) / (fixed.count * demand.hours * _HOUR)
        if fixed.count
        else 0.0,
    )


def _ran(
    demand: Demand,
    market: Market,
    nodes: int,
    rule: WaitingRule,
    lost: Floats | None,
    *,
    foreseen: bool,
) -> simulating.Simulated:
    """The simulation; with learned waits only once they can have been learned."""
    jobs, fixed = demand.jobs, market.fixed(nodes)

    def simulated(beliefs: simulating.Beliefs) -> simulating.Simulated:
        return simulating.simulate(
            jobs, fixed, market.family, rule.policy, beliefs, lost_seconds=lost
        )

    if foreseen:
        return simulated(simulating.Beliefs.true_runtimes(jobs, simulating.Foresight()))
    uninformed = simulated(simulating.Beliefs(demand.believed_seconds))
    if rule.waits == "unknown":
        return uninformed
    learned = fitted_waits(demand, market, nodes, rule)
    if learned is None:
        return uninformed
    informed = simulated(simulating.Beliefs(demand.believed_seconds, learned))
    after = np.arange(len(jobs)) >= simulating.first_predicted(len(jobs))
    return replace(
        informed,
        start_seconds=np.where(after, informed.start_seconds, uninformed.start_seconds),
        place=np.where(after, informed.place, uninformed.place),
    )


def fitted_waits(demand: Demand, market: Market, nodes: int, rule: WaitingRule) -> WaitModel | None:
    """A linear model of waits from the state of so many nodes, learned as it could be live.

    The first third of the jobs wait for them up to the rule's limit. Learned is from those whose
    wait was over by its end, whatever came of it; None where these are too few. It may be used from
    ``first_predicted`` on.
    """
    limit = rule.waiting_seconds
    policy = simulating.waiting_policy("all-jobs-wait-threshold", limit, queue=rule.queue)

    def all_wait(many: int, every: int) -> tuple[simulating.Simulated, simulating.WaitingPolicy]:
        jobs, beliefs = (
            demand.jobs.among(slice(many)),
            simulating.Beliefs(demand.believed_seconds[:many]),
        )
        fixed = market.fixed(nodes)
        return simulating.simulate(
            jobs, fixed, market.family, policy, beliefs, features_every=every
        ), policy

    rows = simulating.observed_waits(demand.jobs.submit_seconds, limit, all_wait)
    return None if rows is None else simulating.linear_waits(rows)


def _trial_costs(demand: Demand, rule: WaitingRule, lost: Floats | None) -> Floats:
    """Money for a trial of each job; one whose machine is taken back is tried again on demand."""
    hourly = demand.on_demand_hour / _HOUR
    cost: Floats = np.minimum(demand.jobs.runtime_seconds, rule.short_seconds) * hourly
    if lost is None:
        return cost
    assert demand.transient is not None
    price = demand.transient.price
    return np.where(lost > 0.0, lost * price * hourly + cost, cost * price)


def try_all(
    demand: Demand,
    market: Market,
    pairs: Iterable[tuple[int, WaitingRule]],
    workers: int,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[RuleResult]:
    """Every pair of nodes and rule, in their order, several at once.

    ``progress`` hears how many of how many are done.
    """
    chosen = list(dict.fromkeys(pairs))
    demand.jobs.requests  # noqa: B018 - made once, before the threads ask for it
    with ThreadPoolExecutor(workers) as pool:
        found = pool.map(lambda pair: try_rule(demand, market, *pair), chosen)
        for done, each in enumerate(found, start=1):
            if progress is not None:
                progress(done, len(chosen))
            yield each
