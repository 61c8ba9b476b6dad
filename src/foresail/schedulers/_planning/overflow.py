"""Plans whose capacity is kept with a stated probability, instead of in expectation.

What jobs ask for in a slot is a sum of independent jobs that still run or have ended. The program
stays linear: every job is charged its *effective* consumption, somewhere between the expected and
the most it may hold, by how uncertain it is; a margin is left for the rest (Hui 1988, Kelly 1996:
effective bandwidths). What the solver chooses is then checked exactly, and jobs that would exceed
the risk are moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Final

import numpy as np

from foresail.model.arrays import Booleans, Floats, Integers
from foresail.schedulers._planning.demands import Demands
from foresail.schedulers._planning.problem import (
    PlanChoice,
    Problem,
    best_of_groups,
    densities,
    value_of,
)
from foresail.schedulers._planning.solving import SolvedChoice
from foresail.schedulers.kernels.plan_filling import add_running, fill_within_risk

_MOST_UNITS: Final = 1024
"""Rows of more are counted in larger units."""
_STEEPEST: Final = 50.0
"""The most that a charge is bent towards all that a job may hold, for each cpu."""


def charged(demands: Demands, risk: float) -> Problem:
    """The program in which jobs are charged for their uncertainty, and a margin is left.

    For a bend b, a job that holds k with probability p is charged log(1 + p (exp(b k) - 1)) / b;
    what normally distributed sums need beyond that for the risk is left free. The bend is the one
    that suits the whole cluster. Now, everything is certain: charges are what jobs hold, and
    nothing is left free.
    """
    problem = demands.problem
    deviations = NormalDist().inv_cdf(1.0 - risk)
    spread = _spread_per_cpu(problem)
    of_running = _variance(demands)
    typical = of_running + spread * np.maximum(problem.capacity, 0.0)
    of_cpus = problem.capacity.shape[0] // max(len(demands.resources), 1)
    totals = problem.capacity[:of_cpus, 0] + demands.held[:, :of_cpus].sum(axis=0)
    widest = int(np.argmax(totals))
    usual = float(np.sqrt(np.median(typical[widest, 1:]))) if problem.slots > 1 else 0.0
    bend = min(deviations / usual, _STEEPEST) if usual > 0.0 else _STEEPEST
    if bend <= 0.0:
        return problem
    free_for_others = 0.5 * bend * spread * np.maximum(problem.capacity, 0.0)
    margin = np.maximum(deviations * np.sqrt(typical) - free_for_others, 0.0)
    margin = np.minimum(margin, np.maximum(problem.capacity, 0.0))
    margin[:, 0] = 0.0
    held = problem.consumption[:, :1]
    return replace(
        problem,
        consumption=_effective(held, _share(problem.consumption, held), bend),
        capacity=problem.capacity - margin,
        victim_credit=_credit(demands, bend),
    )


def within_risk(demands: Demands, solved: SolvedChoice, risk: float) -> SolvedChoice:
    """The plan with jobs moved, or left out, that would exceed the risk, and others filled in.

    Its probability to overdraw a set of places in a slot, with running jobs, is at most the risk.
    It is worth no less than greedy's under the same risk. The bound stays that of the program.
    """
    problem, plan = demands.problem, solved.choice
    planned = plan.planned[np.argsort(plan.slot[plan.planned], kind="stable")]
    kept = np.zeros_like(problem.worth)
    kept[plan.group[planned], plan.slot[planned]] = 1.0
    by_density = np.argsort(-densities(problem), kind="stable")
    best = best_of_groups(problem, problem.worth.max(axis=1, initial=0.0))
    by_worth = np.argsort(-best, kind="stable")
    none = np.zeros_like(plan.stopped)
    plans = [
        _filled(demands, plan.stopped, [(planned, kept), (by_density, problem.worth)], risk),
        _filled(demands, none, [(by_density, problem.worth)], risk),
        _filled(demands, none, [(by_worth, problem.worth)], risk),
    ]
    choice = max(plans, key=lambda each: value_of(problem, each))
    value = value_of(problem, choice)
    return replace(solved, choice=choice, value=value, bound=max(solved.bound, value))


def _filled(
    demands: Demands, stopped: Booleans, rounds: Sequence[tuple[Integers, Floats]], risk: float
) -> PlanChoice:
    """A plan from jobs in some order with the scores of their options, round by round."""
    problem = demands.problem
    asked = AskedRows.by_running(demands, stopped)
    choice = replace(PlanChoice.nothing(problem), stopped=stopped)
    for order, score in rounds:
        asked.fill(problem, order[choice.group[order] < 0], score, risk, choice)
    return choice


@dataclass(frozen=True, slots=True, eq=False)
class AskedRows:
    """Probabilities of what rows are asked for in every slot."""

    cumulative: Floats
    """Probability to be asked for at most so many units; shape (rows, slots, units)."""
    most: Integers
    units: Floats
    """How many units a row has, and how much of its resource one is; shapes (rows,)."""

    @classmethod
    def by_running(cls, demands: Demands, stopped: Booleans) -> AskedRows:
        """By the running jobs, without those that are stopped."""
        problem = demands.problem
        total = problem.capacity[:, 0] + demands.held.T @ demands.running_on[:, 0]
        units = np.maximum(1.0, total / _MOST_UNITS)
        most = np.floor(np.maximum(total, 0.0) / units + 1e-6).astype(np.int64)
        cumulative = np.ones((total.size, problem.slots, int(most.max(initial=0)) + 1))
        goes_on = np.ones(demands.held.shape[0], np.bool_)
        goes_on[demands.victim_at[stopped]] = False
        add_running(demands.held[goes_on], demands.running_on[goes_on], most, units, cumulative)
        return cls(cumulative, most, units)

    def fill(
        self, problem: Problem, order: Integers, score: Floats, risk: float, choice: PlanChoice
    ) -> None:
        """Give jobs their best option within the risk; changes the choice, and what is asked."""
        held = np.ascontiguousarray(problem.consumption[:, 0])
        fill_within_risk(
            order,
            problem.first_group,
            problem.group_set,
            held,
            _share(problem.consumption, held[:, np.newaxis]),
            score,
            problem.cover,
            self.most,
            self.units,
            risk,
            self.cumulative,
            choice.group,
            choice.slot,
        )


def _share(part: Floats, whole: Floats) -> Floats:
    """Part of whole, 0 where there is nothing."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0.0)


