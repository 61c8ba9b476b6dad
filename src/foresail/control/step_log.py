"""The records of a controller's steps: what happened, was believed and decided, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from foresail.control.waiting_reasons import WaitingReasons
from foresail.model import decision as decisions
from foresail.model.containers import Altered, Followed, Listed, quickly_made, replaced
from foresail.model.distribution import Distribution
from foresail.model.event import ClusterAvailable, ClusterUnavailable, Event
from foresail.model.free_resources import FreeResources
from foresail.model.job import JobSize
from foresail.model.protocols import CycleReport
from foresail.model.view import PendingJob, Rejection, Reservation, RunningJob
from foresail.record import records
from foresail.record.beliefs import differ, in_short, kept
from foresail.record.plans import Changes
from foresail.record.run_fold import RunFold
from foresail.record.state import State


@quickly_made
@dataclass(frozen=True, slots=True)
class ReasonChanges:
    """Reasons to be logged."""

    columns: Sequence[decisions.AlikeReasons]
    """Reasons that the scheduler says have changed."""
    job_ids: set[str] | None
    """Jobs whose others may have, too; they wait, or waited. None: any that wait."""
    in_columns: set[str]
    """Jobs that have come or changed, of which the columns say all that there is to say."""
    anew: set[str]
    """Jobs that the log has to record if they wait, whatever it knows."""


_OF_ALL: Final = (ClusterUnavailable, ClusterAvailable)


class _ReasonTracker:
    """Collects, between two records of the log, what may have changed.

    Reasons that a scheduler gives in columns are not taken apart: a pass may give those of some
    thousand jobs, and none of their ids is looked at.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._rosters = state.pending_rosters
        self._startable = state.startable
        self._followed: list[Followed[PendingJob]] = [Followed() for _ in self._rosters]
        self._seen: list[Listed[PendingJob] | None] = [None for _ in self._rosters]
        self._mark: object = None
        self._passes: list[Sequence[decisions.AlikeReasons]] | None = None
        self._reports_on: Callable[[str], bool] | None = None
        self._logged_in_columns = False

    def any_may_differ(self) -> None:
        """Note a change that affects all jobs that may start."""
        self._passes = None

    def take(self, reasons: Mapping[str, decisions.Reason]) -> None:
        """A pass has given these reasons."""
        changed_since = getattr(reasons, "changed_since", None)
        state = self._state
        if (state.down or state.drained) and not state.free.by_node():
            changed_since = None  # no scheduler says that no node is in use
        changed: Sequence[decisions.AlikeReasons] | None = None
        if changed_since is None:
            self._mark = self._reports_on = None
        else:
            self._mark, changed = changed_since(self._mark)
            self._reports_on = reasons.reports_on  # type: ignore[attr-defined] # it has both
        if changed is None:
            self._passes = None
        elif self._passes is not None:
            self._passes.append(changed)

    def changes(self) -> ReasonChanges:
        """Return the reasons to be logged since this was last asked."""
        passes, self._passes = self._passes, []
        reports_on, self._reports_on = self._reports_on, None
        moved = self._moved()
        none: set[str] = set()
        if moved is None or passes is None:
            if moved is not None:  # of no others has a scheduler anything to say
                moved.update(self._startable)
            anew = {*self._startable} if self._logged_in_columns else none
            self._logged_in_columns = False
            return ReasonChanges((), moved, none, anew)
        if not passes or reports_on is None:
            return ReasonChanges((), moved, none, none)
        self._logged_in_columns = True
        latest, anew = passes[-1], none
        for changed in passes[:-1]:  # the last pass reports, of which the first ones know nothing
            anew = anew.union(*(reasons.job_ids for reasons in changed))
        if anew:
            anew = anew.difference(*(reasons.job_ids for reasons in latest))
        in_columns = {job_id for job_id in moved if reports_on(job_id)}
        return ReasonChanges(latest, moved - in_columns, in_columns, anew)

    def _moved(self) -> set[str] | None:
        """Return which jobs came, went or changed; None: not all is remembered."""
        moved: set[str] | None = set()
        for number, roster in enumerate(self._rosters):
            shown = roster.listed()
            if shown is self._seen[number]:  # as nearly all are
                continue
            self._seen[number] = shown
            changes = self._followed[number].changes_to(shown)
            if changes is None:
                moved = None
            elif moved is not None:
                for change in changes:
                    if isinstance(change, Altered):
                        moved.update(roster.of_kind(change.kind))
                        continue
                    entry = change[1] or change[0]
                    assert entry is not None
                    moved.add(entry.job.job_id)
        return moved


