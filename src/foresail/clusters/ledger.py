"""The ledger: what became of every job of a run, kept step by step, and the schedule it makes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from foresail.control.loop import Controller
from foresail.model.decision import Instruction, Placement, Start, TickAt, WakeAt, Withdraw
from foresail.model.event import Ended, Event, Submitted
from foresail.model.job import Job
from foresail.model.outcome import EndedBecause, Outcome
from foresail.model.reservation import Reservation
from foresail.traces import schema

GOES_BACK = frozenset({EndedBecause.PREEMPTED, EndedBecause.LOST})
"""Attempts that ended so leave their job in the queue."""


class Ledger:
    """Follows a controller's steps, live ones and those read back from a log alike.

    To be read by others: ``now`` (time of the last step), ``submitted`` (jobs in order),
    ``attempts`` (how many were started, by job id), ``wakes`` (when a running job's estimate
    expires), ``ticks`` (when a job's reservation begins), ``ended`` (the last outcome of jobs that
    are done with), ``withdrawn`` (why a job will never run), ``outcomes`` (every attempt's end).
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.submitted: dict[str, Job] = {}
        self.attempts: dict[str, int] = {}
        self.wakes: dict[str, float] = {}
        self.ticks: dict[str, float] = {}
        self.ended: dict[str, Outcome] = {}
        self.withdrawn: dict[str, str] = {}
        self.outcomes: list[tuple[Job, Outcome]] = []
        self._rows: list[dict[str, Any]] = []
        self._waiting: dict[str, None] = {}
        self._overtook: set[str] = set()

    def take_events(self, now: float, events: Iterable[Event], controller: Controller) -> None:
        """Note what is about to be handed to the controller's next step."""
        self.now = now
        self.ticks = {job_id: time for job_id, time in self.ticks.items() if time > now}
        for event in events:
            if isinstance(event, Submitted):
                self.submitted[event.job.job_id] = event.job
                self._waiting[event.job.job_id] = None
            elif isinstance(event, Ended):
                self._end(event.outcome, controller)

    def take_instructions(self, instructions: Iterable[Instruction]) -> None:
        """Note what the controller answered."""
        for instruction in instructions:
            match instruction:
                case Start(job_id):
                    self.attempts[job_id] = self.attempts.get(job_id, 0) + 1
                    if next(iter(self._waiting)) != job_id:
                        self._overtook.add(job_id)
                    del self._waiting[job_id]
                case WakeAt(job_id, time):
                    self.wakes[job_id] = time
                case TickAt(job_id, time):
                    self.ticks[job_id] = time
                case Withdraw(job_id, because):
                    self.withdrawn[job_id] = because
                    self.ticks.pop(job_id, None)
                    del self._waiting[job_id]

    def schedule(self) -> pl.DataFrame:
        """One row per attempt that ended, with the columns of ``schema.SCHEDULE``."""
        order = {job_id: number for number, job_id in enumerate(self.submitted)}
        rows = sorted(self._rows, key=lambda row: (order[row["job_id"]], row["attempt"]))
        return pl.DataFrame(rows, schema=schema.SCHEDULE)

    def _end(self, outcome: Outcome, controller: Controller) -> None:
        job_id = outcome.job_id
        job = self.submitted[job_id]
        running = controller.running[job_id]
        answer = running.reservation
        self.outcomes.append((job, outcome))
        self.wakes.pop(job_id, None)
        if outcome.ended_because in GOES_BACK:
            self._waiting[job_id] = None
            self._waiting = {each: None for each in self.submitted if each in self._waiting}
        else:
            self.ended[job_id] = outcome
            self.ticks.pop(job_id, None)
        self._rows.append(
            {
                "job_id": job_id,
                "attempt": outcome.attempt,
                "submit_seconds": job.submit_seconds,
                "start_seconds": outcome.start_seconds,
                "end_seconds": outcome.end_seconds,
                "cpus": job.cpus,
                "user": job.user,
                "requested_seconds": job.requested_seconds,
                "predicted_seconds": running.prediction.mean(),
                "predicted_low_seconds": running.prediction.quantile(0.10),
                "predicted_high_seconds": running.prediction.quantile(0.90),
                "corrections": running.corrections,
                "backfilled": job_id in self._overtook,
                "placement": _placement_text(running.placement),
                "ended_because": outcome.ended_because.value,
                "deadline_seconds": job.deadline_seconds,
                "accepted": None if answer is None else isinstance(answer, Reservation),
            }
        )
        self._overtook.discard(job_id)


def _placement_text(placement: Placement) -> str:
    return ",".join(f"{name}:{tasks}" for name, tasks in placement.tasks_by_partition)
