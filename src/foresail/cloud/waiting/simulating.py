"""A waiting policy on the jobs of a trace (section 6.6): when and where each job runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.kernels.placing import links_of, machines_of, timetable
from foresail.cloud.waiting.jobs import (
    FixedMachines,
    RentedType,
    TraceJobs,
    in_shares,
    rents,
    writable,
)
from foresail.cloud.waiting.kernels.waiting import (
    AFTER_TRIAL,
    EXPIRED,
    RENTED,
    TALLY,
    TOTAL_CORES,
    TOTAL_MEMORY,
    Outcomes,
    Room,
    Shapes,
    TraceColumns,
    simulate_waiting,
)
from foresail.cloud.waiting.kernels.waiting_choice import FEATURES, WaitModel, without_trees
from foresail.cloud.waiting.kernels.waiting_forecast import Forecaster, forecaster
from foresail.cloud.waiting.kernels.waiting_plan import MachinePlan, empty_plan
from foresail.cloud.waiting.policies import Beliefs, Forecast, Foresight, WaitingPolicy
from foresail.model.arrays import Floats
from foresail.model.errors import InputError

_NONE = np.empty(0)
_NO_MODEL = without_trees(_NONE, _NONE)


@dataclass(frozen=True, slots=True, eq=False)
class Simulated:
    """What became of every job."""

    start_seconds: Floats
    """When its last run began."""
    place: NDArray[np.int8]
    """Where that was: the codes of ``foresail.cloud.waiting.kernels.waiting``."""
    machine: NDArray[np.int64]
    """The fixed machine, or -1."""
    features: Floats
    """The cluster's state (``cloud.waiting.kernels.wait_model``) at every ``features_every``-th
    submission, from the first on."""
    features_every: int

    columns: TraceColumns
    shapes: Shapes
    """The jobs as the simulation took them."""
    forecast_seconds: Floats | None = None
    """The wait that was forecast for each job, infinite where that was too long for its policy to
    ask how long; NaN where no forecast was asked for."""

    @property
    def outcomes(self) -> Outcomes:
        """The same as kernels see it, not copied."""
        return Outcomes(self.start_seconds, self.place, self.machine, self.features)


def simulate(
    jobs: TraceJobs,
    fixed: FixedMachines,
    family: Sequence[RentedType],
    policy: WaitingPolicy,
    beliefs: Beliefs,
    lost_seconds: Floats | None = None,
    features_every: int = 0,
    seed: int = 0,
    ranks: Floats | None = None,
) -> Simulated:
    """Run the jobs of a trace under a waiting policy.

    A job goes to the fixed machine with the fewest free cores that holds it, by cores, memory and
    gpus; a job that none could ever hold is rented what it needs. Two jobs never share a rented
    machine.

    A forecast of waits simulates forward for each job that finds no machine: its time grows with
    the jobs that run and wait then, so that a long queue makes it much slower than the rest. Not
    so in a strict queue with true runtimes and without trials: there one plan is extended.

    Parameters
    ----------
    jobs, fixed, family
        The jobs, the machines that are owned, and the machines to rent.
    policy, beliefs
        The policy and what it is told.
    lost_seconds
        Seconds by job of a trial that are lost because its machine is taken back; it is then tried
        again on demand.
    features_every
        Keep the cluster's state at every submission of this number; 0: none.
    seed
        Of the random queue.
    ranks
        By job: the first that fits goes in this order, the least first, instead of the queue's.

    Raises
    ------
    InputError
        If there are not as many beliefs or ranks as jobs, a rank is not a number, the queue is
        strict, and ranks are given, or jobs ask for gpus, and none are for rent.
    """
    foresight = beliefs.waits if isinstance(beliefs.waits, Foresight) else None
    strict = policy.queue == "strict-fcfs"
    requests = jobs.requests
    columns = _columns(jobs, beliefs, lost_seconds, strict)
    rent = rents(requests, family)
    work = requests.cores if jobs.gpus is None else rent
    gpus = in_shares(requests.gpus)
    columns_of = (requests.cores, requests.memory_bytes, gpus, rent, work)
    shapes = Shapes(np.stack(columns_of, axis=1), np.full(requests.cores.size, -1, np.int64))
    model = beliefs.waits if isinstance(beliefs.waits, WaitModel) else _NO_MODEL
    count = len(jobs)
    rows = -(-count // features_every) if features_every else 0
    outcomes = Outcomes(
        np.full(count, np.nan),
        np.empty(count, np.int8),
        np.empty(count, np.int64),
        np.empty((rows, FEATURES)),
    )
    rules = policy.rules
    links = links_of(
        _ranks(policy, columns, seed) if ranks is None else _given_ranks(ranks, count, strict)
    )
    room = Room(
        releases=timetable(min(count, fixed.total_cores)),
        trials=timetable(count if rules.speculation_seconds > 0.0 else 0),
        expiries=timetable(count if rules.patience_seconds < np.inf else 0),
        links=links,
        tally=np.zeros(TALLY),
        features=np.zeros(FEATURES),
        waits=np.zeros(max(model.base.size, 1)),
    )
    room.tally[TOTAL_CORES] = fixed.total_cores
    room.tally[TOTAL_MEMORY] = fixed.memory_bytes * fixed.count if fixed.count else 0.0
    cores = np.full(fixed.count, fixed.cores, np.int64)
    memory = np.full(fixed.count, float(fixed.memory_bytes))
    shares = float(in_shares(fixed.gpus))
    gpus = np.full(fixed.count, shares)
    ahead: Forecaster | None = None
    plan: MachinePlan | None = None
    if isinstance(beliefs.waits, Forecast) or (foresight is not None and strict):
        by = columns.estimate if foresight is None else columns.runtime
        if strict and not rules.speculation_seconds and np.array_equal(by, columns.runtime):
            plan = empty_plan(columns.runtime, cores, memory, gpus)
        else:
            ahead = forecaster(by, requests.cores.size, cores, memory, gpus)
    simulate_waiting(
        strict,
        float(fixed.own_price_per_core_hour),
        max(features_every, 1),
        rules,
        model,
        np.full((min(fixed.count, 1), 3), (float(fixed.cores), fixed.memory_bytes, shares)),
        columns,
        shapes,
        machines_of(cores, memory, gpus),
        outcomes,
        room,
        ahead,
        plan,
    )
    asked = ahead if plan is None else plan
    if foresight is not None and not strict:
        foresee(foresight, rules.patience_seconds, outcomes)
    forecast = None if asked is None else asked.wait
    return Simulated(*outcomes, features_every, columns, shapes, forecast)


def _columns(
    jobs: TraceJobs, beliefs: Beliefs, lost_seconds: Floats | None, strict: bool
) -> TraceColumns:
    count = len(jobs)
    waits: Floats = _NONE
    if isinstance(beliefs.waits, Foresight):
        if strict:
            waits = _foreseen(beliefs.waits, count)
        elif beliefs.waits.false_alarms is not None:
            waits = np.where(beliefs.waits.false_alarms, np.inf, 0.0)
    elif isinstance(beliefs.waits, Forecast):
        waits = np.full(count, np.nan)
    elif isinstance(beliefs.waits, np.ndarray):
        waits = writable(beliefs.waits)
    estimates = writable(beliefs.runtime_seconds)
    lost = _NONE if lost_seconds is None else writable(lost_seconds)
    delay = _NONE if beliefs.delay_per_hour is None else writable(beliefs.delay_per_hour)
    given = (("runtime", estimates), ("wait", waits), ("lost", lost), ("delay", delay))
    for name, column in given:
        if column.shape != (count,) and column is not _NONE:
            raise InputError(
                "not one for each job", field=name, value=column.size, expected=f"{count} of them"
            )
    return TraceColumns(
        jobs.submit_seconds,
        jobs.runtime_seconds,
        jobs.requests.of_job,
        estimates,
        waits,
        delay,
        lost,
    )


def _foreseen(foresight: Foresight, count: int) -> Floats:
    """Waits in a strict queue: to be forecast (NaN), but for those that the oracle has wrong."""
    waits = np.full(count, np.nan)
    if foresight.missed is not None:
        waits[foresight.missed] = 0.0
    if foresight.false_alarms is not None:
        waits[foresight.false_alarms] = np.inf
    return waits


def _given_ranks(ranks: Floats, count: int, strict: bool) -> Floats:
    if strict:
        raise InputError("a strict queue has an order of its own", field="ranks")
    given = writable(ranks)
    if given.shape != (count,) or np.isnan(given).any():
        raise InputError(
            "not a rank for each job", field="ranks", value=given.size, expected=f"{count} numbers"
        )
    return given


def _ranks(policy: WaitingPolicy, columns: TraceColumns, seed: int) -> Floats:
    if policy.queue == "sjf":
        return columns.estimate
    if policy.queue == "random":
        return np.random.default_rng(seed).random(columns.submit.size)
    return columns.submit


def foresee(foresight: Foresight, patience_seconds: float, outcomes: Outcomes) -> None:
    """A job that waited in vain was told so on arrival, unless the oracle missed it."""
    told = outcomes.place % AFTER_TRIAL == EXPIRED
    if foresight.missed is not None:
        told &= ~foresight.missed
    outcomes.start[told] -= patience_seconds
    outcomes.place[told] += RENTED - EXPIRED
