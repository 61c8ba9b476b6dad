"""A scheduler of fixed machines beside rented ones, by the choices of a waiting policy."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Final, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.cloud.waiting.jobs import FixedMachines, RentedType, TraceJobs
from foresail.cloud.waiting.kernels import waiting_choice as kernel
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
from foresail.cloud.waiting.kernels.waiting_choice import WaitingRules, WaitModel, predict_wait
from foresail.cloud.waiting.simulating import Beliefs, Foresight, Simulated, WaitingPolicy, foresee
from foresail.cloud.waiting.simulating import simulate as simulate_queue
from foresail.control.policy import Policy
from foresail.model.arrays import Floats
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import Decision, TickAt, Withdraw
from foresail.model.errors import InputError
from foresail.model.event import HistoryOutcome
from foresail.model.free_resources import FreeResources
from foresail.model.job import Job
from foresail.model.outcome import EndedBecause, Outcome
from foresail.model.protocols import Scheduler, SchedulerWrapper
from foresail.model.view import ClusterView, PendingJob
from foresail.scenario.beginning import controller_of
from foresail.scenario.by_events import run_by_events
from foresail.scenario.running import COMPILED_REPLAY, engine_of, run_scenario
from foresail.scenario.scenario import Scenario
from foresail.traces.workload import Workload


class ArrivalChoice(Enum):
    """Place of a job on arrival."""

    START = kernel.START
    """To the fixed machine that is free."""
    WAIT = kernel.WAIT
    """Into the queue for fixed machines."""
    RENT = kernel.RENT
    """To a rented machine."""
    SPECULATE = kernel.SPECULATE
    """To a rented machine for a short time, then perhaps into the queue."""


@dataclass(frozen=True, slots=True)
class ArrivalCase:
    """Facts about a job when it is decided on; money is per hour."""

    fits: bool
    """Whether a fixed machine is free for it."""
    rent_per_hour: float
    """Price of the rented machine that it would get."""
    own_per_hour: float = 0.0
    """What it costs on a fixed machine beyond what is paid anyway."""
    delay_per_hour: float = 0.0
    """What an hour's delay of it is worth (to its user)."""
    tried: bool = False
    """Whether it was tried on a rented machine already, and is a long job."""


def decide(
    rules: kernel.WaitingRules, case: ArrivalCase, runtime_seconds: float, wait_quantiles: Floats
) -> ArrivalChoice:
    """Choose for a job by a policy's rules.

    ``runtime_seconds`` is what is believed of its runtime, ``wait_quantiles`` are quantiles of its
    believed wait (seconds, ascending).
    """
    delay_costs = kernel.DelayCosts(
        float(case.rent_per_hour), float(case.own_per_hour), float(case.delay_per_hour)
    )
    choose = kernel.choose_again if case.tried else kernel.choose
    return ArrivalChoice(
        choose(rules, delay_costs, case.fits, float(runtime_seconds), wait_quantiles)
    )


class SentBecause(Enum):
    """Reason why a job was sent to a rented machine."""

    CHOSEN = "rented a machine"
    PATIENCE_EXPIRED = "rented a machine after its wait timeout"
    ON_TRIAL = "done on the rented machine on which it was tried"


@dataclass(frozen=True, slots=True)
class Sent:
    """A job sent to a rented machine at a time (seconds); a speculative run may end early."""

    job_id: str
    time: float
    because: SentBecause
    after_trial: bool


@dataclass(frozen=True, slots=True)
class RentingCase:
    """A job that has come, or has come back from a trial, and the cluster that it finds."""

    pending: PendingJob
    """The job."""
    fits: bool
    """Whether the scheduler starts it now."""
    tried: bool
    """Whether it was tried, and is not done."""
    state: ClusterState
    """The cluster that it finds."""


class Advisor(Protocol):
    """Knows the waiting policy, and what is believed of jobs."""

    def choose(self, question: RentingCase) -> ArrivalChoice:
        """Return the policy's choice; ``START`` only for a job that fits."""

    def is_done(self, job_id: str) -> bool:
        """True if a job has ended in its trial, whose time is over."""


