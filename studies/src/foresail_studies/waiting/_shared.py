"""Shared parts of the studies of waiting policies: traces, policies, measures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from foresail.cloud.waiting.jobs import GIB, FixedMachines, RentedType, TraceJobs
from foresail.cloud.waiting.kernels.waiting import FIXED
from foresail.cloud.waiting.simulating import (
    QUEUES,
    Beliefs,
    Simulated,
    WaitingPolicy,
    simulate,
    waiting_policy,
)
from foresail.model.distribution import Floats
from foresail.model.errors import InputError
from foresail_studies.generators.university import Runtimes, university_year
from foresail_studies.study import Measure, StudyParameters, log_of
from foresail_studies.waiting.metrics import WaitingMetrics, measured, trial_costs
from foresail_studies.waiting.wait_models import SEED

MEASURES: Final = (
    Measure("price", "price (1 = all on demand)"),
    Measure("mean_wait_seconds", "mean wait", "duration"),
    Measure("opportunity_cost", "price x wait (s)"),
    Measure("rented_work", "work on demand", "share"),
    Measure("fixed_utilisation", "use of fixed machines", "share"),
    Measure("rented_to_fixed", "on-demand cost / fixed cost", "share"),
    Measure("percentage_error", "MAPE of runtimes"),
    Measure("correlation", "MCC of short jobs"),
)

_FIXED_PRICE: Final = 0.4
CORE_HOUR: Final = 0.0481
"""Price on demand; a fixed core costs 0.4 of it."""
FAMILY: Final = tuple(
    RentedType(f"{n}-core", n, n * 4.0 * GIB, n * CORE_HOUR) for n in (1, 2, 4, 8, 16, 32, 64)
)
"""Machines of 1 to 64 cores with 4 GiB each, whose price grows with them, as published."""


def long_jobs_of(
    simulated: Simulated, policy: WaitingPolicy, trial_price: float = 1.0
) -> Mapping[str, float]:
    """Share of long jobs, of those among them that meet full machines, their wait, cost of trials.

    A job is long from the policy's threshold for short ones on, or if a trial does not end it.
    ``trial_price`` is that of a machine for a trial, relative to the same on demand, where a trial
    is made again if its machine was taken back.
    """
    columns, place = simulated.columns, simulated.place
    long = columns.runtime >= policy.short_seconds
    if policy.speculation_seconds > 0.0:
        long = columns.runtime > policy.speculation_seconds
    wait = simulated.start_seconds - columns.submit
    blocked = long & ((place != FIXED) | (wait > 0.0))
    return {
        "trial_cost": float(trial_costs(simulated, policy, trial_price)[long].sum()),
        "long_jobs": float(long.mean()),
        "blocked_long_jobs": float(blocked.sum() / max(int(long.sum()), 1)),
        "blocked_wait_seconds": float(wait[blocked].mean()) if np.any(blocked) else 0.0,
    }


def perturbed(runtime_seconds: Floats, mean_error: float, seed: int = SEED) -> Floats:
    """Runtimes as a model of this mean absolute percentage error might tell them (0.1 is 10 %).

    Each is multiplied by 1 + e, with e normal and E|e| the error; never below 0.
    """
    deviation = mean_error * np.sqrt(np.pi / 2.0)
    errors = np.random.default_rng(seed).normal(0.0, deviation, runtime_seconds.size)
    return runtime_seconds * np.maximum(1.0 + errors, 0.0)


def matthews_correlation(predicted: ArrayLike, true: ArrayLike) -> float:
    """Correlation of two yes-or-no sequences (MCC): 1 is perfect, 0 as good as chance.

    It is 0 where one of them always says the same.
    """
    said, was = np.asarray(predicted, dtype=bool), np.asarray(true, dtype=bool)
    tp, fp, fn, tn = (float(np.sum(a & b)) for a in (said, ~said) for b in (was, ~was))
    product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return float((tp * tn - fp * fn) / np.sqrt(product)) if product > 0.0 else 0.0


def mean_absolute_percentage_error(predicted: ArrayLike, true: ArrayLike) -> float:
    """Mean of |predicted - true| / true over what is above 0 (MAPE); 1 is 100 %."""
    said, was = np.asarray(predicted, dtype=np.float64), np.asarray(true, dtype=np.float64)
    some = was > 0.0
    return float(np.mean(np.abs(said[some] - was[some]) / was[some])) if some.any() else math.nan


@dataclass(frozen=True, slots=True)
class YearParameters(StudyParameters):
    """Parameters that the studies of the generated year share."""

    seeds: int = 1

    jobs: int = 0
    """So many first jobs of it; 0: all."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Jobs to run: a log's, or those of the generated year."""

    log: str
    """Path of a log; empty for the generated year."""
    jobs: int
    """So many first jobs of the year; 0 for all of it."""
    seed: int
    """Of the year."""
    machine_cores: int = 64
    """Cores of a fixed machine; 0: all fixed cores are one pool, into which any job fits."""
    middle_seconds: float = Runtimes.middle_mean_seconds
    """Mean runtime of the year's jobs between three minutes and six hours."""

    def machines(self, percent: float) -> FixedMachines:
        """Return the fixed machines for a percentage of the mean load, at 0.4 of the price."""
        return machines_for(jobs_of(self), percent, self.machine_cores)


