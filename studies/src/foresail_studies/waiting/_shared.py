"""Shared parts of the studies of waiting policies: traces, settings, measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from foresail.cloud.waiting.jobs import (
    GIB,
    FixedMachines,
    RentedType,
    Requests,
    TraceJobs,
    proportional_family,
)
from foresail.cloud.waiting.kernels.waiting import FIXED, RENT, TRIED, TraceColumns
from foresail.cloud.waiting.kernels.waiting_choice import WaitModel
from foresail.cloud.waiting.learning import WaitRows
from foresail.cloud.waiting.simulating import (
    Beliefs,
    Simulated,
    WaitingPolicy,
    simulate,
    waiting_policy,
)
from foresail.model.arrays import Floats
from foresail.model.errors import InputError, UnknownNameError
from foresail_studies import cloud as cloud
from foresail_studies.generators.university import Runtimes
from foresail_studies.renting.metrics import WaitingMetrics, measured
from foresail_studies.renting.wait_models import DEPTH, SEED, predicted_waits, scikit_learn
from foresail_studies.stand_ins import CORE_HOUR as GOOGLE_CORE_HOUR
from foresail_studies.stand_ins import (
    CUSTOM_CORE_HOUR,
    CUSTOM_GIB_HOUR,
    MACHINE_BYTES,
    MACHINE_CORES,
    google_week,
    university_year,
)
from foresail_studies.study import Measure, StudyParameters, log_of


@dataclass(frozen=True, slots=True)
class LongJobs:
    """Numbers of long jobs, of those that meet full machines, and the cost of trying them."""

    trial_cost: float
    """For trials of long jobs, which were stopped."""
    long_jobs: float
    blocked_long_jobs: float
    """Shares of jobs that are long; and, of the long ones, that found no fixed machine free."""
    blocked_wait_seconds: float
    """Mean wait of the long jobs that found none."""


def long_jobs_of(simulated: Simulated, policy: WaitingPolicy, trial_price: float = 1.0) -> LongJobs:
    """The long jobs of a simulated policy.

    A job is long from the policy's threshold for short ones on, or if a trial does not end it.
    ``trial_price`` is that of a machine for a trial, relative to the same on demand.
    """
    columns = simulated.columns
    place = simulated.place
    hourly = simulated.shapes.asked[columns.shape, RENT] / 3600.0
    long = columns.runtime >= policy.short_seconds
    if policy.speculation_seconds > 0.0:
        long = columns.runtime > policy.speculation_seconds
    wait = simulated.start_seconds - columns.submit
    blocked = (place != FIXED) | (wait > 0.0)
    trials = np.where(place >= TRIED, _of_trials(columns, policy, trial_price), 0.0) * hourly
    some = blocked & long
    return LongJobs(
        trial_cost=float(trials[long].sum()),
        long_jobs=float(long.mean()),
        blocked_long_jobs=float(some.sum() / max(int(long.sum()), 1)),
        blocked_wait_seconds=float(wait[some].mean()) if np.any(some) else 0.0,
    )


def _of_trials(columns: TraceColumns, policy: WaitingPolicy, trial_price: float) -> Floats:
    """On-demand seconds that each job's trial is worth; a lost one is made again on demand."""
    tried = np.minimum(columns.runtime, policy.speculation_seconds)
    if columns.lost.size == 0:
        return tried * trial_price
    lost = columns.lost
    return np.where(lost > 0.0, lost * trial_price + tried, tried * trial_price)


_LEARNED_SHARE: Final = 0.7

RuntimeModel = Callable[[Floats], Floats]
"""Estimated seconds by rows of job features."""


class WaitScore(NamedTuple):
    """Score of predicted waits: against a threshold (MCC), and in seconds (MAPE).

    The MAPE is that of jobs which waited, and whose whole wait is known.
    """

    correlation: float
    percentage_error: float


def split_rows(rows: WaitRows) -> tuple[WaitRows, WaitRows]:
    """Seven tenths of the rows at random, and the others."""
    order = np.random.default_rng(SEED).permutation(rows.wait_seconds.size)
    cut = int(_LEARNED_SHARE * order.size)
    first, second = (
        WaitRows(rows.features[part], rows.wait_seconds[part], rows.cut[part])
        for part in (order[:cut], order[cut:])
    )
    return first, second


