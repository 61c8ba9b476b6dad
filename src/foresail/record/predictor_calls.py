"""Predictor calls of a run, replayed into a new predictor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from foresail.model.distribution import Distribution
from foresail.model.job import Job
from foresail.model.outcome import Outcome
from foresail.model.protocols import Predictor, capabilities_of_predictor


@dataclass(frozen=True, slots=True)
class Asked:
    """A job was submitted, and its runtime predicted."""

    job: Job
    now: float


@dataclass(frozen=True, slots=True)
class AskedAgain:
    """The belief about a job that waits was made anew, and came out otherwise.

    It teaches the predictor nothing, but is what the job is believed to take from then on.
    """

    job: Job
    now: float


@dataclass(frozen=True, slots=True)
class Started:
    """An attempt of a job started."""

    job: Job
    now: float


@dataclass(frozen=True, slots=True)
class JobWithdrawn:
    """A job that waited will not run; made to predictors that watch withdrawals."""

    job: Job
    now: float


@dataclass(frozen=True, slots=True)
class Observed:
    """An attempt ended, of this run or of an earlier one."""

    job: Job
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class ObservedPart:
    """A part of a job ended; made to predictors that observe tasks."""

    job: Job
    outcome: Outcome


PredictorCall = Asked | AskedAgain | Started | JobWithdrawn | Observed | ObservedPart


@dataclass(frozen=True, slots=True)
class JobBeliefs:
    """About one job: as it was submitted, and from now on while it waits or runs."""

    first: Distribution
    latest: Distribution


def teach(predictor: Predictor, calls: Iterable[PredictorCall]) -> Mapping[str, JobBeliefs]:
    """Make all calls to a fresh predictor, in order; returns what it believes of each job."""
    can = capabilities_of_predictor(predictor)
    refreshes, watches = can.refreshes_predictions, can.watches_starts
    beliefs: dict[str, JobBeliefs] = {}
    for call in calls:
        job = call.job
        job_id = job.job_id
        match call:
            case Asked(now=now):
                belief = predictor.predict(job, now)
                beliefs[job_id] = JobBeliefs(belief, belief)
            case AskedAgain(now=now) if refreshes is not None:
                latest = refreshes.refreshed(job, now)
                beliefs[job_id] = replace(beliefs[job_id], latest=latest)
            case Started(now=now) if watches is not None:
                watches.started(job, now)
            case JobWithdrawn(now=now) if can.watches_withdrawals is not None:
                can.watches_withdrawals.withdrawn(job, now)
            case ObservedPart(outcome=outcome) if can.observes_tasks is not None:
                can.observes_tasks.part_ended(job, outcome)
            case Observed(outcome=outcome):
                predictor.observe(job, outcome)
                if job_id in beliefs:  # should it go back to the queue, it is with its first belief
                    beliefs[job_id] = replace(beliefs[job_id], latest=beliefs[job_id].first)
    return beliefs
