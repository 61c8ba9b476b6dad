"""Knowledge of predictors before the first job: a saved state, a history, or an earlier run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from foresail.control.policy import Policy
from foresail.model.decision import Start
from foresail.model.errors import InputError
from foresail.model.event import Ended, HistoryOutcome, Submitted
from foresail.model.job import Job
from foresail.model.protocols import Predictor
from foresail.predictors.saving import load_state
from foresail.predictors.training import train
from foresail.record.log_text import read_log
from foresail.record.records import EventTaken, Instructed
from foresail.traces.workload import Workload


class LearnedBefore(Protocol):
    """Source of what predictors know before the first job."""

    def teach(self, policy: Policy, predictor: Predictor) -> None:
        """Let the fresh predictor of a policy know it.

        Raises ``InputError`` if a file cannot be used, by this predictor or at all;
        ``UnknownNameError`` if the predictor looks at a column that a history does not have.
        """


@dataclass(frozen=True)
class SavedState:
    """A file of ``foresail predict train`` or ``foresail run --learned``, of the same predictor."""

    path: Path

    def teach(self, policy: Policy, predictor: Predictor) -> None:
        """All that the file holds; jobs that were running then are another run's."""
        load_state(self.path, predictor, policy.predictor.text)
        predictor.forget_in_flight()


@dataclass(frozen=True)
class HistoryWorkload:
    """A log whose jobs are learned with their recorded submissions, starts and ends."""

    workload: Workload

    def teach(self, policy: Policy, predictor: Predictor) -> None:  # noqa: ARG002 - any predictor
        """Teach a predictor as if it had been there."""
        train(self.workload, predictor)


@dataclass(frozen=True)
class EarlierRun:
    """The event log of a run, simulated or real, whose jobs are learned as in that run."""

    event_log: Path

    def teach(self, policy: Policy, predictor: Predictor) -> None:  # noqa: ARG002 - any predictor
        """Submissions, starts and ends in the order of the log; what runs at its end is dropped."""
        try:
            self._train(predictor)
        except KeyError as error:
            raise InputError(
                "has a job that was not submitted", source=self.event_log, value=error.args[0]
            ) from error
        predictor.forget_in_flight()

    def _train(self, predictor: Predictor) -> None:
        submitted: dict[str, Job] = {}
        for record in read_log(self.event_log):
            match record:
                case EventTaken(event=Submitted(time=now, job=job)):
                    submitted[job.job_id] = job
                    predictor.predict(job, now)
                case EventTaken(event=Ended(outcome=outcome)):
                    predictor.observe(submitted[outcome.job_id], outcome)
                case EventTaken(event=HistoryOutcome(job=job, outcome=outcome)):
                    predictor.observe(job, outcome)
                case Instructed(time=now, instruction=Start(job_id=job_id)):
                    predictor.started(submitted[job_id], now)
                case _:
                    pass