class StepLog:
    """Makes the records of each step, and hands them to an event log.

    Of plans and reasons it logs what differs from what it has logged before.
    """

    def __init__(self, log: records.EventLog, state: State, reasons: WaitingReasons) -> None:
        self._log = log
        self._step, self._now = 0, 0.0
        self._changes = Changes()
        self._follow(state, reasons)

    def _follow(self, state: State, reasons: WaitingReasons) -> None:
        self._state = state
        self._reasons = reasons
        self._tracker = _ReasonTracker(state)

    def take_over(self, run: RunFold, reasons: WaitingReasons) -> None:
        """Go on where the log of a run ends; all reasons are news then."""
        self._step, self._now = run.steps, run.now
        self._changes.take_over(run.plan.last_planned(), run.plan.made_at)
        self._follow(run.state, reasons)

    # --- between steps

    def drained(self) -> None:
        """Log that nothing new is started from the next step on."""
        self._tracker.any_may_differ()
        self._log.append(records.Drained(self._step))

    def reopened(self) -> None:
        """Jobs are started again from the next step on."""
        self._tracker.any_may_differ()
        self._log.append(records.Reopened(self._step))

    def forgotten(self, job_ids: tuple[str, ...]) -> None:
        """Log that nothing more is known of these jobs."""
        self._log.append(records.Forgotten(self._step, job_ids))
        self._log.commit()

    # --- in a step, in this order

    def begin(self, now: float, events: Iterable[Event]) -> None:
        """A step takes these events, in this order."""
        self._now = now
        for event in events:
            self._log.append(records.EventTaken(self._step, now, event))
            if type(event) in _OF_ALL:
                self._tracker.any_may_differ()

    def refreshed(self, pending: PendingJob, belief: Distribution) -> None:
        """Log another belief about a job that waits, if it has other numbers."""
        if differ(belief, pending.prediction):
            self.predicted(replaced(pending, prediction=belief))

    def predicted(self, pending: PendingJob) -> None:
        """Log the belief about a pending job's runtime, from now on."""
        belief = pending.prediction
        self._log.append(
            records.Predicted(
                step=self._step,
                time=self._now,
                job_id=pending.job.job_id,
                mean_seconds=belief.mean(),
                low_seconds=belief.quantile(0.10),
                median_seconds=belief.quantile(0.50),
                high_seconds=belief.quantile(0.90),
                planned_seconds=pending.planned_seconds,
                belief=kept(belief),
            )
        )

    def reservation_answered(self, job_id: str, answer: Reservation | Rejection) -> None:
        """Log what a job is promised, or why nothing."""
        self._log.append(records.ReservationAnswered(self._step, self._now, job_id, answer))

    def corrected(self, running: RunningJob, before_seconds: float, after_seconds: float) -> None:
        """Log the new estimate of the total runtime of what runs."""
        self._log.append(
            records.Corrected(
                step=self._step,
                time=self._now,
                job_id=running.job.job_id,
                count=running.corrections,
                previous_seconds=before_seconds,
                next_seconds=after_seconds,
                stage=running.stage,
                tasks=running.tasks,
            )
        )

    def decided(
        self,
        decision: decisions.Decision,
        running: int,
        free: FreeResources,
        *,
        head: str | None,
        head_delayed: bool,
    ) -> None:
        """Log the result of a pass: so many ran, and that much was free."""
        self._tracker.take(decision.reasons)
        change = self._changes.of_plan(decision.plan, self._now)
        self._log.append(
            records.Decided(
                self._step,
                self._now,
                len(self._state.startable),
                running,
                sum([room.cpus for room in free.by_partition().values()]),
                tuple([start.job_id for start in decision.starts]),
                tuple([preempt.job_id for preempt in decision.preemptions]),
                change.plan,
                change.places,
                change.dropped,
                change.slides,
                head,
                head_delayed,
            )
        )

    def solved(self, report: CycleReport) -> None:
        """Log how well the scheduler says that it solved the pass."""
        self._log.append(
            records.Solved(
                step=self._step,
                time=self._now,
                value=in_short(report.value),
                bound=in_short(report.bound),
                gap=in_short(report.gap),
                columns=report.columns,
                cycle_seconds=in_short(report.cycle_seconds),
                failure=report.solver_failure,
                left_out=report.left_out,
            )
        )

    def remembered(self, memory: Mapping[str, Any]) -> None:
        """Log what the scheduler keeps of the pass."""
        self._log.append(records.Remembered(self._step, self._now, memory))

    def refused(self, refusals: Iterable[decisions.Refusal]) -> None:
        """Log what of the decision does not reach the cluster."""
        for refusal in refusals:
            self._log.append(records.Refused(self._step, self._now, refusal))

    def sized(self, sizes: Iterable[JobSize]) -> None:
        """Log what the scheduler has learned of jobs by their tasks."""
        for size in sizes:
            self._log.append(records.Sized(self._step, self._now, size))

    def end(self, instructions: Iterable[decisions.Instruction]) -> None:
        """The step is over; log which reasons differ in kind, or in the start they promise.

        Numbers are those of the pass that gave the reason: how many were ahead, before whom a job
        must not start. Whoever reads the log has starts from the plan, and what a job lacks from
        the state (``explain.run_snapshot``), as the controller's answers have it.
        """
        to_log = self._tracker.changes()
        for reasons in (*to_log.columns, *decisions.alike(self._changed_reasons(to_log))):
            for some in _in_pieces(reasons):
                self._log.append(records.ReasonsChanged(self._step, self._now, some))
        for instruction in instructions:
            self._log.append(records.Instructed(self._step, self._now, instruction))
        self._log.commit()
        self._step += 1

    def _changed_reasons(self, to_log: ReasonChanges) -> Mapping[str, decisions.Reason]:
        """Return reasons that columns lack: of jobs that came or changed, or were planned anew."""
        job_ids, in_columns, anew = to_log.job_ids, to_log.in_columns, to_log.anew
        if job_ids is None:
            return self._changes.of_reasons(self._reasons.of_all(), anew)
        planned = self._changes.moved
        if not (planned or job_ids or in_columns or anew):
            return {}
        if planned and to_log.columns:
            promises = (reasons.job_ids for reasons in to_log.columns if "start" in reasons.by_job)
            planned = planned.difference(*promises)
        compared = job_ids | planned | anew if planned or anew else job_ids
        reasons = self._reasons.reasons(self._pending(compared))
        for job_id in planned - job_ids - anew:
            if job_id in reasons and reasons[job_id].code is not decisions.ReasonCode.RESERVED:
                del reasons[job_id]  # the columns have it, and of others a plan says nothing
        others = (compared | in_columns) - reasons.keys()
        return self._changes.of_some_reasons(reasons, others, anew)

    def _pending(self, job_ids: Iterable[str]) -> Sequence[PendingJob]:
        """Return which of these jobs wait, by arrival."""
        pending_job = self._state.pending_job
        pending = [each for job_id in job_ids if (each := pending_job(job_id))]
        pending.sort(key=_by_arrival)
        return pending


_MOST_IN_RECORD: Final = 1_000
"""Jobs whose reasons a record has: a job's story reads that of its own, not of all."""


def _in_pieces(reasons: decisions.AlikeReasons) -> Iterator[decisions.AlikeReasons]:
    job_ids, by_job = reasons.job_ids, reasons.by_job
    if len(job_ids) <= _MOST_IN_RECORD:
        yield reasons
        return
    for begin in range(0, len(job_ids), _MOST_IN_RECORD):
        some = slice(begin, begin + _MOST_IN_RECORD)
        columns = {name: values[some] for name, values in by_job.items()}
        yield replaced(reasons, job_ids=job_ids[some], by_job=columns)


_by_arrival: Final[Callable[[PendingJob], int]] = attrgetter("arrival")
