"""Renting with a scheduler of the replay: which jobs of a log wait, and by what beliefs."""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.cloud.waiting.jobs import FixedMachines, RentedType, TraceJobs
from foresail.cloud.waiting.kernels.placing import CORES
from foresail.cloud.waiting.kernels.waiting import (
    AFTER_TRIAL,
    EXPIRED,
    FIXED,
    RENT,
    RENTED,
    TRIED,
    Outcomes,
)
from foresail.cloud.waiting.kernels.waiting_choice import WaitModel, predict_wait
from foresail.cloud.waiting.renting_scheduler import (
    ArrivalCase,
    ArrivalChoice,
    Renting,
    RentingCase,
    Sent,
    SentBecause,
    decide,
)
from foresail.cloud.waiting.settings import Ranking
from foresail.cloud.waiting.simulating import (
    Beliefs,
    Foresight,
    Simulated,
    WaitingPolicy,
    foresee,
)
from foresail.cloud.waiting.simulating import simulate as simulate_queue
from foresail.control.policy import Policy
from foresail.evaluation.replaying import evaluate
from foresail.kernels.columns import SLOWDOWN_BOUND_SECONDS, SUMMARY_COLUMNS, URGENCY
from foresail.kernels.expression import SUMMARY, OrderProgram, evaluate_all
from foresail.model.arrays import Floats
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.errors import InputError
from foresail.model.event import HistoryOutcome
from foresail.model.free_resources import FreeResources
from foresail.model.job import Job
from foresail.model.outcome import EndedBecause, Outcome
from foresail.scenario.beginning import controller_of
from foresail.scenario.by_events import run_by_events
from foresail.scenario.running import COMPILED_REPLAY, engine_of, run_scenario
from foresail.scenario.scenario import Scenario
from foresail.schedulers.order_expression import compile_expression
from foresail.traces.workload import Workload

KNOWN = "known"
REQUESTED = "requested"


def believed_runtimes(workload: Workload, by: str) -> NDArray[np.float64]:
    """Seconds by job, shape (jobs,).

    Raises ``InputError`` if the log has no limits, where these are asked for, or the short form is
    malformed; ``UnknownNameError`` if there is no such predictor.

    Parameters
    ----------
    workload
        The log.
    by
        ``known``: the truth. ``requested``: the users' limits. Else a predictor's short form: its
        medians, as it learns while jobs end. Jobs that it says nothing of are taken for endless.
    """
    if by == KNOWN:
        return workload.runtime_seconds
    if by == REQUESTED:
        limits = workload.jobs["requested_seconds"]
        if limits.null_count() == len(limits):
            raise InputError(
                "no job has a limit", source=workload.meta.source, field="requested_seconds"
            )
        return limits.cast(pl.Float64).fill_null(np.inf).to_numpy().astype(np.float64)
    return told_quantiles(workload, by, q50=np.inf)[0]


def told_quantiles(
    workload: Workload, predictor: str, **unknown: float
) -> list[NDArray[np.float64]]:
    """Quantiles (``q50``, ...) of what a predictor believed that learns as jobs end, by job.

    Each is named with what stands for it where nothing is believed.
    """
    told = evaluate(workload, predictor).jobs.select("job_id", *unknown)
    found = workload.jobs.select("job_id").join(told, on="job_id", how="left")
    return [
        found[name].cast(pl.Float64).fill_null(value).to_numpy().astype(np.float64)
        for name, value in unknown.items()
    ]


def static_order(order: str) -> OrderProgram:
    """An order that stays as it is from a job's submission on: without now, wait and probe.

    Raises ``InputError`` if the text is no such expression, or the order changes while jobs wait;
    ``UnknownNameError`` if it names a field or function that does not exist.
    """
    program = compile_expression(order)
    if program.changes_with_time or program.follows_probes:
        raise InputError(
            "an order that changes while jobs wait",
            field="order",
            value=order,
            expected="neither now, wait nor probe",
        )
    return program