class ClusterState:
    """Running and waiting jobs of the fixed machines, beside those that have just come."""

    def __init__(self, around: _Round, waiting: dict[str, float], job_id: str) -> None:
        self._around = around
        self._waiting = waiting
        self._job_id = job_id

    def features(
        self, cores: float, total_cores: float, memory_bytes: float
    ) -> NDArray[np.float64]:
        """Features as ``kernels.waiting_choice`` numbers them, for a job of so many cores.

        ``total_cores`` and ``memory_bytes`` are those of all fixed machines.
        """
        around, now = self._around, self._around.view.now
        busy = memory = starts = waited = asked = 0.0
        starting = [
            each.job
            for each in around.pending
            if each.job.job_id in around.started and each.job.job_id != self._job_id
        ]
        running = len(around.view.running) + len(starting)
        for held in around.view.running:
            busy += held.job.cpus
            memory += held.job.total.memory_bytes
            starts += now - held.start_seconds
        for job in starting:
            busy += job.cpus
            memory += job.total.memory_bytes
        line = [each for each in around.pending if self._waits(each.job.job_id)]
        for each in line:
            asked += each.job.cpus
            waited += now - self._waiting[each.job.job_id]
        row = np.empty(kernel.FEATURES)
        row[kernel.CPU_USE] = busy / max(total_cores, 1.0)
        row[kernel.MEMORY_USE] = memory / max(memory_bytes, 1.0)
        row[kernel.RUNNING] = running
        row[kernel.WAITING] = len(line)
        row[kernel.RUNNING_CORES] = busy / max(running, 1)
        row[kernel.RUNNING_SECONDS] = starts / max(running, 1)
        row[kernel.WAITING_CORES] = asked / max(len(line), 1)
        row[kernel.WAITING_SECONDS] = waited / max(len(line), 1)
        row[kernel.CORES] = cores
        return row

    def _waits(self, job_id: str) -> bool:
        return job_id in self._waiting and job_id not in self._around.started