def score_waits(model: WaitModel, rows: WaitRows, threshold_seconds: float) -> WaitScore:
    """Score a model on rows that it has not seen."""
    predicted = predicted_waits(model, rows.features).mean(axis=1)
    whole = ~rows.cut
    error = mean_absolute_percentage_error(predicted[whole], rows.wait_seconds[whole])
    beyond = predicted > threshold_seconds, rows.wait_seconds > threshold_seconds
    return WaitScore(matthews_correlation(*beyond), error)


RUNTIME_MODELS: Final = ("linear", "forest", "svr", "network")


def learn_runtimes(kind: str, features: Floats, runtime_seconds: Floats) -> RuntimeModel:
    """A model of runtimes from rows of what is known on submission (section 7.2's comparison).

    ``kind`` is linear regression, a random forest, support vectors or a neural network. Learning
    support vectors takes a time that grows with the square of the rows.

    Raises ``UnknownNameError`` if there is no such kind; ``InputError`` if scikit-learn is not
    installed.
    """
    if kind not in RUNTIME_MODELS:
        raise UnknownNameError("runtime model", kind, RUNTIME_MODELS)
    if kind == "linear":
        model = scikit_learn("linear_model").LinearRegression()
    elif kind == "forest":
        model = scikit_learn("ensemble").RandomForestRegressor(
            n_estimators=50, max_depth=DEPTH, random_state=SEED
        )
    elif kind == "svr":
        model = scikit_learn("svm").SVR()
    else:
        model = scikit_learn("neural_network").MLPRegressor(
            hidden_layer_sizes=(64, 32), max_iter=1000, early_stopping=True, random_state=SEED
        )
    scaled = scikit_learn("pipeline").make_pipeline(
        scikit_learn("preprocessing").StandardScaler(), model
    )
    scaled.fit(features, runtime_seconds)

    def estimate(rows: Floats) -> Floats:
        return np.maximum(np.asarray(scaled.predict(rows), dtype=np.float64), 0.0)

    return estimate


def perturbed(runtime_seconds: Floats, mean_error: float, seed: int = SEED) -> Floats:
    """Runtimes as a model of this mean absolute percentage error might tell them (0.1 is 10 %).

    Each is multiplied by 1 + e, with e normal and E|e| the error; never below 0.
    """
    deviation = mean_error * np.sqrt(np.pi / 2.0)
    errors = np.random.default_rng(seed).normal(0.0, deviation, runtime_seconds.size)
    return runtime_seconds * np.maximum(1.0 + errors, 0.0)


def matthews_correlation(predicted: ArrayLike, true: ArrayLike) -> float:
    """Correlation of two yes-or-no sequences (MCC): 1 is perfect, 0 as good as chance."""
    said, was = np.asarray(predicted, dtype=bool), np.asarray(true, dtype=bool)
    return matthews_correlation_of(
        int(np.sum(said & was)),
        int(np.sum(~said & ~was)),
        int(np.sum(said & ~was)),
        int(np.sum(~said & was)),
    )


def matthews_correlation_of(
    true_positives: int, true_negatives: int, false_positives: int, false_negatives: int
) -> float:
    """The same from the four counts; 0 where one of the margins is empty."""
    tp, tn = float(true_positives), float(true_negatives)
    fp, fn = float(false_positives), float(false_negatives)
    product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return float((tp * tn - fp * fn) / np.sqrt(product)) if product > 0.0 else 0.0


def mean_absolute_percentage_error(predicted: ArrayLike, true: ArrayLike) -> float:
    """Mean of |predicted - true| / true over what is above 0 (MAPE); 1 is 100 %."""
    said = np.asarray(predicted, dtype=np.float64)
    was = np.asarray(true, dtype=np.float64)
    some = was > 0.0
    if not np.any(some):
        return float("nan")
    return float(np.mean(np.abs(said[some] - was[some]) / was[some]))


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
