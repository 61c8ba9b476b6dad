"""How much of what was not known of tasks' use is common to all tasks of a job."""

from __future__ import annotations

from typing import Final

_FEWEST_JOBS: Final = 10


class CommonVariance:
    """Learns from jobs that ended how the use of two tasks of one job is correlated.

    What a task uses differs from what was expected by something that all tasks of its job have in
    common and by something of its own. The variances of both, as shares of what was expected, are
    estimated from means and scatters within jobs, as in the analysis of variance with one random
    factor (R. A. Fisher, Statistical Methods for Research Workers, 1925, section 40); every job
    counts alike, however many tasks it has.
    """

    def __init__(self) -> None:
        self._jobs = 0
        self._common = 0.0
        self._own = 0.0

    def learn(self, expected: float, mean: float, deviation: float, tasks: int) -> None:
        """A job has ended.

        ``mean`` and ``deviation`` are of what at least two tasks have used, ``expected`` (above 0)
        is what one was expected to.
        """
        own = (deviation / expected) ** 2 * tasks / (tasks - 1)
        self._jobs += 1
        self._own += own
        self._common += (mean / expected - 1.0) ** 2 - own / tasks

    @property
    def correlation(self) -> float:
        """Share of the variance that is common, from 0 to 1; 0 as long as few jobs have ended."""
        common = max(self._common, 0.0)
        if self._jobs < _FEWEST_JOBS or common <= 0.0:
            return 0.0
        return common / (common + self._own)
