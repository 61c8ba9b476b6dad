"""The belief from a few runs of the very same job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.basic import Point
from foresail.distributions.empirical import Empirical
from foresail.model.distribution import Distribution
from foresail.model.errors import InputError
from foresail.model.event import Outcome
from foresail.model.job import Job
from foresail.model.protocols import Predictor
from foresail.model.registry import NoParameters, register
from foresail.predictors.kernels.request import DAY_SECONDS

FEATURE: Final = "runtime_samples"
"""Name of the feature: seconds, comma-separated."""


def as_text(samples: NDArray[np.float64]) -> list[str]:
    """The feature of each job from samples in seconds; shape (jobs, samples of each)."""
    return [",".join(f"{value:.3f}" for value in row) for row in samples.tolist()]


def samples_of(attributes: Mapping[str, str]) -> NDArray[np.float64]:
    """The samples, in seconds, that a job carries among its attributes; shape (samples,).

    Raises ``InputError`` if the job carries none, or something else than numbers.
    """
    text = attributes.get(FEATURE)
    expected = "a workload of the generator e2e_sample"
    if not text:
        raise InputError("the job carries no samples", field=FEATURE, expected=expected)
    try:
        return np.array([float(value) for value in text.split(",")])
    except ValueError as error:
        raise InputError("not numbers", field=FEATURE, value=text, expected=expected) from error


@register("predictor", "sampled")
class Sampled(Predictor):
    """Predicts the samples that jobs carry (generator ``e2e_sample``); without any, the limit.

    Source: 3Sigma, figure 4.11 (E2E-SAMPLE-n).
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
