"""Shared parts of the studies of waiting policies: traces, settings, measures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Final

from foresail.cloud.waiting.jobs import (
    GIB,
    FixedMachines,
    RentedType,
    Requests,
    TraceJobs,
    proportional_family,
)
from foresail.cloud.waiting.metrics import WaitingMetrics, measured
from foresail.cloud.waiting.simulating import (
    Beliefs,
    Simulated,
    WaitingPolicy,
    simulate,
    waiting_policy,
)
from foresail.model.arrays import Floats
from foresail.model.errors import InputError
from foresail_studies import cloud as cloud
from foresail_studies.generated import log_of
from foresail_studies.stand_ins import CORE_HOUR as GOOGLE_CORE_HOUR
from foresail_studies.stand_ins import (
    CUSTOM_CORE_HOUR,
    CUSTOM_GIB_HOUR,
    MACHINE_BYTES,
    MACHINE_CORES,
    google_week,
    university_year,
)
from foresail_studies.study import Measure, StudyParameters
from foresail_studies.university import Runtimes
from foresail_studies.waiting.learned import matthews_correlation, mean_absolute_percentage_error

SOURCE: Final = cloud.SOURCE

KNOWLEDGE: Final = (
    Measure("percentage_error", "MAPE of runtimes"),
    Measure("correlation", "MCC of short jobs"),
)
PRICE: Final = Measure("price", "price (1 = all on demand)")
WAIT: Final = Measure("mean_wait_seconds", "mean wait", "duration")
OPPORTUNITY: Final = Measure("opportunity_cost", "price x wait (s)")
RENTED: Final = Measure("rented_work", "work on demand", "share")
UTILISATION: Final = Measure("fixed_utilisation", "use of fixed machines", "share")
RENTED_COST: Final = Measure("rented_to_fixed", "on-demand cost / fixed cost", "share")

APART: Final = 1000
"""Seeds of jobs to learn from are so far from those of the jobs that are run."""
_FIXED_PRICE: Final = 0.4
CORE_HOUR: Final = 0.0481
"""Price on demand; a fixed core costs 0.4 of it."""
YEAR: Final = "generated year"


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

    def read(self) -> TraceJobs:
        """The jobs; kept by the process for the next run."""
        return _read(self)

    def another(self) -> Trace:
        """A generated year like this one, for models to learn from.

        Raises ``InputError`` if this is a log.
        """
        if self.log:
            raise InputError("a log has no other year", value=self.log)
        return replace(self, seed=self.seed + APART)

    def machines(self, percent: float) -> FixedMachines:
        """Return the fixed machines for a percentage of the mean load, at 0.4 of the price."""
        return machines_for(self.read(), percent, self.machine_cores)

    def family(self) -> Sequence[RentedType]:
        """The published family."""
        return FAMILY


def machines_for(jobs: TraceJobs, percent: float, machine_cores: int = 0) -> FixedMachines:
    """Fixed machines for a percentage of jobs' mean load; without cores, all of it is one pool."""
    cores = percent / 100.0 * jobs.core_seconds / jobs.span_seconds
    each = machine_cores or max(1, round(cores))
    price = _FIXED_PRICE * each * CORE_HOUR
    return FixedMachines(round(cores / each), each, price_per_hour=price)


FAMILY: Final = proportional_family(CORE_HOUR)


@lru_cache(maxsize=2)
def _read(trace: Trace) -> TraceJobs:
    if trace.log:
        return TraceJobs.of_workload(log_of(trace.log, 0))
    runtimes = Runtimes(trace.middle_seconds)
    return university_year(trace.jobs or None, trace.seed, runtimes=runtimes)


@dataclass(frozen=True, slots=True)
class Week:
    """A week of a cell that is so many times as large as the published one, or a log."""

    log: str
    scale: float
    seed: int

    def read(self) -> TraceJobs:
        """The jobs; kept by the process for the next run."""
        return _read_week(self)

    def another(self) -> Week:
        """Another week; for a log itself, of which there is no other."""
        return self if self.log else replace(self, seed=self.seed + APART)

    def machines(self, percent: float) -> FixedMachines:
        """The published machines, for a percentage of the mean load."""
        jobs = self.read()
        cores = percent / 100.0 * jobs.core_seconds / jobs.span_seconds
        count = round(cores / MACHINE_CORES)
        return FixedMachines(
            max(count, 1),
            MACHINE_CORES,
            MACHINE_BYTES,
            price_per_hour=_FIXED_PRICE * MACHINE_CORES * GOOGLE_CORE_HOUR,
        )

    def family(self) -> Sequence[RentedType]:
        """Customised machines, or standard ones where it is not said how much memory jobs need."""
        jobs = self.read()
        if jobs.memory_bytes is None:
            return FAMILY
        return customised_family(jobs.requests, CUSTOM_CORE_HOUR, CUSTOM_GIB_HOUR)


def customised_family(
    requests: Requests, core_per_hour: float, gib_per_hour: float
) -> tuple[RentedType, ...]:
    """A machine for each distinct request, at a price of cores and one of memory (GiB).

    Nothing is customised for requests whose memory is not known, or that ask for gpus.
    """
    return tuple(
        RentedType(
            f"{cores} cores, {memory / GIB:g} GiB",
            cores,
            memory,
            cores * core_per_hour + memory / GIB * gib_per_hour,
        )
        for cores, memory, gpus in zip(
            requests.cores.tolist(),
            requests.memory_bytes.tolist(),
            requests.gpus.tolist(),
            strict=True,
        )
        if memory > 0.0 and gpus == 0.0
    )


@lru_cache(maxsize=2)
def _read_week(week: Week) -> TraceJobs:
    if week.log:
        return TraceJobs.of_workload(log_of(week.log, 0))
    return google_week(week.scale, week.seed)


JobSource = Trace | Week
"""Where jobs come from, and where they can run."""


def policy_of(system: str, waiting_seconds: float, short_seconds: float) -> WaitingPolicy:
    """A policy from its name and perhaps its queue: ``compound sjf``."""
    name, _, queue = system.partition(" ")
    policy = waiting_policy(name, waiting_seconds, short_seconds)
    if not queue:
        return policy
    if queue not in ("sjf", "strict-fcfs", "random"):
        raise InputError("no such queue", value=queue)
    return waiting_policy(name, waiting_seconds, short_seconds, queue)  # type: ignore[arg-type]


def knowledge_of(estimates: Floats, jobs: TraceJobs, short_seconds: float) -> Mapping[str, float]:
    """Return how well runtimes are known: MCC of short jobs, and MAPE."""
    truth = jobs.runtime_seconds
    return {
        "correlation": matthews_correlation(estimates < short_seconds, truth < short_seconds),
        "percentage_error": mean_absolute_percentage_error(estimates, truth),
    }


def ran(
    jobs: TraceJobs, fixed: FixedMachines, policy: WaitingPolicy, told: Beliefs, seed: int = 0
) -> tuple[Simulated, WaitingMetrics]:
    """A policy simulated on the published family, and what it came to."""
    found = simulate(jobs, fixed, FAMILY, policy, told, seed=seed)
    return found, measured(found, fixed, policy)


def figures_of(result: WaitingMetrics) -> Mapping[str, float]:
    """A result as numbers by name; NaN for what is not finite."""
    numbers = {name: float(value) for name, value in asdict(result).items()} | {
        "price": result.price,
        "opportunity_cost": result.opportunity_cost,
        "rented_to_fixed": result.rented_to_fixed if result.fixed_cost else math.nan,
        "total_cost": result.total_cost,
    }
    return {name: value if math.isfinite(value) else math.nan for name, value in numbers.items()}
