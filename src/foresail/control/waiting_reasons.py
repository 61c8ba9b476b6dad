"""Why jobs wait: by the state that they are in, and by what the scheduler has said of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Final

from foresail.model.reason import Reason, ReasonCode
from foresail.model.start_conditions import DependencyKind
from foresail.model.view import PendingJob
from foresail.record.state import State

_OF_DEPENDENCY: Final[Mapping[DependencyKind, ReasonCode]] = {
    DependencyKind.AFTER_OK: ReasonCode.DEPENDENCY,
    DependencyKind.AFTER_ANY: ReasonCode.DEPENDENCY_ANY,
    DependencyKind.AFTER_NOT_OK: ReasonCode.DEPENDENCY_FAILURE,
    DependencyKind.AFTER: ReasonCode.DEPENDENCY_BEGIN,
    DependencyKind.SINGLETON: ReasonCode.SINGLETON,
}


class WaitingReasons:
    """The reasons of pending jobs, each made once it is asked for.

    ``of_pass`` is what the scheduler said in its last pass, by job id; ``draining`` whether nothing
    new is started.
    """

    def __init__(self, state: State) -> None:
        self.of_pass: Mapping[str, Reason] = {}
        self.draining = False
        self._state = state

    def of_all(self) -> dict[str, Reason]:
        """Of each pending job, by id in order of arrival."""
        return {
            pending.job.job_id: self._told(pending) or _not_chosen(ahead)
            for ahead, pending in enumerate(self._state.pending())
        }

    def of(self, pending: Iterable[PendingJob]) -> dict[str, Reason]:
        """Of some pending jobs, by id; for few of many."""
        reasons = {each.job.job_id: self._told(each) for each in pending}
        if None in reasons.values():
            arrivals = sorted(each.arrival for each in self._state.pending())
            for each in pending:
                if reasons[each.job.job_id] is None:
                    ahead = bisect_left(arrivals, each.arrival)
                    reasons[each.job.job_id] = _not_chosen(ahead)
        return {job_id: reason for job_id, reason in reasons.items() if reason is not None}

    def _told(self, pending: PendingJob) -> Reason | None:
        """Why a job waits; None if the scheduler says nothing of it."""
        state, job_id = self._state, pending.job.job_id
        if job_id in state.held:
            return Reason(ReasonCode.HELD)
        if job_id in state.waiting_for:
            unmet = state.unmet(pending.job)
            if unmet is not None:
                predecessor, kind = unmet
                return Reason(_OF_DEPENDENCY[kind], {"after": predecessor})
        if job_id in state.held_back:
            begin, limit = state.why_held_back(job_id)
            if begin is not None:
                return Reason(ReasonCode.BEGIN, {"begin": begin})
            return Reason(ReasonCode.ARRAY_LIMIT, {"most": float(limit)})
        if job_id in state.too_wide:
            parts = state.parts_of(job_id)
            at_once = (pending.job,) if parts is None else parts.smallest()
            most = max(each.cpus for each in at_once)
            numbers = {"cpus": most, "total": state.cluster.total.cpus}
            return Reason(ReasonCode.TOO_WIDE, numbers)
        if self.draining:
            return Reason(ReasonCode.DRAINING)
        return self.of_pass.get(job_id)


def _not_chosen(ahead: int) -> Reason:
    return Reason(ReasonCode.NOT_CHOSEN, {"ahead": float(ahead)})