def ranking(workload: Workload, order: str, believed_seconds: NDArray[np.float64]) -> Ranking:
    """An order for the sweeps of waiting policies; arguments and errors are as below."""
    fields = static_order(order).code[::2]
    by_runtimes = bool((fields == SUMMARY).any())
    return Ranking(waiting_ranks(workload, order, believed_seconds), by_runtimes)


def waiting_ranks(
    workload: Workload, order: str, believed_seconds: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Ranks by job, shape (jobs,): waiting jobs go in this order, the least first.

    ``order`` is a name, or an expression such as ``requested * cpus`` (see ``static_order``);
    ``believed_seconds`` are the believed runtimes, shape (jobs,): ``predicted`` and every quantile.

    Raises ``InputError`` if there is not one belief for each job; and what ``static_order`` raises.
    """
    program = static_order(order)
    believed = np.asarray(believed_seconds, dtype=np.float64)
    if believed.shape != (len(workload),):
        raise InputError(
            "not one for each job",
            field="believed_seconds",
            value=believed.size,
            expected=f"{len(workload)} of them",
        )
    summaries = np.repeat(believed[:, None], SUMMARY_COLUMNS, axis=1)
    summaries[:, URGENCY] = 1.0 / np.maximum(believed, SLOWDOWN_BOUND_SECONDS)
    return evaluate_all(program.code, 0.0, workload.specs, summaries, np.ones(len(workload)))


_PLACES: Final = {
    SentBecause.CHOSEN: RENTED,
    SentBecause.PATIENCE_EXPIRED: EXPIRED,
    SentBecause.ON_TRIAL: TRIED,
}
_FIXED: Final = "fixed"
_PLENTY: Final = 1e30
"""More bytes and gpus than any job asks for."""
_SURE: Final = np.zeros(1)


@dataclass(frozen=True)
class ReplayScheduling:
    """The fixed machines under a scheduler of the replay, predictor and correction included.

    Schedulers that plan with counts of cpus (those with a compiled pass, such as ``easy``) have the
    cores of all machines as one pool, as in a replay, and count neither memory nor gpus. The
    others see the machines as nodes. Either way a job's tasks may lie on several machines;
    one that the machines together do not hold, or with a task that none holds, is rented what it
    needs. Jobs do not wait for others that they depend on.

    The predictor learns from those that the machines could hold as they end, wherever they ran.
    The waiting policy goes by beliefs of its own.

    Parameters
    ----------
    workload
        The log.
    policy
        Scheduler, predictor and correction.
    """

    workload: Workload
    policy: Policy

    @property
    def name(self) -> str:
        """Return the name that people use."""
        return self.policy.label

    @property
    def by_true_runtimes(self) -> bool:
        """Return whether it goes by what only an oracle knows."""
        return self.policy.needs_truth

    @cached_property
    def digest(self) -> str:
        """Return the digest of all that it goes by."""
        digest = hashlib.sha256(self.policy.text.encode())
        for table in (self.workload.jobs, self.workload.tasks):
            if table is not None:
                content = io.BytesIO()
                table.write_ipc(content)
                digest.update(content.getbuffer())
        return digest.hexdigest()

    @cached_property
    def _specifications(self) -> tuple[Job, ...]:
        jobs = self.workload.jobs.with_columns(after_jobs=pl.lit(None, pl.String))
        return tuple(self.workload.with_jobs(jobs).specifications())

    def simulate(
        self,
        jobs: TraceJobs,
        fixed: FixedMachines,
        family: Sequence[RentedType],
        policy: WaitingPolicy,
        beliefs: Beliefs,
        features_every: int = 0,
    ) -> Simulated:
        """Simulate like ``foresail.cloud.waiting.simulating.simulate``, with this scheduler.

        A job that runs into the timeout delays others here, as reservations of a scheduler do, so
        that an oracle of waits spares it the wait alone. ``machine`` says nothing.

        Raises ``InputError`` if jobs ask for gpus that the scheduler does not count, or it leaves
        jobs waiting for ever.

        Parameters
        ----------
        jobs
            The first jobs of the log, or all.
        fixed, family, policy, beliefs, features_every
            As there.
        """
        alone = Beliefs(beliefs.runtime_seconds, None, beliefs.delay_per_hour)
        rented = simulate_queue(
            jobs, replace(fixed, count=0), family, policy, alone, features_every=features_every
        )
        held = self._held(len(jobs), fixed)
        if not held.any():
            return rented
        scheduler = self.policy.scheduler.build()
        counts_cpus = scheduler.is_compiled
        if counts_cpus and self._asks_for_gpus:
            raise InputError("this scheduler counts no gpus", field="scheduler", value=self.name)
        table = self.workload.jobs.head(len(jobs)).filter(pl.Series(held))
        workload = self.workload.with_jobs(table.with_columns(after_jobs=pl.lit(None, pl.String)))
        pool = Scenario(workload.with_meta(processors=fixed.total_cores), self.policy)
        plain = not features_every and _nobody_leaves(policy)
        if plain and engine_of(pool) is COMPILED_REPLAY:
            rented.start_seconds[held] = run_scenario(pool).jobs["start_seconds"]
            rented.place[held] = FIXED
            return rented
        advice = _Advice(self.workload, rented, fixed, policy, beliefs)
        renting = Renting(scheduler, policy.rules, advice)
        scenario = Scenario(
            workload, self.policy, place=_pool(fixed) if counts_cpus else _machines(fixed)
        )
        controller = controller_of(scenario, scheduler=renting)

        def learned() -> Iterator[HistoryOutcome]:
            return self._ends_elsewhere(renting.sent, advice)

        schedule = run_by_events(scenario, controller, external_events=learned)
        outcomes = rented.outcomes
        _fill_in(outcomes, advice.row_of, renting.sent, schedule.jobs)
        waiting = np.isnan(outcomes.start)
        if waiting.any():
            raise InputError(
                "the scheduler leaves jobs waiting for ever",
                field="scheduler",
                value=self.name,
                expected=f"{waiting.sum()} more of them started on {fixed.count} machines",
            )
        if isinstance(beliefs.waits, Foresight):
            foresee(beliefs.waits, policy.rules.patience_seconds, outcomes)
        return rented

    def _ends_elsewhere(self, sent: list[Sent], advice: _Advice) -> Iterator[HistoryOutcome]:
        """Yield outcomes for predictors of jobs sent to rented machines since last asked.

        A job that is not done in its trial ends later, or here.
        """
        for each in sent[advice.told :]:
            if each.because is not SentBecause.ON_TRIAL or advice.is_done(each.job_id):
                row = advice.row_of[each.job_id]
                end = each.time + float(self.workload.runtime_seconds[row])
                outcome = Outcome(each.job_id, each.time, end)
                yield HistoryOutcome(end, self._specifications[row], outcome)
        advice.told = len(sent)

    @cached_property
    def _asks_for_gpus(self) -> bool:
        return any(job.total.gpus > 0.0 for job in self._specifications)

    def _held(self, count: int, fixed: FixedMachines) -> NDArray[np.bool_]:
        """Return which of the first jobs the machines hold when they are idle."""
        if fixed.count == 0:
            return np.zeros(count, np.bool_)
        capacity = FreeResources(_machines(fixed))
        return np.array([capacity.could_hold(job) for job in self._specifications[:count]])


class _Advice:
    """Waiting policy for jobs of a simulation, which knows the truth."""

    def __init__(
        self,
        workload: Workload,
        rented: Simulated,
        fixed: FixedMachines,
        policy: WaitingPolicy,
        beliefs: Beliefs,
    ) -> None:
        ids = workload.jobs["job_id"].head(rented.columns.submit.size).to_list()
        self.row_of = {job_id: row for row, job_id in enumerate(ids)}
        self.told = 0
        self._rented = rented
        self._fixed = fixed
        self._rules = policy.rules
        self._waits = beliefs.waits
        parts = beliefs.waits.base.size if isinstance(beliefs.waits, WaitModel) else 1
        self._quantiles = np.zeros(parts)

    def is_done(self, job_id: str) -> bool:
        """The truth."""
        runtime = self._rented.columns.runtime[self.row_of[job_id]]
        return bool(runtime <= self._rules.speculation_seconds)

    def choose(self, question: RentingCase) -> ArrivalChoice:
        """Choose by the policy's rules; keep the cluster's state where examples are wanted."""
        row = self.row_of[question.pending.job.job_id]
        columns = self._rented.columns
        asked = self._rented.shapes.asked[columns.shape[row]]
        cores = float(asked[CORES])
        every = self._rented.features_every
        if every and row % every == 0 and not question.tried:
            self._rented.features[row // every] = self._features(question, cores)
        if question.fits and self._rules.conserving:
            return ArrivalChoice.START
        case = ArrivalCase(
            question.fits,
            float(asked[RENT]),
            self._fixed.own_price_per_core_hour * cores,
            float(columns.delay[row]) if columns.delay.size else 0.0,
            question.tried,
        )
        waits = self._believed_wait(question, row, cores)
        return decide(self._rules, case, columns.estimate[row], waits)

    def _features(self, question: RentingCase, cores: float) -> Floats:
        fixed = self._fixed
        return question.state.features(cores, fixed.total_cores, fixed.memory_bytes * fixed.count)

    def _believed_wait(self, question: RentingCase, row: int, cores: float) -> Floats:
        waits = self._waits
        if isinstance(waits, WaitModel):
            predict_wait(waits, self._features(question, cores), self._quantiles)
            return self._quantiles
        if isinstance(waits, np.ndarray):
            return waits[row : row + 1]
        if isinstance(waits, Foresight) and waits.false_alarms is not None:
            return np.array([math.inf if waits.false_alarms[row] else 0.0])
        return _SURE


def _nobody_leaves(policy: WaitingPolicy) -> bool:
    """Return whether all jobs wait, for as long as it takes: then it is a plain replay."""
    rules = policy.rules
    limits = (rules.waiting_seconds, rules.patience_seconds)
    return (
        limits == (math.inf, math.inf)
        and rules.short_seconds == rules.speculation_seconds == 0.0
        and rules.weighing == 0
    )


def _fill_in(
    outcomes: Outcomes, row_of: dict[str, int], sent: Sequence[Sent], schedule: pl.DataFrame
) -> None:
    """Fill in outcomes of jobs that the machines hold; not a number where nothing ran."""
    rows = [row_of[job_id] for job_id in schedule["job_id"].unique()]
    outcomes.start[rows] = np.nan
    for each in sent:
        row = row_of[each.job_id]
        outcomes.start[row] = each.time
        outcomes.place[row] = _PLACES[each.because] + AFTER_TRIAL * each.after_trial
    done = schedule.filter(pl.col("ended_because") == EndedBecause.COMPLETED.value)
    for job_id, start in done.select("job_id", "start_seconds").iter_rows():
        row = row_of[job_id]
        outcomes.start[row] = start
        outcomes.place[row] = FIXED + AFTER_TRIAL * (outcomes.place[row] == TRIED)


def _pool(fixed: FixedMachines) -> Cluster:
    """The cores of all machines, for who counts nothing else."""
    return Cluster((Partition(_FIXED, Resources(fixed.total_cores, _PLENTY, _PLENTY)),))


def _machines(fixed: FixedMachines) -> Cluster:
    """Each machine is a node."""
    each = Resources(fixed.cores, min(fixed.memory_bytes, _PLENTY), fixed.gpus)
    nodes = tuple(Node(f"{_FIXED}-{number + 1}", each) for number in range(fixed.count))
    return Cluster((Partition(_FIXED, each * fixed.count, nodes),))