@lru_cache(maxsize=3)
def jobs_of(trace: Trace) -> TraceJobs:
    """The jobs; kept by the process for the next run."""
    if trace.log:
        return TraceJobs.of_workload(log_of(trace.log, 0))
    runtimes = Runtimes(trace.middle_seconds)
    return university_year(trace.jobs or None, trace.seed, runtimes=runtimes)


def mean_cores(jobs: TraceJobs, percent: float) -> float:
    """Cores for a percentage of jobs' mean load."""
    return percent / 100.0 * jobs.core_seconds / jobs.span_seconds


def machines_for(jobs: TraceJobs, percent: float, machine_cores: int = 0) -> FixedMachines:
    """Fixed machines for a percentage of jobs' mean load; without cores, all of it is one pool."""
    cores = mean_cores(jobs, percent)
    each = machine_cores or max(1, round(cores))
    price = _FIXED_PRICE * each * CORE_HOUR
    return FixedMachines(round(cores / each), each, price_per_hour=price)


def policy_of(system: str, waiting_seconds: float, short_seconds: float) -> WaitingPolicy:
    """A policy from its name and perhaps its queue: ``compound sjf``."""
    name, _, queue = system.partition(" ")
    if queue and queue not in QUEUES:
        raise InputError("no such queue", value=queue)
    return waiting_policy(name, waiting_seconds, short_seconds, queue or "fcfs")


def knowledge_of(estimates: Floats, jobs: TraceJobs, short_seconds: float) -> Mapping[str, float]:
    """Return how well runtimes are known: MCC of short jobs, and MAPE."""
    truth = jobs.runtime_seconds
    return {
        "correlation": matthews_correlation(estimates < short_seconds, truth < short_seconds),
        "percentage_error": mean_absolute_percentage_error(estimates, truth),
    }


def figures_of(
    jobs: TraceJobs, fixed: FixedMachines, policy: WaitingPolicy, told: Beliefs, seed: int = 0
) -> Mapping[str, float]:
    """Figures of a policy that is simulated on the published family."""
    return numbers_of(
        measured(simulate(jobs, fixed, FAMILY, policy, told, seed=seed), fixed, policy)
    )


def numbers_of(result: WaitingMetrics) -> Mapping[str, float]:
    """A result as numbers by name; NaN for what is not finite."""
    numbers = {name: float(value) for name, value in asdict(result).items()} | {
        "price": result.price,
        "opportunity_cost": result.opportunity_cost,
        "rented_to_fixed": result.rented_to_fixed if result.fixed_cost else math.nan,
        "total_cost": result.total_cost,
    }
    return {name: value if math.isfinite(value) else math.nan for name, value in numbers.items()}
