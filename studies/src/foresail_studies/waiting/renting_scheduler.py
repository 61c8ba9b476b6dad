"""A scheduler of fixed machines beside rented ones, by the choices of a waiting policy."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.waiting.kernels import waiting_choice as kernel
from foresail.cloud.waiting.kernels.waiting_choice import WaitingRules
from foresail.model.arrays import Floats
from foresail.model.decision import Decision, TickAt, Withdraw
from foresail.model.protocols import Scheduler, SchedulerWrapper
from foresail.model.view import ClusterView, PendingJob


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