class Renting(SchedulerWrapper):
    """Asks a scheduler first, and a waiting policy about what that does not start.

    A job that comes and is not started in the same pass waits, is rented a machine, or is tried on
    one, as the policy chooses. A job that has waited for as long as the policy's patience is rented
    one. One that leaves is as if it had never come: the scheduler is asked anew without it. While a
    job is being tried the scheduler does not see it.

    It acts on nothing: to the controller, a job that leaves is withdrawn. ``sent`` says to the
    cluster, in order, which to run on rented machines. A preempted job is asked about again.

    Parameters
    ----------
    scheduler
        Of the fixed machines.
    rules
        Of the waiting policy: its patience, and how long trials are.
    advisor
        Who is asked.
    """

    def __init__(self, scheduler: Scheduler, rules: WaitingRules, advisor: Advisor) -> None:
        super().__init__(scheduler)
        self.ignores_time = False
        self.sent: list[Sent] = []
        self._rules = rules
        self._advisor = advisor
        self._waiting: dict[str, float] = {}
        self._leaving: deque[tuple[float, str]] = deque()
        self._told: tuple[float, str] | None = None
        self._trials: dict[str, float] = {}
        self._tried: set[str] = set()

    def decide(self, view: ClusterView) -> Decision:
        """The scheduler's decision, and which jobs leave."""
        withdrawals = self._end_trials(view)
        ticks: list[TickAt] = []
        hidden = {*self._trials, *(each.job_id for each in withdrawals)}
        around = _Round(self._scheduler, view, hidden)
        waiting = self._waiting
        came = [each for each in around.pending if each.job.job_id not in waiting]
        while came:
            for each in came:
                self._ask(each, around, withdrawals, ticks)
            came = [
                each
                for each in around.pending
                if not (each.job.job_id in self._waiting or each.job.job_id in around.started)
            ]
        self._let_go(around, withdrawals)
        for job_id in around.started:
            self._waiting.pop(job_id, None)
            self._tried.discard(job_id)
        if len(self._waiting) > len(view.pending):  # some were cancelled
            present = {each.job.job_id for each in view.pending}
            self._waiting = {job: at for job, at in self._waiting.items() if job in present}
        ticks += self._next_to_leave()
        if not (withdrawals or ticks):
            return around.decision
        return replace(around.decision, withdrawals=tuple(withdrawals), ticks=tuple(ticks))

    def _end_trials(self, view: ClusterView) -> list[Withdraw]:
        """Those whose trial is over are done, or come back."""
        withdrawals: list[Withdraw] = []
        if not self._trials:
            return withdrawals
        present = {each.job.job_id for each in view.pending}
        over = [job_id for job_id, end in self._trials.items() if end <= view.now]
        for job_id in over:
            del self._trials[job_id]
            if job_id not in present:
                continue
            if self._advisor.is_done(job_id):
                withdrawals.append(Withdraw(job_id, SentBecause.ON_TRIAL.value))
            else:
                self._tried.add(job_id)
        return withdrawals

    def _ask(
        self,
        pending: PendingJob,
        around: _Round,
        withdrawals: list[Withdraw],
        ticks: list[TickAt],
    ) -> None:
        """Ask about one job, and do as the answer says."""
        job_id, now = pending.job.job_id, around.view.now
        question = RentingCase(
            pending,
            job_id in around.started,
            job_id in self._tried,
            ClusterState(around, self._waiting, job_id),
        )
        match self._advisor.choose(question):
            case ArrivalChoice.WAIT:
                self._waiting[job_id] = now
                if self._rules.patience_seconds < np.inf:
                    self._leaving.append((now + self._rules.patience_seconds, job_id))
            case ArrivalChoice.RENT:
                withdrawals.append(self._send(job_id, now, SentBecause.CHOSEN))
                around.without(job_id)
            case ArrivalChoice.SPECULATE:
                self.sent.append(Sent(job_id, now, SentBecause.ON_TRIAL, False))
                self._trials[job_id] = now + self._rules.speculation_seconds
                ticks.append(TickAt(job_id, self._trials[job_id]))
                around.without(job_id)

    def _send(self, job_id: str, now: float, because: SentBecause) -> Withdraw:
        self.sent.append(Sent(job_id, now, because, job_id in self._tried))
        self._tried.discard(job_id)
        return Withdraw(job_id, because.value)

    def _let_go(self, around: _Round, withdrawals: list[Withdraw]) -> None:
        """A job whose patience is over is rented a machine, unless it starts."""
        now = around.view.now
        while self._leaving and self._leaving[0][0] <= now:
            leaves = self._is_to_leave(*self._leaving[0])
            job_id = self._leaving.popleft()[1]
            if leaves and around.has(job_id) and job_id not in around.started:
                del self._waiting[job_id]
                withdrawals.append(self._send(job_id, now, SentBecause.PATIENCE_EXPIRED))
                around.without(job_id)

    def _is_to_leave(self, time: float, job_id: str) -> bool:
        """True if a job still waits, and has since before its patience was to be over then."""
        since = self._waiting.get(job_id)
        return since is not None and since + self._rules.patience_seconds == time

    def _next_to_leave(self) -> Iterable[TickAt]:
        """Next time at which a waiting job loses its patience, if it was not given yet."""
        while self._leaving and not self._is_to_leave(*self._leaving[0]):
            self._leaving.popleft()
        if self._leaving and self._leaving[0] != self._told:
            self._told = self._leaving[0]
            time, job_id = self._told
            yield TickAt(job_id, time)


class _Round:
    """Decision of a scheduler in one pass, as jobs leave."""

    def __init__(self, scheduler: Scheduler, view: ClusterView, hidden: set[str]) -> None:
        self.view = view
        self.pending = view.pending
        self._scheduler = scheduler
        if hidden:
            self.pending = tuple(each for each in view.pending if each.job.job_id not in hidden)
        self._decide()

    def _decide(self) -> None:
        self.decision = Decision()
        if self.pending:
            view = self.view
            if len(self.pending) < len(view.pending):
                view = replace(view, pending=self.pending)
            self.decision = self._scheduler.decide(view)
        self.started = {start.job_id for start in self.decision.starts}

    def has(self, job_id: str) -> bool:
        """True if the scheduler sees this job."""
        return any(each.job.job_id == job_id for each in self.pending)

    def without(self, job_id: str) -> None:
        """Have it decided anew as if this job had never come."""
        self.pending = tuple(each for each in self.pending if each.job.job_id != job_id)
        if job_id in self.started or len(self.pending) > len(self.started):
            self._decide()
        else:  # all others start, as they did
            decision = self.decision
            plan = tuple(each for each in decision.plan if each.job_id != job_id)
            self.decision = replace(decision, plan=plan)


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
