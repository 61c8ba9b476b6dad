"""The decision check: what of a scheduler's decision may reach the cluster."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Final

from foresail.model.construction import quickly_made
from foresail.model.decision import Decision, Preempt, Refusal, RefusalCode, Start, Withdraw
from foresail.model.free_resources import FreeResources
from foresail.model.view import PendingJob, RunningJob


@quickly_made
@dataclass(frozen=True, slots=True)
class Verdict:
    """What of a decision is let through, in the scheduler's order, and what is refused."""

    starts: tuple[Start, ...] = ()
    preemptions: tuple[Preempt, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    withdrawals: tuple[Withdraw, ...] = ()


_NOTHING: Final = Verdict()


def check_decision(
    decision: Decision,
    startable: Mapping[str, PendingJob],
    running: Mapping[str, RunningJob],
    stopping: Container[str],
    capacity: FreeResources,
) -> Verdict:
    """Split a decision into what fits the state and what does not.

    Starts are taken in the scheduler's order, each on what the ones before it left. A preemption
    frees nothing yet: the job holds its resources until the cluster reports that it has ended.

    Parameters
    ----------
    decision
        What the scheduler wants.
    startable
        Pending jobs whose dependencies have ended, by id.
    running
        Running jobs by id.
    stopping
        Ids of running jobs that were told to stop earlier.
    capacity
        What is free before the decision; not changed.
    """
    if not (decision.starts or decision.preemptions or decision.withdrawals):
        return _NOTHING
    starts: list[Start] = []
    refusals: list[Refusal] = []
    left = capacity.copy() if len(decision.starts) > 1 else capacity
    started: set[str] = set()
    for start in decision.starts:
        refusal = _refuse_start(start, started, startable, running, left)
        if refusal is None:
            if left is not capacity:  # there are others, who get what is left
                left.take(startable[start.job_id].job, start.placement)
            started.add(start.job_id)
            starts.append(start)
        else:
            refusals.append(refusal)
    preemptions: list[Preempt] = []
    preempted: set[str] = set()
    for preempt in decision.preemptions:
        refusal = _refuse_preemption(preempt, preempted, running, stopping)
        if refusal is None:
            preempted.add(preempt.job_id)
            preemptions.append(preempt)
        else:
            refusals.append(refusal)
    withdrawals: list[Withdraw] = []
    withdrawn: set[str] = set()
    for withdraw in decision.withdrawals:
        refusal = _refuse_withdrawal(withdraw, withdrawn, started, startable)
        if refusal is None:
            withdrawn.add(withdraw.job_id)
            withdrawals.append(withdraw)
        else:
            refusals.append(refusal)
    return Verdict(tuple(starts), tuple(preemptions), tuple(refusals), tuple(withdrawals))


def _refuse_start(
    start: Start,
    started: Container[str],
    startable: Mapping[str, PendingJob],
    running: Mapping[str, RunningJob],
    left: FreeResources,
) -> Refusal | None:
    job_id = start.job_id
    if job_id in started:
        return Refusal(job_id, RefusalCode.TWICE, "it is started twice in one decision")
    if job_id in running:
        return Refusal(job_id, RefusalCode.NOT_PENDING, "it is running already")
    pending = startable.get(job_id)
    if pending is None:
        return Refusal(job_id, RefusalCode.UNKNOWN_JOB, "it is not among the jobs that may start")
    problem = left.misplacement(pending.job, start.placement)
    if problem is None:
        return None
    kind, sentence = problem
    return Refusal(job_id, RefusalCode(kind.value), sentence)


def _refuse_preemption(
    preempt: Preempt,
    preempted: Container[str],
    running: Mapping[str, RunningJob],
    stopping: Container[str],
) -> Refusal | None:
    job_id = preempt.job_id
    if job_id in preempted or job_id in stopping:
        return Refusal(job_id, RefusalCode.TWICE, "it has been told to stop already")
    if job_id not in running:
        return Refusal(job_id, RefusalCode.NOT_RUNNING, "it is not running")
    return None


def _refuse_withdrawal(
    withdraw: Withdraw,
    withdrawn: Container[str],
    started: Container[str],
    startable: Mapping[str, PendingJob],
) -> Refusal | None:
    job_id = withdraw.job_id
    if job_id in withdrawn:
        return Refusal(job_id, RefusalCode.TWICE, "it is withdrawn twice in one decision")
    if job_id in started:
        return Refusal(job_id, RefusalCode.NOT_PENDING, "it is started in the same decision")
    if job_id not in startable:
        return Refusal(job_id, RefusalCode.UNKNOWN_JOB, "it is not among the jobs that may start")
    return None
