"""Changes that a step of the run makes to the rows of its jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from foresail.explain.reason_words import end_words
from foresail.live.command_job import CommandJob
from foresail.model import event
from foresail.model.decision import Placement, Start, Withdraw
from foresail.model.job import Job
from foresail.model.words import CLUSTER_JOB_ID, by_whom
from foresail.record.job_life import JobHistory
from foresail.record.records import EventTaken, Instructed, Predicted, Record
from foresail.record.state import State
from foresail.service.store.protocol import Row, Submit, job_row

_PENDING: Final = {"state": "pending", "start_seconds": None, "places": None}


class JobChanges:
    """New values of jobs' rows by id, and ``new`` rows of jobs that come from the cluster.

    ``commands`` are the accepted jobs by id.
    """

    def __init__(self, commands: Mapping[str, CommandJob]) -> None:
        self.values: dict[str, dict[str, Any]] = {}
        self.new: dict[str, Row] = {}
        self._commands = commands

    def take(self, record: Record, state: State, jobs: JobHistory) -> None:
        """Note what a record changes of a job as it stands after the step."""
        match record:
            case Predicted(job_id=job_id):
                self._change(
                    job_id,
                    low_seconds=record.low_seconds,
                    median_seconds=record.median_seconds,
                    high_seconds=record.high_seconds,
                )
            case Instructed(time=now, instruction=Start(job_id, placement) as start):
                places = _in_short(placement)
                self._change(
                    job_id, state="running", start_seconds=now, attempt=start.attempt, places=places
                )
            case Instructed(time=now, instruction=Withdraw(job_id, because)):
                self._change(job_id, state="withdrawn", end_seconds=now, because=because)
            case EventTaken(event=event.Submitted(job=job)):
                if CLUSTER_JOB_ID.fullmatch(job.job_id):
                    self.new[job.job_id] = _row_of_cluster(job)
                self._change(
                    job.job_id,
                    submit_seconds=job.submit_seconds,
                    deadline_seconds=job.deadline_seconds,
                )
            case EventTaken(time=now, event=event.Cancelled(job_id=job_id, by=by)):
                because = f"cancelled {by_whom(by, jobs.submitted[job_id].user)}"
                if job_id in state.cancelled:
                    self._change(job_id, because=because)
                elif jobs.withdrawn.get(job_id) == because and (
                    state.ended[job_id].end_seconds == now
                ):
                    self._change(job_id, state="cancelled", end_seconds=now, because=because)
            case EventTaken(event=event.Began(job_id=job_id) as began):
                self._change(
                    job_id,
                    state="running",
                    start_seconds=began.start_seconds,
                    attempt=began.attempt,
                    places=_in_short(began.placement),
                )
            case EventTaken(event=event.JobChanged(job_id=job_id)) if job_id not in state.ended:
                job = state.submitted_job(job_id).job
                new = self.new.get(job_id)
                known = CommandJob.from_json(new["command"]) if new else self._commands[job_id]
                command = known.as_cluster_has_it(job)
                self._change(
                    job_id,
                    name=command.name,
                    cpus=command.cpus,
                    deadline_seconds=job.deadline_seconds,
                    command=command.to_json(),
                )
            case EventTaken(time=now, event=event.NotStarted(job_id=job_id)):
                ended = jobs.withdrawn.get(job_id)
                self._change(job_id, **_PENDING)
                if ended is not None:
                    self._change(job_id, state="cancelled", end_seconds=now, because=ended)
            case EventTaken(event=event.Held(job_id=job_id)) if job_id in state.held:
                self._change(job_id, state="held")
            case EventTaken(event=event.Released(job_id=job_id)) if state.pending_job(job_id):
                self._change(job_id, state="pending")
            case EventTaken(event=event.Ended(outcome=outcome)):
                if outcome.ended_because in event.REQUEUED:
                    self._change(outcome.job_id, **_PENDING)
                    return
                self._change(
                    outcome.job_id,
                    state=str(outcome.ended_because),
                    start_seconds=outcome.start_seconds,
                    end_seconds=outcome.end_seconds,
                    exit_code=outcome.exit_code,
                )
                if (
                    outcome.ended_because is not event.EndedBecause.CANCELLED
                ):  # by whom, stands there
                    words = end_words(outcome, jobs.submitted[outcome.job_id])
                    self._change(outcome.job_id, because=words)

    def _change(self, job_id: str, **values: Any) -> None:
        self.values.setdefault(job_id, {}).update(values)


def _row_of_cluster(job: Job) -> Row:
    """Return the row, without a number, of a job that was submitted to the cluster itself."""
    user = (job.user or "").partition("/")[0]
    command = CommandJob(job.job_id, job.job_id, (), "/", user=user).as_cluster_has_it(job)
    return job_row(Submit(command), 0, user, job.submit_seconds, command.to_json())


def _in_short(placement: Placement) -> str:
    """Format a placement: ``node-1:2 node-3:1``, or partitions where nodes are not named."""
    where = placement.places
    return " ".join(f"{each[0]}:{each[-1]}" for each in where)
