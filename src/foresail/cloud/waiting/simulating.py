"""Waiting policies, what they believe, learned waits, and a trace under them (section 6.6)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.waiting import jobs as trace_jobs
from foresail.cloud.waiting.kernels import waiting, waiting_choice
from foresail.cloud.waiting.kernels.placing import links_of, machines_of, timetable
from foresail.cloud.waiting.kernels.waiting import EXPIRED, FIXED
from foresail.cloud.waiting.kernels.waiting_plan import MachinePlan, empty_plan
from foresail.model.distribution import Booleans, Floats, Integers
from foresail.model.errors import InputError, UnknownNameError, require
from foresail.model.registry import todays_name

Queue = Literal["fcfs", "strict-fcfs", "sjf", "random"]
"""Order of the waiting jobs: by submission, by submission without overtaking, shortest (as
believed) first, or at random. In all but the strict one the first that fits goes."""
QUEUES: Final[tuple[Queue, ...]] = ("fcfs", "strict-fcfs", "sjf", "random")


@dataclass(frozen=True, slots=True)
class WaitingPolicy:
    """Rules of which jobs wait for fixed machines, and which run at once on rented ones."""

    waiting_seconds: float = math.inf
    """A job that is believed to wait longer is rented a machine at once; b in the literature."""
    short_seconds: float = 0.0
    """A job that is believed to run for less is rented one at once; t."""
    patience_seconds: float | None = None
    """A job that has waited for so long is rented one; ``waiting_seconds`` unless given."""
    speculation_seconds: float = 0.0
    """A job that finds no fixed machine free is first run on a rented one for so long, and waits
    only if it is not done by then; 0: none is."""
    conserving: bool = True
    """True if a job takes a fixed machine that is free for it."""
    weighing: bool = False
    """True if a job that is expected to lose more by waiting than it saves is rented a machine."""
    queue: Queue = "fcfs"
    """Order of the waiting jobs."""

    def __post_init__(self) -> None:
        for name in ("waiting_seconds", "short_seconds", "patience_seconds", "speculation_seconds"):
            value = getattr(self, name)
            require(value is None or value >= 0.0, self, name, "0 or more")
        if self.queue not in QUEUES:
            raise UnknownNameError("queue", self.queue, QUEUES)

    @property
    def rules(self) -> waiting_choice.WaitingRules:
        """Rules as kernels take them."""
        patience = self.waiting_seconds if self.patience_seconds is None else self.patience_seconds
        return waiting_choice.WaitingRules(
            float(self.short_seconds),
            float(self.waiting_seconds),
            float(patience),
            float(self.speculation_seconds),
            int(self.conserving),
            int(self.weighing),
        )


def waiting_policy(
    name: str, waiting_seconds: float = math.inf, short_seconds: float = 0.0, queue: Queue = "fcfs"
) -> WaitingPolicy:
    """The policy of this name, long or short: AJW, NJW, AJW-T, SWW, LJW and others.

    SWW and the compound wait as AJW-T does, and differ by what they believe of waits.
    """
    bounded = WaitingPolicy(waiting_seconds, queue=queue)
    policies = {
        "all-jobs-wait": WaitingPolicy(queue=queue),
        "no-jobs-wait": WaitingPolicy(patience_seconds=0.0, queue=queue),
        "all-jobs-wait-threshold": bounded,
        "short-waits-wait": bounded,
        "long-jobs-wait": WaitingPolicy(short_seconds=short_seconds, queue=queue),
        "compound": replace(bounded, short_seconds=short_seconds),
        "speculative": replace(bounded, speculation_seconds=short_seconds),
        "weighing": replace(bounded, weighing=True),
    }
    name = todays_name("waiting policy", name)
    if name not in policies:
        raise UnknownNameError("waiting policy", name, policies)
    return policies[name]


@dataclass(frozen=True, slots=True, eq=False)
class Foresight:
    """An oracle of waits: it names the jobs that would wait beyond their patience.

    Where no waiting job holds up others, that is in any queue but the strict one, it costs
    nothing: a job that leaves a queue has changed nothing for the rest. In the strict queue one
    plan of all that waits is extended job by job, from the true runtimes; jobs are not tried then.
    """

    missed: Booleans | None = None
    """True, by job, where it says nothing and the wait times out."""
    false_alarms: Booleans | None = None
    """True, by job, where it says "too long" whatever is true."""


@dataclass(frozen=True, slots=True, eq=False)
class Beliefs:
    """Beliefs of a policy about the jobs, beside their requests."""

    runtime_seconds: Floats
    """Estimate per job."""
    waits: Floats | waiting_choice.WaitModel | Foresight | None = None
    """Source of waits: seconds per job, a model of the cluster's state, an oracle, or nothing: then
    no job is believed to wait."""
    delay_per_hour: Floats | None = None
    """Money that an hour's delay of each job costs, or None: nothing."""

    @classmethod
    def true_runtimes(
        cls,
        jobs: trace_jobs.TraceJobs,
        waits: Floats | waiting_choice.WaitModel | Foresight | None = None,
    ) -> Beliefs:
        """The oracle of runtimes."""
        return cls(jobs.runtime_seconds, waits)