def _effective(held: Floats, chance: Floats, bend: float) -> Floats:
    """Charge of jobs that hold so much with a chance, bent from the expected to the most."""
    with np.errstate(divide="ignore"):
        exponent = np.logaddexp(np.log(1.0 - chance), np.log(chance) + bend * held)
    return np.maximum(exponent, 0.0) / bend


def _spread_per_cpu(problem: Problem) -> float:
    """Variance of what waiting jobs hold, for every cpu that they are expected to hold."""
    held = problem.consumption[:, :1]
    chance = _share(problem.consumption, held)
    expected = float(problem.consumption.sum())
    return float((held**2 * chance * (1.0 - chance)).sum()) / expected if expected else 0.0


def _variance(demands: Demands) -> Floats:
    """Variance of what running jobs hold; shape (rows, slots)."""
    chance = demands.running_on
    variance: Floats = (demands.held**2).T @ (chance * (1.0 - chance))
    return variance


def _credit(demands: Demands, bend: float) -> Floats:
    """Return what stopping a running job gives back of expected and of uncertain consumption."""
    held = demands.held[demands.victim_at][:, :, np.newaxis]
    chance = demands.running_on[demands.victim_at][:, np.newaxis, :]
    return _effective(held, np.broadcast_to(chance, (*held.shape[:2], chance.shape[2])), bend)
