"""Renting with a scheduler of the replay: the fixed machines are its, the rest is rented."""

from __future__ import annotations

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
from foresail.cloud.waiting.simulating import (
    Beliefs,
    Foresight,
    Simulated,
    WaitingPolicy,
    foresee,
)
from foresail.cloud.waiting.simulating import simulate as simulate_queue
from foresail.control.policy import Policy
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
from foresail.traces.workload import Workload
from foresail_studies.waiting.renting_scheduler import (
    ArrivalCase,
    ArrivalChoice,
    Renting,
    RentingCase,
    Sent,
    SentBecause,
    decide,
)

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
