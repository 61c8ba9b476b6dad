"""Study ``waiting-delay``: policies that know what a delay is worth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final

import numpy as np

from foresail.cloud.waiting.kernels.waiting_choice import WaitModel
from foresail.cloud.waiting.learning import forest_waits, wait_rows
from foresail.cloud.waiting.simulating import Beliefs, simulate, waiting_policy
from foresail.model.registry import register
from foresail_studies.study import GridPoint, Mean, Measure, Study, points_at, published
from foresail_studies.waiting import _shared as waiting

_SYSTEMS: Final = ("weighing", "sww", "ajw", "njw")
_GROUP: Final = "money and delay"
_EXAMPLES: Final = 50_000
_PARTS: Final = 8
_SPREAD: Final = 1.5


@dataclass(frozen=True, slots=True)
class DelayRun:
    """A policy for jobs whose delays are worth ``worth`` core-hours an hour, in the middle.

    Worth differs from job to job by a factor that is log-normal, with a deviation of 1.5.
    """

    trace: waiting.Trace
    percent: float
    waiting_seconds: float
    system: str
    worth: float

    def measure(self) -> Mapping[str, float]:
        """Its metrics, and what it cost with all delays, relative to renting for every job."""
        jobs, fixed = self.trace.read(), self.trace.machines(self.percent)
        policy = waiting_policy(
            self.system, self.waiting_seconds if self.system == "sww" else math.inf
        )
        model = _learned(self.trace, self.percent)
        random = np.random.default_rng(self.trace.seed)
        delay = self.worth * waiting.CORE_HOUR * random.lognormal(0.0, _SPREAD, len(jobs))
        told = Beliefs(
            jobs.runtime_seconds, model if self.system in ("weighing", "sww") else None, delay
        )
        _, result = waiting.ran(jobs, fixed, policy, told)
        all_costs = (result.total_cost + result.delay_cost) / result.on_demand_cost
        return {**waiting.figures_of(result), "all_costs": all_costs}


@lru_cache(maxsize=1)
def _learned(trace: waiting.Trace, percent: float) -> WaitModel:
    """A forest with the quantiles of the waits of another year, in which all wait."""
    jobs, fixed = trace.another().read(), trace.machines(percent)
    policy = waiting_policy("ajw")
    every = max(1, len(jobs) // _EXAMPLES)
    found = simulate(
        jobs, fixed, waiting.FAMILY, policy, Beliefs.true_runtimes(jobs), features_every=every
    )
    return forest_waits(wait_rows(found, policy), trees=20, parts=_PARTS)


@dataclass(frozen=True, slots=True)
class DelayParameters(waiting.YearParameters):
    """Parameters of ``waiting-delay``."""

    QUICK: ClassVar[dict[str, str]] = {"seeds": "3", "jobs": "1000000", "worths": "[0.01,0.1,1]"}
    QUICK_MINUTES: ClassVar[float] = 4.0
    FULL_MINUTES: ClassVar[float] = 30.0

    percent: float = 120.0
    """Of the mean load that fixed machines hold."""
    waiting_hours: float = 24.0
    """The longest wait under ``sww``."""
    worths: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
    """Core-hours that an hour's delay of a job is worth, in the middle."""


@register("study", "waiting-delay", parameters=DelayParameters)
def waiting_delay(parameters: DelayParameters) -> Study:
    """Weigh distributions of waits against the worth of each job's delay."""
    cases: list[GridPoint] = []
    for seed in range(parameters.seeds):
        year = waiting.Trace("", parameters.jobs, seed)
        where = year, parameters.percent, 3600.0 * parameters.waiting_hours
        for worth in parameters.worths:
            runs = {system: DelayRun(*where, system, worth) for system in _SYSTEMS}
            cases += points_at(_GROUP, worth, seed, runs)
    return Study(
        title="What does it give to know what a delay is worth?",
        source="Foresail: beyond the published policies",
        axis="core-hours that an hour's delay is worth",
        measures=(
            Measure("all_costs", "money and delays (1 = all on demand)"),
            waiting.PRICE,
            waiting.WAIT,
            waiting.RENTED,
        ),
        drawn=("all_costs", "price", "mean_wait_seconds"),
        cases=tuple(cases),
        claims=published(
            {
                f"Weighing costs less than that {name}, if delays are worth {worth:g}.": Mean(
                    "all_costs", "weighing", _GROUP, (worth,)
                ).against(system)
                for worth in parameters.worths
                for system, name in (("ajw", "all wait"), ("njw", "none waits"))
            }
        ),
        notes=(
            "Claims are ours; nothing of this was published.",
            "The forest learned from another year in which all wait, where waits are longer than "
            "under the policy that it then serves.",
        ),
    )
