"""The belief from a few runs of the very same job."""

from __future__ import annotations

from foresail.distributions.basic import Point
from foresail.distributions.empirical import Empirical
from foresail.model.distribution import Distribution
from foresail.model.job import Job
from foresail.model.outcome import Outcome
from foresail.model.protocols import Predictor
from foresail.model.registry import NoParameters, register
from foresail.predictors.kernels.request import DAY_SECONDS
from foresail_studies.runtime_samples import FEATURE, samples_of


@register("predictor", "sampled")
class Sampled(Predictor):
    """Predicts the samples that jobs carry (generator ``e2e_sample``); without any, the limit.

    Source: 3Sigma, figure 4.11 (E2E-SAMPLE-n); spec 3sigma-distsched section 6.3.
    """

    def __init__(self, parameters: NoParameters) -> None:
        del parameters

    def predict(self, job: Job, now: float) -> Distribution:  # noqa: ARG002 - it has no date
        """The empirical distribution of the job's samples.

        Raises ``InputError`` if what the job carries is not a list of numbers.
        """
        if FEATURE in job.attributes:
            return Empirical(samples_of(job.attributes))
        return Point(DAY_SECONDS if job.requested_seconds is None else job.requested_seconds)

    def observe(self, job: Job, outcome: Outcome) -> None:
        """Learn nothing."""
