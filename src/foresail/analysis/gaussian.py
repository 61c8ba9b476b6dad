"""Two jobs whose tasks are Gaussian: what history and sampling know of the second (paper 002, 4.1).

The first job's tasks have a known size, the mean ``mu`` of the second's prior. The second's mean
task size is drawn from N(mu, s0 ** 2), its tasks from N(mean, s1 ** 2): s0 is the *job-wise*
deviation, which history cannot see through, s1 the *task-wise* one, which sampling averages out.
"""

from __future__ import annotations

import math
from typing import Final

MISORDERED_BY_HISTORY: Final = 0.5
"""History's estimate of both jobs is ``mu``: their order is a coin toss."""


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
