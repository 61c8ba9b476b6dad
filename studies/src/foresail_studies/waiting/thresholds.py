"""Study ``waiting-thresholds``: thresholds, wrong predictions and order, fleet by fleet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.cloud.waiting.simulating import Queue
from foresail.model.registry import register
from foresail_studies.renting import formulas
from foresail_studies.study import (
    Bound,
    GridPoint,
    Mean,
    Measure,
    Study,
    Task,
    points_at,
    published,
)
from foresail_studies.waiting import _shared as waiting
from foresail_studies.waiting.models import (
    FEWEST,
    LOAD,
    SHORT_SECONDS,
    WAITING_SECONDS,
    ModelParameters,
    Simulation,
    WaitingFormula,
    marginal_use,
    short_waits_wait_conserving,
)

_MARGINAL: Final = Measure("marginal_use", "use of the last server", "share")

_FLEETS: Final = (85, 90, 93, 95, 100, 103, 105, 108, 109, 112, 120)
_LAST: Final = "the last server, nobody waits (figure 6.3)"
_PATIENCE: Final = "all wait up to b (figure 6.4)"
_OVER: Final = "SWW, waits predicted too long (figure 6.6)"
_CONSERVING: Final = "SWW, waits predicted too long, but free servers are used"
_UNDER: Final = "SWW, waits predicted too short (figure 6.7)"
_FIRST_COME: Final = "first come, first served (figure 6.11 a)"
_SHORTEST: Final = "shortest job first (figure 6.11 b)"

_QUEUES: Final[Mapping[str, Queue]] = {_FIRST_COME: "fcfs", _SHORTEST: "sjf"}

_POLICIES: Final = ("ajw", "ajw-t", "sww", "ljw", "compound")
_SIMULATED: Final = (95, 99, 101, 104, 108)
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
        cases += _formulas(seed) + _simulations(seed, parameters.jobs)
    return Study(
        title="What do thresholds, wrong predictions and the order of the queue do to waiting?",
        source=f"{waiting.SOURCE}, figures 6.3, 6.4, 6.6, 6.7 and 6.11",
        axis="servers",
        measures=(waiting.PRICE, waiting.WAIT, waiting.OPPORTUNITY, waiting.RENTED, _MARGINAL),
        drawn=("price", "mean_wait_seconds", "opportunity_cost", "marginal_use"),
        cases=tuple(cases),
        claims=published(_claims()),
        notes=(
            "Formulas are the same in every seed. Equations 6.9 and 6.13 are corrected.",
            "b is 900 s and t is 180 s where nothing else is said. Both orders of the queue are "
            "simulated on the same jobs: no formula is published for the shortest first.",
        ),
    )


def _formulas(seed: int) -> list[GridPoint]:
    """The same in every seed; run once."""
    return [
        point
        for servers in _FLEETS
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


def _simulations(seed: int, jobs: int) -> list[GridPoint]:
    limits = WAITING_SECONDS, SHORT_SECONDS
    return [
        GridPoint(
            group, servers, policy, seed, Simulation(policy, servers, *limits, jobs, seed, queue)
        )
        for policy in _POLICIES
        for servers in _SIMULATED
        if servers >= FEWEST.get(policy, 0)
        for group, queue in _QUEUES.items()
    ]


def _claims() -> dict[str, Bound]:
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
            for policy in _POLICIES
            if policy != "compound"
        }
    claims |= {
        f"Shortest first, the opportunity cost is lower ({policy}).": Bound(
            cost(_SHORTEST, policy, *at[_SKIPPED.get(policy, 0) :]),
            cost(_FIRST_COME, policy, *at[_SKIPPED.get(policy, 0) :]),
        )
        for policy in _POLICIES
    }
    return claims
