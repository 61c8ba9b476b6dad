"""The jobs worth most, taken whole: what that leaves of a bound that takes parts of them.

A linear program that starts a third of a job worth 1,000 tells a bound that no plan comes near,
where all jobs with a deadline are worth the same and the others next to nothing. Plans are worth
a whole number of them then, and the little that is added: what lies between is out of reach.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.model.arrays import Booleans, Floats
from foresail.schedulers._planning.filling import best_of_groups
from foresail.schedulers._planning.problem import Problem

_NEARLY: Final = 0.5
"""A job is one of those worth most if its best start is worth so much of what any is worth."""
_ROUNDING: Final = 1e-6
"""A bound so little short of a whole number of jobs, as a share of one, is not short of it."""
_BELOW: Final = 1e-4
"""A value so far below a whole number of jobs is short of it."""


@dataclass(frozen=True, slots=True, eq=False)
class WholeJobs:
    """The jobs worth most, and what a plan of them is worth besides."""

    jobs: Booleans
    """Which they are; shape (jobs,)."""
    least: float
    most: float
    """What their starts are worth that are worth half as much as any start, or more."""
    others: float
    """What all the other jobs could be worth together, each with its best start."""
    little: float
    """What a plan could be worth besides such starts."""
    costs: float
    """What it costs to stop all running jobs that give anything back."""

    def attainable(self, bound: float) -> float:
        """What no plan exceeds if none exceeds a bound."""
        return min(bound, self._count(bound) * self.most + self.little)

    def one_more(self, value: float) -> float:
        """What a plan that has one of them more than a plan of a value could be worth at least.

        Half a job more where they are worth so different amounts that counting says nothing.
        """
        whole = (self._count(value) + 1.0 - _BELOW) * self.least - self.costs
        return max(whole, value + _NEARLY * self.most)

    def _count(self, value: float) -> float:
        """How many such starts a plan has at most, whatever it pays for stopping jobs."""
        return float(np.floor((value + self.costs) / self.least + _ROUNDING))


def whole_jobs(problem: Problem) -> WholeJobs | None:
    """Those of a problem; None if no start is worth anything."""
    most = float(problem.worth.max(initial=0.0))
    if most <= 0.0:
        return None
    great = problem.worth >= _NEARLY * most
    best = _best(problem, problem.worth)
    jobs = best >= _NEARLY * most
    giving = problem.victim_credit.any(axis=(1, 2))
    return WholeJobs(
        jobs,
        float(problem.worth[great].min()),
        most,
        float(best[~jobs].sum()),
        float(_best(problem, np.where(great, 0.0, problem.worth)).sum()),
        float(problem.victim_cost[giving].sum()),
    )


def _best(problem: Problem, worth: Floats) -> Floats:
    """What each job is worth with its best start, nothing at least; shape (jobs,)."""
    return np.maximum(best_of_groups(problem, worth.max(axis=1, initial=0.0)), 0.0)
