"""Two jobs whose tasks are Gaussian: what history and sampling know of the second (paper 002, 4.1).

The first job's tasks have a known size, the mean ``mu`` of the second's prior. The second's mean
task size is drawn from N(mu, s0 ** 2), its tasks from N(mean, s1 ** 2): s0 is the *job-wise*
deviation, which history cannot see through, s1 the *task-wise* one, which sampling averages out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from foresail.model.errors import InputError

MISORDERED_BY_HISTORY: Final = 0.5
"""History's estimate of both jobs is ``mu``: their order is a coin toss."""


@dataclass(frozen=True, slots=True)
class Posterior:
    """Belief about the second job's mean task size after sampling: mean, and error variance."""

    mean: float
    variance: float


def posterior(
    samples: ArrayLike, prior_mean: float, job_deviation: float, task_deviation: float
) -> Posterior:
    """Belief after some tasks ran; an infinite job-wise deviation means no prior (SLearn's case).

    Parameters
    ----------
    samples
        Sizes of the sampled tasks, shape (m,), m at least 1.
    prior_mean
        ``mu``, in the unit of the samples.
    job_deviation, task_deviation
        ``s0`` and ``s1``, both above 0.

    Raises
    ------
    InputError
        If there are no samples or a deviation is not above 0.
    """
    sizes = np.asarray(samples, dtype=np.float64)
    if not sizes.size:
        raise InputError("no samples", field="samples", expected="at least one")
    for name, value in (("job_deviation", job_deviation), ("task_deviation", task_deviation)):
        if not value > 0.0:
            raise InputError("not a deviation", field=name, value=value, expected="above 0")
    task_precision = sizes.size / task_deviation**2
    prior_precision = 1.0 / job_deviation**2
    precision = task_precision + prior_precision
    mean = (float(sizes.mean()) * task_precision + prior_mean * prior_precision) / precision
    return Posterior(mean, 1.0 / precision)


def samples_to_win(job_deviation: float, task_deviation: float) -> float:
    """Sampling errs less than history with more samples than this: s1 ** 2 / s0 ** 2."""
    return math.inf if job_deviation == 0.0 else (task_deviation / job_deviation) ** 2


def misordered_by_sampling(job_deviation: float, task_deviation: float, samples: int) -> float:
    """Probability that the mean of so many samples lies on the wrong side of the first job's size.

    The true mean and the error of the samples' mean are independent Gaussians, so that the angle
    between them is uniform: arccos(s0 / sqrt(s0 ** 2 + s1 ** 2 / m)) / pi. It is 0 where the jobs
    do not differ at all.
    """
    return math.atan2(task_deviation / math.sqrt(samples), job_deviation) / math.pi
