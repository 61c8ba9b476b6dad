"""Studies ``waiting-models`` and ``waiting-thresholds``: policies by formula and by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from foresail.cloud.waiting.jobs import FixedMachines, RentedType, TraceJobs
from foresail.cloud.waiting.simulating import Beliefs, Foresight, Queue, WaitingPolicy, simulate
from foresail.model.registry import register
from foresail_studies.declaring import declared
from foresail_studies.study import GridPoint, Measure, Study, StudyParameters, Task, points_at
from foresail_studies.waiting import _shared as waiting
from foresail_studies.waiting import formulas
from foresail_studies.waiting.metrics import measured

LOAD: Final = formulas.Load(0.2, 0.002, 0.4)
WAITING_SECONDS: Final = 900.0
SHORT_SECONDS: Final = 180.0
_SERVERS: Final = (85, 90, 93, 95, 97, 99, 101, 102, 103, 104, 105, 106, 107, 108, 109, 112, 120)
_SIMULATED: Final = (90, 93, 95, 99, 101, 104, 108)
_POLICIES: Final = ("ajw", "njw", "ajw-t", "sww", "ljw", "compound")
FEWEST: Final = {"ajw": 104, "ljw": 99}
"""Servers with which a simulated queue that no job leaves is steady soon enough."""


def short_waits_wait_conserving(
    load: formulas.Load, servers: ArrayLike, waiting_seconds: float, over: ArrayLike = 0.0
) -> formulas.LongRunOutcome:
    """SWW in which a job uses a free fixed server whatever is predicted of its wait.

    ``over`` is then the share of those that find none free and would have waited within the
    threshold; with all of them the policy is NJW.
    """
    right = 1.0 - np.asarray(over, dtype=np.float64)
    rates = load.arrivals_per_second, load.services_per_second
    queue = formulas.with_patience(*rates, servers, waiting_seconds, right)
    return formulas.long_run(load, servers, queue.wait_seconds, queue.leaving, queue.leaving)


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
            self.over,
            self.under,
        )
        steady = math.isfinite(float(found.wait_seconds))
        numbers = {**_numbers(found), "opportunity_cost": float(found.opportunity_cost)}
        return numbers if steady else dict.fromkeys(numbers, math.nan)


def _numbers(found: formulas.LongRunOutcome) -> dict[str, float]:
    return {
        "price": float(found.price),
        "mean_wait_seconds": float(found.wait_seconds),
        "rented_work": float(found.rented_work),
    }


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
        return waiting.numbers_of(measured(found, fixed, policy, trim=0.1))


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
        cases += _formulas(seed)
        for policy, servers, task in _simulations(seed, parameters.jobs, _POLICIES, _SIMULATED):
            cases.append(GridPoint("fleets", servers, f"{policy} simulated", seed, task))
    checked = {"sww": 93, "ajw-t": 95, "njw": 108, "compound": 90}
    rows = [{"policy": policy, "servers": count} for policy, count in checked.items()]
    return declared("waiting-models", waiting.MEASURES, cases, {"simulated": rows})


def _formulas(seed: int) -> list[GridPoint]:
    """The same in every seed, so that each simulation has them beside it; run once."""
    limits = WAITING_SECONDS, SHORT_SECONDS
    fleets = [
        GridPoint("fleets", servers, policy, seed, WaitingFormula(policy, servers, *limits))
        for policy in _POLICIES
        for servers in _SERVERS
    ]
    short = [
        GridPoint("short", t, policy, seed, WaitingFormula(policy, 101, WAITING_SECONDS, t))
        for policy in ("ljw", "compound")
        for t in (0.0, 60.0, 180.0, 300.0, 600.0, 1200.0, 1800.0)
    ]
    wrong = [
        GridPoint(
            "wrong",
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


def _simulations(
    seed: int, jobs: int, policies: Iterable[str], servers: Iterable[int], queue: Queue = "fcfs"
) -> Iterator[tuple[str, int, Simulation]]:
    """Policy, servers and simulation, where its queue is steady soon enough."""
    for policy in policies:
        for count in servers:
            if count >= FEWEST.get(policy, 0):
                limits = WAITING_SECONDS, SHORT_SECONDS
                yield policy, count, Simulation(policy, count, *limits, jobs, seed, queue)


_MARGINAL: Final = Measure("marginal_use", "use of the last server", "share")

_THRESHOLD_FLEETS: Final = (85, 90, 93, 95, 100, 103, 105, 108, 109, 112, 120)

_QUEUES: Final[Mapping[str, Queue]] = {"first": "fcfs", "shortest": "sjf"}

_THRESHOLD_POLICIES: Final = ("ajw", "ajw-t", "sww", "ljw", "compound")
_THRESHOLD_SIMULATED: Final = (95, 99, 101, 104, 108)


@dataclass(frozen=True, slots=True)
class LastServer:
    """Use of the last of so many servers where no job waits."""

    servers: int

    def measure(self) -> Mapping[str, float]:
        """Its use, and the price with all of them."""
        found = formulas.expected("njw", LOAD, self.servers)
        use = formulas.marginal_use("njw", LOAD, np.array([self.servers]))
        return {"marginal_use": float(use[0]), "price": float(found.price)}


@dataclass(frozen=True, slots=True)
class Conserving:
    """SWW where a free server is used whatever is predicted; ``over`` of the others are wrong."""

    servers: int
    waiting_seconds: float
    over: float

    def measure(self) -> Mapping[str, float]:
        """Evaluate the formula."""
        limits = self.servers, self.waiting_seconds, self.over
        return _numbers(short_waits_wait_conserving(LOAD, *limits))


@dataclass(frozen=True, slots=True)
class ThresholdParameters(ModelParameters, quick="seeds=3 jobs=300000", minutes=(0.5, 20)):
    """Parameters of ``waiting-thresholds``."""

    seeds: int = 10


@register("study", "waiting-thresholds", parameters=ThresholdParameters)
def waiting_thresholds(parameters: ThresholdParameters) -> Study:
    """Thresholds, wrong predictions and the order of the queue (6.3, 6.4, 6.6, 6.7, 6.11)."""
    steady = [
        {"policy": each, "at": "104,108" if each == "ajw" else "99,101,104,108"}
        for each in _THRESHOLD_POLICIES
    ]
    compound = [{"group": group, **each} for group in _QUEUES for each in steady[:-1]]
    cases = []
    for seed in range(parameters.seeds):
        for servers in _THRESHOLD_FLEETS:
            for group, tasks in _formulas_of(servers).items():
                cases += points_at(group, servers, seed, tasks)
        for group, queue in _QUEUES.items():
            fleets = _THRESHOLD_POLICIES, _THRESHOLD_SIMULATED, queue
            for policy, servers, task in _simulations(seed, parameters.jobs, *fleets):
                cases.append(GridPoint(group, servers, policy, seed, task))
    rows = {"compound": compound, "order": steady}
    return declared("waiting-thresholds", (*waiting.MEASURES, _MARGINAL), cases, rows)


def _formulas_of(servers: int) -> dict[str, dict[str, Task]]:
    """Return what is compared with so many servers, by group and system."""

    def formula(policy: str, b: float = WAITING_SECONDS, **wrong: float) -> Task:
        return WaitingFormula(policy, servers, b, SHORT_SECONDS, **wrong)

    def wrong(percents: Sequence[int], task: Callable[[float], Task]) -> dict[str, Task]:
        return {f"{percent} % wrong": task(percent / 100.0) for percent in percents}

    nobody = formula("njw")
    return {
        "last": {"nobody waits": LastServer(servers)},
        "patience": {
            "all wait": formula("ajw"),
            "nobody waits": nobody,
            **{f"b={b:g} s": formula("ajw-t", b) for b in (60.0, 300.0, 900.0, 3600.0)},
        },
        "over": wrong((0, 3, 5, 30), lambda share: formula("sww", over=share))
        | {"nobody waits": nobody},
        "conserving": wrong(
            (0, 3, 5, 30, 100), lambda share: Conserving(servers, WAITING_SECONDS, share)
        )
        | {"nobody waits": nobody},
        "under": wrong((0, 30, 100), lambda share: formula("sww", under=share))
        | {"b=900 s": formula("ajw-t")},
    }
