"""When the last of a job's tasks ends, and what it holds up: the longest of many is long.

Tasks of a job are taken to be log-normal about its mean. As many of them as the job gets slots
start last, together; those before them follow one another on these slots, with little chance in
their sum. Spec slearn, section 3.6 names tasks' maxima for deadlines; the rules are ours.
"""

from __future__ import annotations

import math
from typing import Final

from foresail.distributions.kernels.log_normal import upper_tail
from foresail.kernels.compile import bare_kernel

_STEPS: Final = 256
_REACH: Final = 8.0
_DENSITY: Final = 1.0 / math.sqrt(2.0 * math.pi)


@bare_kernel
def expected_longest(mean: float, relative_variance: float, tasks: float) -> float:
    """Expected seconds of the longest of so many tasks.

    The integral of x over the density of a maximum, n f(x) F(x)^(n - 1), in equal steps of the
    normal variable.

    Parameters
    ----------
    mean
        Seconds of a task.
    relative_variance
        Squared coefficient of variation of tasks within the job.
    tasks
        One at least.
    """
    if tasks <= 1.0 or relative_variance <= 0.0:
        return mean
    sigma = math.sqrt(math.log1p(relative_variance))
    step = (2.0 * _REACH + sigma) / _STEPS
    total = 0.0
    for i in range(_STEPS + 1):
        z = i * step - _REACH
        total += math.exp(sigma * z - z * z / 2.0) * (1.0 - upper_tail(z)) ** (tasks - 1.0)
    return mean * math.exp(-sigma * sigma / 2.0) * _DENSITY * step * tasks * total


@bare_kernel
def tail_seconds(mean: float, relative_variance: float, tasks: float, slots: float) -> float:
    """Slot-seconds beyond those of its tasks that a job spans until the last of them has ended.

    As many tasks as it gets slots start last, together, and are over with the longest of them.

    Parameters
    ----------
    mean, relative_variance
        See ``expected_longest``.
    tasks
        That have not ended.
    slots
        How many of them run at once, if nothing else does.
    """
    together = min(tasks, slots)
    return together * (expected_longest(mean, relative_variance, together) - mean)


@bare_kernel
def in_time(
    mean: float, relative_variance: float, tasks: float, slots: float, seconds: float
) -> float:
    """Probability that so many tasks have ended on so many slots within so many seconds.

    The other parameters are those of ``tail_seconds``.
    """
    together = min(tasks, slots)
    left = seconds - mean * (tasks - together) / slots
    if left <= 0.0 or mean <= 0.0:
        return 1.0 if left >= 0.0 and mean <= 0.0 else 0.0
    if relative_variance <= 0.0:
        return 1.0 if left >= mean else 0.0
    variance = math.log1p(relative_variance)
    z = (math.log(left / mean) + variance / 2.0) / math.sqrt(variance)
    return float((1.0 - upper_tail(z)) ** together)