_NONE = np.empty(0)
_NO_MODEL = waiting_choice.without_trees(_NONE, _NONE)


@dataclass(frozen=True, slots=True, eq=False)
class Simulated:
    """Outcome of every job."""

    start_seconds: Floats
    """Start of its last run."""
    place: NDArray[np.int8]
    """Place of that run: the codes of ``foresail.cloud.waiting.kernels.waiting``."""
    machine: Integers
    """The fixed machine, or -1."""
    features: Floats
    """The cluster's state (``cloud.waiting.kernels.wait_model``) at every ``features_every``-th
    submission, from the first on."""
    features_every: int

    columns: waiting.TraceColumns
    shapes: waiting.Shapes
    """The jobs as the simulation took them."""
    planned_wait_seconds: Floats | None = None
    """The wait that an oracle of a strict queue named for each job; infinite where that was too
    long for its policy to ask how long, NaN where it was not asked."""

    @property
    def outcomes(self) -> waiting.Outcomes:
        """The same as kernels see it, not copied."""
        return waiting.Outcomes(self.start_seconds, self.place, self.machine, self.features)


def simulate(
    jobs: trace_jobs.TraceJobs,
    fixed: trace_jobs.FixedMachines,
    family: Sequence[trace_jobs.RentedType],
    policy: WaitingPolicy,
    beliefs: Beliefs,
    lost_seconds: Floats | None = None,
    features_every: int = 0,
    seed: int = 0,
) -> Simulated:
    """Run the jobs of a trace under a waiting policy.

    A job goes to the fixed machine with the fewest free cores that holds it, by cores, memory and
    gpus; a job that none could ever hold is rented what it needs. Two jobs never share a rented
    machine.

    Raises ``InputError`` if there are not as many beliefs as jobs, waits are to be foreseen and
    jobs tried in a strict queue, or jobs ask for gpus, and none are for rent.

    Parameters
    ----------
    jobs, fixed, family
        The jobs, the machines that are owned, and the machines to rent.
    policy, beliefs
        The policy and what it believes.
    lost_seconds
        Seconds by job of a trial that are lost because its machine is taken back; it is then tried
        again on demand.
    features_every
        Keep the cluster's state at every submission of this number; 0: none.
    seed
        Of the random queue.
    """
    foresight = beliefs.waits if isinstance(beliefs.waits, Foresight) else None
    strict = policy.queue == "strict-fcfs"
    requests = jobs.requests
    columns = _columns(jobs, beliefs, lost_seconds, strict)
    rent = trace_jobs.rents(requests, family)
    work = requests.cores if jobs.gpus is None else rent
    gpus = trace_jobs.in_shares(requests.gpus)
    columns_of = (requests.cores, requests.memory_bytes, gpus, rent, work)
    shapes = waiting.Shapes(
        np.stack(columns_of, axis=1), np.full(requests.cores.size, -1, np.int64)
    )
    model = beliefs.waits if isinstance(beliefs.waits, waiting_choice.WaitModel) else _NO_MODEL
    count = len(jobs)
    rows = -(-count // features_every) if features_every else 0
    outcomes = waiting.Outcomes(
        np.full(count, np.nan),
        np.empty(count, np.int8),
        np.empty(count, np.int64),
        np.empty((rows, waiting_choice.FEATURES)),
    )
    rules = policy.rules
    links = links_of(_ranks(policy, columns, seed))
    room = waiting.Room(
        releases=timetable(min(count, fixed.total_cores)),
        trials=timetable(count if rules.speculation_seconds > 0.0 else 0),
        expiries=timetable(count if rules.patience_seconds < np.inf else 0),
        links=links,
        tally=np.zeros(waiting.TALLY),
        features=np.zeros(waiting_choice.FEATURES),
        waits=np.zeros(max(model.base.size, 1)),
    )
    room.tally[waiting.TOTAL_CORES] = fixed.total_cores
    room.tally[waiting.TOTAL_MEMORY] = fixed.memory_bytes * fixed.count if fixed.count else 0.0
    cores = np.full(fixed.count, fixed.cores, np.int64)
    memory = np.full(fixed.count, float(fixed.memory_bytes))
    shares = float(trace_jobs.in_shares(fixed.gpus))
    gpus = np.full(fixed.count, shares)
    plan: MachinePlan | None = None
    if foresight is not None and strict:
        if rules.speculation_seconds:
            raise InputError(
                "waits in a strict queue are not foreseen where jobs are tried elsewhere",
                field="speculation_seconds",
                value=rules.speculation_seconds,
                expected="0, or another queue",
            )
        plan = empty_plan(columns.runtime, cores, memory, gpus)
    sizes = (float(fixed.cores), fixed.memory_bytes, shares)
    simulation = waiting.SimulationTables(
        strict,
        float(fixed.own_price_per_core_hour),
        max(features_every, 1),
        rules,
        model,
        np.full((min(fixed.count, 1), 3), sizes),
        columns,
        shapes,
        machines_of(cores, memory, gpus),
        outcomes,
        room,
    )
    waiting.simulate_waiting(simulation, plan)
    if foresight is not None and not strict:
        foresee(foresight, rules.patience_seconds, outcomes)
    waits = None if plan is None else plan.wait
    return Simulated(*outcomes, features_every, columns, shapes, waits)


def _columns(
    jobs: trace_jobs.TraceJobs, beliefs: Beliefs, lost_seconds: Floats | None, strict: bool
) -> waiting.TraceColumns:
    count = len(jobs)
    waits: Floats = _NONE
    if isinstance(beliefs.waits, Foresight):
        if strict:
            waits = _foreseen(beliefs.waits, count)
        elif beliefs.waits.false_alarms is not None:
            waits = np.where(beliefs.waits.false_alarms, np.inf, 0.0)
    elif isinstance(beliefs.waits, np.ndarray):
        waits = trace_jobs.writable(beliefs.waits)
    estimates = trace_jobs.writable(beliefs.runtime_seconds)
    lost = _NONE if lost_seconds is None else trace_jobs.writable(lost_seconds)
    delay = _NONE if beliefs.delay_per_hour is None else trace_jobs.writable(beliefs.delay_per_hour)
    given = (("runtime", estimates), ("wait", waits), ("lost", lost), ("delay", delay))
    for name, column in given:
        if column.shape != (count,) and column is not _NONE:
            raise InputError(
                "not one for each job", field=name, value=column.size, expected=f"{count} of them"
            )
    return waiting.TraceColumns(
        jobs.submit_seconds,
        jobs.runtime_seconds,
        jobs.requests.of_job,
        estimates,
        waits,
        delay,
        lost,
    )


def _foreseen(foresight: Foresight, count: int) -> Floats:
    """Waits in a strict queue: as planned (NaN), but for those that the oracle has wrong."""
    waits = np.full(count, np.nan)
    if foresight.missed is not None:
        waits[foresight.missed] = 0.0
    if foresight.false_alarms is not None:
        waits[foresight.false_alarms] = np.inf
    return waits


def _ranks(policy: WaitingPolicy, columns: waiting.TraceColumns, seed: int) -> Floats:
    if policy.queue == "sjf":
        return columns.estimate
    if policy.queue == "random":
        return np.random.default_rng(seed).random(columns.submit.size)
    return columns.submit


def foresee(foresight: Foresight, patience_seconds: float, outcomes: waiting.Outcomes) -> None:
    """Rent machines on arrival for jobs whose wait timed out, unless the oracle missed them."""
    spared = outcomes.place % waiting.AFTER_TRIAL == waiting.EXPIRED
    if foresight.missed is not None:
        spared &= ~foresight.missed
    outcomes.start[spared] -= patience_seconds
    outcomes.place[spared] += waiting.RENTED - waiting.EXPIRED


_BEYOND: Final = 1.5


class WaitRows(NamedTuple):
    """Examples for models of waits: a row of features and a wait (s) per job.

    ``cut``: the job left when its patience was over; its wait is then taken to be half as long
    again, for it would have been longer than that patience.
    """

    features: Floats
    wait_seconds: Floats
    cut: Booleans


def wait_rows(simulated: Simulated, policy: WaitingPolicy) -> WaitRows:
    """Examples from a simulation that kept features, in which no wait was predicted.

    Jobs that were rented a machine on arrival or tried say nothing of the queue, and are left out.

    Raises ``InputError`` if no features were kept.
    """
    if simulated.features.shape[0] == 0:
        raise InputError("no features were kept", expected="a simulation with features_every")
    every = slice(None, None, simulated.features_every)
    place = simulated.place[every]
    waited = simulated.start_seconds[every] - simulated.columns.submit[every]
    cut = place == EXPIRED
    known = cut | (place == FIXED)
    waited = np.where(cut, _BEYOND * policy.rules.patience_seconds, waited)
    return WaitRows(simulated.features[known], waited[known], cut[known])


def linear_waits(rows: WaitRows) -> waiting_choice.WaitModel:
    """Least squares on the features."""
    inputs = np.column_stack((rows.features, np.ones(rows.wait_seconds.size)))
    scale = np.maximum(np.abs(inputs).max(axis=0), 1e-12)
    coefficients = np.linalg.lstsq(inputs / scale, rows.wait_seconds, rcond=None)[0] / scale
    return waiting_choice.without_trees(coefficients[-1:].copy(), coefficients[:-1].copy())


LEARNED_SHARE: Final = 1.0 / 3.0
FEWEST_WAITS: Final = 100
"""To learn from: of fewer, a model says nothing."""
_EXAMPLES: Final = 30_000


def first_predicted(jobs: int) -> int:
    """Place of the first job after the first third, which teaches: its wait can be predicted."""
    return math.ceil(LEARNED_SHARE * jobs)


def waits_over(submit_seconds: Floats, waiting_seconds: float) -> int:
    """Number of first jobs that have surely waited out a limit by the end of the first third.

    ``submit_seconds`` are those of a log, in order; shape (jobs,).
    """
    last = submit_seconds.size - 1
    end = submit_seconds[min(first_predicted(submit_seconds.size), last)]
    return int(np.searchsorted(submit_seconds, end - waiting_seconds))


def observed_waits(
    submit_seconds: Floats,
    waiting_seconds: float,
    simulated: Callable[[int, int], tuple[Simulated, WaitingPolicy]],
) -> WaitRows | None:
    """Examples from jobs of the first third whose waits were over by its end, however they ended.

    Parameters
    ----------
    submit_seconds, waiting_seconds
        As for ``waits_over``.
    simulated
        Simulates the first so many jobs, all of which wait up to the limit, and keeps the features
        of every so-manieth.

    Returns
    -------
    WaitRows or None
        None where too few waits were over to learn from.
    """
    many = waits_over(submit_seconds, waiting_seconds)
    if many < FEWEST_WAITS:
        return None
    rows = wait_rows(*simulated(many, math.ceil(many / _EXAMPLES)))
    return rows if rows.wait_seconds.size >= FEWEST_WAITS else None
