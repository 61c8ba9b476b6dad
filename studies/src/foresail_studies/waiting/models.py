"""Studies ``waiting-models`` and ``waiting-thresholds``: policies by formula and by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from foresail.cloud.waiting.jobs import FixedMachines, RentedType, TraceJobs
from foresail.cloud.waiting.simulating import Beliefs, Foresight, Queue, WaitingPolicy, simulate
from foresail.model.arrays import Floats
from foresail.model.registry import register
from foresail_studies.renting import formulas
from foresail_studies.renting.formulas import (
    checked_amount,
    checked_servers,
    checked_share,
    with_patience,
)
from foresail_studies.renting.metrics import measured
from foresail_studies.study import (
    Bound,
    GridPoint,
    Mean,
    Measure,
    Study,
    StudyParameters,
    Task,
    points_at,
    published,
)
from foresail_studies.waiting import _shared as waiting

LOAD: Final = formulas.Load(0.2, 0.002, 0.4)
WAITING_SECONDS: Final = 900.0
SHORT_SECONDS: Final = 180.0
_SERVERS: Final = (85, 90, 93, 95, 97, 99, 101, 102, 103, 104, 105, 106, 107, 108, 109, 112, 120)
_SIMULATED: Final = (90, 93, 95, 99, 101, 104, 108)
_POLICIES: Final = ("ajw", "njw", "ajw-t", "sww", "ljw", "compound")
FEWEST: Final = {"ajw": 104, "ljw": 99}
"""Servers with which a simulated queue that no job leaves is steady soon enough."""
_FLEETS: Final = "fleets (b = 900 s, t = 180 s)"
_SHORT: Final = "short jobs (101 servers)"
_WRONG: Final = "wrong predictions (SWW: 95 servers, LJW: 101)"


def short_waits_wait_conserving(
    load: formulas.Load,
    servers: ArrayLike,
    waiting_seconds: ArrayLike,
    over: ArrayLike = 0.0,
) -> formulas.LongRunOutcome:
    """SWW in which a job uses a free fixed server whatever is predicted of its wait.

    ``over`` is then the share of those that find none free and would have waited within the
    threshold; with all of them the policy is NJW.
    """
    whole = checked_servers(servers)
    wrong = checked_share("over", over)
    threshold = checked_amount("waiting threshold", waiting_seconds)
    queue = with_patience(
        load.arrivals_per_second, load.services_per_second, whole, threshold, 1.0 - wrong
    )
    return formulas.long_run(load, whole, queue.wait_seconds, queue.leaving, queue.leaving)


def marginal_use(
    policy: str, load: formulas.Load, servers: ArrayLike, waiting_seconds: float
) -> Floats:
    """Rented work that the last of so many fixed servers takes over, as a share of its time.

    It falls with the number of servers; a server is worth owning while this is at least its fixed
    price (section 6.4's "utilisation of the s-th server").
    """
    whole = checked_servers(servers)
    with_it = formulas.expected(policy, load, whole, waiting_seconds).rented_work
    without = formulas.expected(policy, load, np.maximum(whole - 1, 0), waiting_seconds).rented_work
    return load.offered * (without - with_it)


@dataclass(frozen=True, slots=True)
class WaitingFormula:
    """One point of a model; ``over`` and ``under`` are shares of wrong predictions."""

    policy: str
    servers: int
    waiting_seconds: float
    short_seconds: float
    over: float = 0.0
    under: float = 0.0

    def measure(self) -> Mapping[str, float]:
        """Evaluate the formula; NaN throughout where waits have no end."""
        found = formulas.expected(
            self.policy,
            LOAD,
            self.servers,
            self.waiting_seconds,
            self.short_seconds,
            formulas.Mispredicted(self.over, self.under),
        )
        numbers = {
            "price": float(found.price),
            "mean_wait_seconds": float(found.wait_seconds),
            "rented_work": float(found.rented_work),
        }
        numbers["opportunity_cost"] = float(found.opportunity_cost)
        steady = math.isfinite(numbers["mean_wait_seconds"])
        return {key: each if steady else math.nan for key, each in numbers.items()}


@dataclass(frozen=True, slots=True)
class Simulation:
    """The same point on exponential jobs, of which the first and last tenth are not counted."""

    policy: str
    servers: int
    waiting_seconds: float
    short_seconds: float
    jobs: int
    seed: int
    queue: Queue = "fcfs"

    def measure(self) -> Mapping[str, float]:
        """Measure the results."""
        policy = WaitingPolicy(
            self.waiting_seconds if self.policy in ("ajw-t", "sww", "compound") else math.inf,
            self.short_seconds if self.policy in ("ljw", "compound") else 0.0,
            patience_seconds=0.0 if self.policy == "njw" else None,
            conserving=False,
            queue=self.queue,
        )
        jobs = _exponential(self.jobs, self.seed)
        told = Foresight() if self.policy in ("sww", "compound") else None
        fixed = FixedMachines(self.servers, 1, price_per_hour=LOAD.fixed_price)
        family = (RentedType("server", 1, 1.0, 1.0),)
        found = simulate(jobs, fixed, family, policy, Beliefs.true_runtimes(jobs, told))
        return waiting.figures_of(measured(found, fixed, policy, trim=0.1))


@lru_cache(maxsize=1)
def _exponential(count: int, seed: int) -> TraceJobs:
    random = np.random.default_rng(seed)
    return TraceJobs(
        np.cumsum(random.exponential(1.0 / LOAD.arrivals_per_second, count)),
        random.exponential(1.0 / LOAD.services_per_second, count),
        np.ones(count, dtype=np.int64),
    )


@dataclass(frozen=True, slots=True)
class ModelParameters(StudyParameters, quick="seeds=3 jobs=500000", minutes=(2, 20)):
    """Parameters of ``waiting-models``."""

    seeds: int = 20

    jobs: int = 2_000_000
    """Per simulation."""


@register("study", "waiting-models", parameters=ModelParameters)
def waiting_models(parameters: ModelParameters) -> Study:
    """Waiting policies by formula and by simulation (figures 6.2 to 6.11)."""
    cases = []
    for seed in range(parameters.seeds):
        cases += _formulas(seed) + _simulations(seed, parameters.jobs)
    return Study(
        title="Which waiting policy pays, by formula and by simulation?",
        source=f"{waiting.SOURCE}, figures 6.2 to 6.11",
        axis="servers, seconds (short jobs) or % (wrong predictions)",
        measures=(waiting.PRICE, waiting.WAIT, waiting.OPPORTUNITY, waiting.RENTED),
        drawn=("price", "mean_wait_seconds", "opportunity_cost"),
        cases=tuple(cases),
        claims=published(*_model_claims()),
        notes=(
            "Equations 6.9, 6.13, 6.22 and 6.25 are corrected; each agrees with simulation.",
            "Near a load of one a simulated wait scatters from seed to seed by a tenth and more.",
        ),
    )


def _formulas(seed: int) -> list[GridPoint]:
    """The same in every seed, so that each simulation has them beside it; run once."""
    limits = WAITING_SECONDS, SHORT_SECONDS
    fleets = [
        GridPoint(_FLEETS, servers, policy, seed, WaitingFormula(policy, servers, *limits))
        for policy in _POLICIES
        for servers in _SERVERS
    ]
    short = [
        GridPoint(_SHORT, t, policy, seed, WaitingFormula(policy, 101, WAITING_SECONDS, t))
        for policy in ("ljw", "compound")
        for t in (0.0, 60.0, 180.0, 300.0, 600.0, 1200.0, 1800.0)
    ]
    wrong = [
        GridPoint(
            _WRONG,
            percent,
            f"{policy} {kind}",
            seed,
            WaitingFormula(policy, servers, *limits, **{kind: percent / 100.0}),
        )
        for policy, servers in (("sww", 95), ("ljw", 101))
        for kind in ("over", "under")
        for percent in (0.0, 5.0, 10.0, 20.0, 30.0, 50.0)
    ]
    return fleets + short + wrong


def _simulations(seed: int, jobs: int) -> list[GridPoint]:
    return [
        GridPoint(
            _FLEETS,
            servers,
            f"{policy} simulated",
            seed,
            Simulation(policy, servers, WAITING_SECONDS, SHORT_SECONDS, jobs, seed),
        )
        for policy in _POLICIES
        for servers in _SIMULATED
        if servers >= FEWEST.get(policy, 0)
    ]


def _model_claims() -> Iterator[dict[str, Bound]]:
    def price(system: str, servers: float) -> Mean:
        return Mean("price", system, _FLEETS, (servers,))

    def wait(system: str, servers: float) -> Mean:
        return Mean("mean_wait_seconds", system, _FLEETS, (servers,))

    yield {
        "Without waiting, 108 servers are cheapest, at 0.467 (figure 6.3).": Bound(
            price("njw", 108), 0.46695
        ),
        "... cheaper than 107.": Bound(price("njw", 108), price("njw", 107)),
        "... and than 109.": Bound(price("njw", 108), price("njw", 109)),
        "If all wait for those 108, they pay 7.5 % less and wait 20 s.": price("ajw", 108).against(
            "njw", factor=0.9253
        ),
        "... wait no more than 21 s.": Bound(wait("ajw", 108), 21.0),
        "SWW waits longest with 93 servers (figure 6.5): longer than with 90.": Bound(
            wait("sww", 90), wait("sww", 93)
        ),
        "... and than with 95.": Bound(wait("sww", 95), wait("sww", 93)),
        "The compound never has a higher opportunity cost than LJW (figure 6.11).": Mean(
            "opportunity_cost", "compound", _FLEETS, (99.0, 101.0, 104.0, 108.0)
        ).against("ljw"),
    }
    yield _claims_on_short_jobs()
    for policy, servers in (("sww", 93), ("ajw-t", 95), ("njw", 108), ("compound", 90)):
        yield {
            f"Simulated, {policy} with {servers} servers costs within 1 % of the formula.": price(
                f"{policy} simulated", servers
            ).against(policy, factor=1.01),
            "... from below as well.": price(policy, servers).against(
                f"{policy} simulated", factor=1.01
            ),
        }


def _claims_on_short_jobs() -> dict[str, Bound]:
    """Return claims on LJW with 101 servers: the threshold, and wrong predictions."""

    def short(measure: str, t: float) -> Mean:
        return Mean(measure, "ljw", _SHORT, (t,))

    def wrong(measure: str, kind: str, percent: float) -> Mean:
        return Mean(measure, f"ljw {kind}", _WRONG, (percent,))

    return {
        "The more jobs count as short, the higher the price (figure 6.8).": Bound(
            short("price", 180), short("price", 600)
        ),
        "... and the shorter the mean wait: with 180 s a tenth of AJW's (taken as).": Bound(
            short("mean_wait_seconds", 180), short("mean_wait_seconds", 0), factor=0.1
        ),
        "Short jobs taken for long ones lower the price (figure 6.9 a).": Bound(
            wrong("price", "over", 30), wrong("price", "over", 0)
        ),
        "... but little: by 5 % at most, where 30 % are (taken as).": Bound(
            wrong("price", "over", 0), wrong("price", "over", 30), factor=1.05
        ),
        "Long jobs taken for short ones raise it significantly: by 10 % or more, where 30 % are "
        "(taken "
        "as).": Bound(wrong("price", "under", 0), wrong("price", "under", 30), factor=1.0 / 1.1),
        "The mean wait does the opposite (figure 6.9 "
        "b): longer for short jobs taken for long.": Bound(
            wrong("mean_wait_seconds", "over", 0), wrong("mean_wait_seconds", "over", 30)
        ),
        "... and shorter for long jobs taken for short ones.": Bound(
            wrong("mean_wait_seconds", "under", 30), wrong("mean_wait_seconds", "under", 0)
        ),
        "The compound's price is about LJW's once servers suffice (figure 6.10; taken as: within "
        "0.1 % "
        "with 101).": Mean("price", "compound", _FLEETS, (101.0,)).against("ljw", factor=1.001),
        "... and where they do not, it still waits no longer than b.": Bound(
            Mean("mean_wait_seconds", "compound", _FLEETS, (90.0,)), WAITING_SECONDS
        ),
    }


_MARGINAL: Final = Measure("marginal_use", "use of the last server", "share")

_THRESHOLD_FLEETS: Final = (85, 90, 93, 95, 100, 103, 105, 108, 109, 112, 120)
_LAST: Final = "the last server, nobody waits (figure 6.3)"
_PATIENCE: Final = "all wait up to b (figure 6.4)"
_OVER: Final = "SWW, waits predicted too long (figure 6.6)"
_CONSERVING: Final = "SWW, waits predicted too long, but free servers are used"
_UNDER: Final = "SWW, waits predicted too short (figure 6.7)"
_FIRST_COME: Final = "first come, first served (figure 6.11 a)"
_SHORTEST: Final = "shortest job first (figure 6.11 b)"

_QUEUES: Final[Mapping[str, Queue]] = {_FIRST_COME: "fcfs", _SHORTEST: "sjf"}

_THRESHOLD_POLICIES: Final = ("ajw", "ajw-t", "sww", "ljw", "compound")
_THRESHOLD_SIMULATED: Final = (95, 99, 101, 104, 108)
_SKIPPED: Final = {"ajw": 2}
"""How many of the fleets that are compared are not simulated for a policy."""


@dataclass(frozen=True, slots=True)
class LastServer:
    """Use of the last of so many servers where no job waits."""

    servers: int

    def measure(self) -> Mapping[str, float]:
        """Its use, and the price with all of them."""
        found = formulas.expected("njw", LOAD, self.servers)
        use = marginal_use("njw", LOAD, np.array([self.servers]), WAITING_SECONDS)
        return {"marginal_use": float(use[0]), "price": float(found.price)}


@dataclass(frozen=True, slots=True)
class Conserving:
    """SWW where a free server is used whatever is predicted; ``over`` of the others are wrong."""

    servers: int
    waiting_seconds: float
    over: float

    def measure(self) -> Mapping[str, float]:
        """Evaluate the formula."""
        found = short_waits_wait_conserving(LOAD, self.servers, self.waiting_seconds, self.over)
        return {
            "price": float(found.price),
            "mean_wait_seconds": float(found.wait_seconds),
            "rented_work": float(found.rented_work),
        }


@dataclass(frozen=True, slots=True)
class ThresholdParameters(ModelParameters, quick="seeds=3 jobs=300000", minutes=(0.5, 20)):
    """Parameters of ``waiting-thresholds``."""

    seeds: int = 10


@register("study", "waiting-thresholds", parameters=ThresholdParameters)
def waiting_thresholds(parameters: ThresholdParameters) -> Study:
    """Thresholds, wrong predictions and the order of the queue (6.3, 6.4, 6.6, 6.7, 6.11)."""
    cases = []
    for seed in range(parameters.seeds):
        cases += _threshold_formulas(seed) + _threshold_simulations(seed, parameters.jobs)
    return Study(
        title="What do thresholds, wrong predictions and the order of the queue do to waiting?",
        source=f"{waiting.SOURCE}, figures 6.3, 6.4, 6.6, 6.7 and 6.11",
        axis="servers",
        measures=(waiting.PRICE, waiting.WAIT, waiting.OPPORTUNITY, waiting.RENTED, _MARGINAL),
        drawn=("price", "mean_wait_seconds", "opportunity_cost", "marginal_use"),
        cases=tuple(cases),
        claims=published(_threshold_claims()),
        notes=(
            "Formulas are the same in every seed. Equations 6.9 and 6.13 are corrected.",
            "b is 900 s and t is 180 s where nothing else is said. Both orders of the queue are "
            "simulated on the same jobs: no formula is published for the shortest first.",
        ),
    )


def _threshold_formulas(seed: int) -> list[GridPoint]:
    """The same in every seed; run once."""
    return [
        point
        for servers in _THRESHOLD_FLEETS
        for group, tasks in _formulas_of(servers).items()
        for point in points_at(group, servers, seed, tasks)
    ]


def _formulas_of(servers: int) -> dict[str, dict[str, Task]]:
    """Return what is compared with so many servers, by group and system."""

    def formula(policy: str, b: float = WAITING_SECONDS, **wrong: float) -> Task:
        return WaitingFormula(policy, servers, b, SHORT_SECONDS, **wrong)

    def wrong(percents: Sequence[int], task: Callable[[float], Task]) -> dict[str, Task]:
        return {f"{percent} % wrong": task(percent / 100.0) for percent in percents}

    nobody = formula("njw")
    return {
        _LAST: {"nobody waits": LastServer(servers)},
        _PATIENCE: {
            "all wait": formula("ajw"),
            "nobody waits": nobody,
            **{f"b={b:g} s": formula("ajw-t", b) for b in (60.0, 300.0, 900.0, 3600.0)},
        },
        _OVER: wrong((0, 3, 5, 30), lambda share: formula("sww", over=share))
        | {"nobody waits": nobody},
        _CONSERVING: wrong(
            (0, 3, 5, 30, 100), lambda share: Conserving(servers, WAITING_SECONDS, share)
        )
        | {"nobody waits": nobody},
        _UNDER: wrong((0, 30, 100), lambda share: formula("sww", under=share))
        | {"b=900 s": formula("ajw-t")},
    }


def _threshold_simulations(seed: int, jobs: int) -> list[GridPoint]:
    limits = WAITING_SECONDS, SHORT_SECONDS
    return [
        GridPoint(
            group, servers, policy, seed, Simulation(policy, servers, *limits, jobs, seed, queue)
        )
        for policy in _THRESHOLD_POLICIES
        for servers in _THRESHOLD_SIMULATED
        if servers >= FEWEST.get(policy, 0)
        for group, queue in _QUEUES.items()
    ]


def _threshold_claims() -> dict[str, Bound]:
    def price(group: str, system: str, *servers: float) -> Mean:
        return Mean("price", system, group, servers)

    def wait(group: str, system: str, *servers: float) -> Mean:
        return Mean("mean_wait_seconds", system, group, servers)

    def cost(group: str, system: str, *servers: float) -> Mean:
        return Mean("opportunity_cost", system, group, servers)

    def use(servers: float) -> Mean:
        return Mean("marginal_use", "nobody waits", _LAST, (servers,))

    claims = {
        "The cheapest fleet is the largest whose last server is used "
        "as much as the price of owning, 0.4 (figure 6.3): 108 servers are.": Bound(0.4, use(108)),
        "... and 109 are not.": Bound(use(109), 0.4),
        "Longer patience is cheaper (figure 6.4): 900 s than 60 s.": Bound(
            price(_PATIENCE, "b=900 s", 100.0), price(_PATIENCE, "b=60 s", 103.0)
        ),
        "... and waits longer.": Bound(
            wait(_PATIENCE, "b=60 s", 103.0), wait(_PATIENCE, "b=900 s", 100.0)
        ),
        "The price is between that of all waiting and that of nobody waiting.": price(
            _PATIENCE, "all wait", 108.0
        ).against("b=60 s"),
        "... on the other side as well.": price(_PATIENCE, "b=60 s", 108.0).against("nobody waits"),
        "5 % of waits predicted too long change the price a lot (figure 6.6; taken as: 5 % more or "
        "beyond, with "
        "100 servers).": price(_OVER, "0 % wrong", 100.0).against("5 % wrong", factor=1.0 / 1.05),
        "... and shorten the wait.": wait(_OVER, "5 % wrong", 100.0).against("0 % wrong"),
        "With many servers that costs more than if nobody waited.": price(
            _OVER, "nobody waits", 120.0
        ).against("30 % wrong"),
        "... not where free servers are used.": price(_CONSERVING, "30 % wrong", 120.0).against(
            "nobody waits", factor=1.0001
        ),
        "There, with all predictions wrong, nobody waits and 108 servers are cheapest.": Bound(
            price(_CONSERVING, "100 % wrong", 108.0), price(_CONSERVING, "100 % wrong", 105.0)
        ),
        "Waits predicted too short lengthen the wait (figure 6.7).": wait(
            _UNDER, "0 % wrong", 93.0
        ).against("30 % wrong"),
        "... up to that of all waiting up to b (taken as: within 0.1 %).": wait(
            _UNDER, "100 % wrong", 93.0
        ).against("b=900 s", factor=1.001),
        "... and do not change the price (taken as: within 0.1 %).": price(
            _UNDER, "100 % wrong", 93.0
        ).against("0 % wrong", factor=1.001),
    }
    at = (99.0, 101.0, 104.0, 108.0)
    for group in _QUEUES:
        claims |= {
            f"Nothing has a lower opportunity cost than the compound ({policy}; {group}).": cost(
                group, "compound", *at[_SKIPPED.get(policy, 0) :]
            ).against(policy)
            for policy in _THRESHOLD_POLICIES
            if policy != "compound"
        }
    claims |= {
        f"Shortest first, the opportunity cost is lower ({policy}).": Bound(
            cost(_SHORTEST, policy, *at[_SKIPPED.get(policy, 0) :]),
            cost(_FIRST_COME, policy, *at[_SKIPPED.get(policy, 0) :]),
        )
        for policy in _THRESHOLD_POLICIES
    }
    return claims
