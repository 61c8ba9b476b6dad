"""A correction in one file: a job that outlives its prediction is given half as long again.

`foresail simulate LOG --plugin half_again.py --with "easy,recent,half_again"` finds it by its name.
Run as a script, it corrects the prediction of one job until the job's limit is reached.
"""

from __future__ import annotations

from foresail.distributions.basic import Point
from foresail.model.distribution import Distribution
from foresail.model.job import Job
from foresail.model.registry import NoParameters, register


@register("correction", "half_again")
class HalfAgain:
    """Expects half as long again, at most up to the requested time."""

    def __init__(self, _: NoParameters) -> None:
        pass

    def correct(
        self,
        job: Job,
        prediction: Distribution,  # noqa: ARG002 - not needed here, nor are two of the others
        initial: float,  # noqa: ARG002
        current: float,
        count: int,  # noqa: ARG002
    ) -> float:
        """Return the next estimate of the whole runtime in seconds, greater than ``current``."""
        longer = 1.5 * max(current, 1.0)
        limit = job.requested_seconds
        return longer if limit is None or limit <= current else min(longer, limit)


def main() -> None:
    """Correct the prediction of ten minutes for a job with a limit of half an hour."""
    correction, job = HalfAgain(NoParameters()), Job.gang("1", 0.0, 4, requested_seconds=1800.0)
    estimate = 600.0
    for count in range(4):
        longer = correction.correct(job, Point(600.0), 600.0, estimate, count)
        print(f"runs for {estimate:4.0f} s: {longer:.0f} s expected")
        estimate = longer


if __name__ == "__main__":
    main()
