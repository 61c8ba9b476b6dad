"""A predictor in one file: the mean runtime of the user's earlier jobs of the same width.

`foresail simulate LOG --plugin mean_of_width.py --with "easy,mean_of_width,doubling"` finds it by
its name. Run as a script, it is shown three jobs and asked about a fourth.
"""

from __future__ import annotations

from foresail.distributions.basic import Point
from foresail.model.distribution import Distribution
from foresail.model.event import EndedBecause, Outcome
from foresail.model.job import Job
from foresail.model.protocols import Predictor
from foresail.model.registry import NoParameters, register

HOUR_SECONDS = 3600.0


@register("predictor", "mean_of_width")
class MeanOfWidth(Predictor):
    """Predicts the mean runtime of the user's completed jobs with as many cpus."""

    def __init__(self, _: NoParameters) -> None:
        self._seconds: dict[tuple[str | None, float], list[float]] = {}

    def predict(self, job: Job, now: float) -> Distribution:  # noqa: ARG002 - time says nothing
        """The mean, at most the requested time; without history the requested time, or an hour."""
        limit = HOUR_SECONDS if job.requested_seconds is None else job.requested_seconds
        past = self._seconds.get((job.user, job.cpus))
        return Point(min(limit, sum(past) / len(past)) if past else limit)

    def observe(self, job: Job, outcome: Outcome) -> None:
        """Remember the runtime of a job that came to its own end."""
        if outcome.ended_because is EndedBecause.COMPLETED:
            past = self._seconds.setdefault((job.user, job.cpus), [])
            past.append(outcome.runtime_seconds)


def main() -> None:
    """Let it learn from three jobs of one user and print what it says of the next."""
    predictor = MeanOfWidth(NoParameters())
    for job_id, cpus, runtime_seconds in (("1", 4, 600.0), ("2", 4, 1200.0), ("3", 16, 5000.0)):
        job = Job.gang(job_id, 0.0, cpus, requested_seconds=7200.0, user="ann")
        print(f"job {job_id}, {cpus:2} cpus: {predictor.predict(job, 0.0).mean():.0f} s expected")
        predictor.observe(job, Outcome(job_id, 0.0, runtime_seconds))
    fourth = Job.gang("4", 9000.0, 4, requested_seconds=7200.0, user="ann")
    print(f"job 4,  4 cpus: {predictor.predict(fourth, 9000.0).mean():.0f} s expected")


if __name__ == "__main__":
    main()
