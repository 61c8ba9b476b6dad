"""The best choice that is found in time: greedy, prices, whole jobs, search, small programs.

Every step stops by a count, at a gap or when the work of a cycle is spent
(``foresail.schedulers._planning.problem``), so that the same question gets the same answer on every
machine. Only where the clock ends what has become a disaster, the answer depends on it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import numpy as np

from foresail.milp.solver import Limits, ProgramBuilder, Solver, find_solver, relative_gap
from foresail.model.distribution import Booleans, Floats, Integers
from foresail.schedulers._planning.pricing import (
    Prices,
    WholeJobs,
    choice_of,
    prices,
    prices_by,
    program_of,
    values_of,
    whole_jobs,
)
from foresail.schedulers._planning.problem import (
    Budget,
    PlanChoice,
    Problem,
    best_of_groups,
    checks_within,
    fitting,
    greedy,
    improved,
    in_order_of_arrival,
    left_by,
    of_looking,
    of_pricing,
    of_program,
    of_searching,
    priced,
    value_of,
)
from foresail.schedulers.kernels.plan_filling import NOT_PLANNED
from foresail.schedulers.kernels.plan_search import GROUP, SLOT, TRIED, Options, search

_TRIES: Final = (1, 3)
"""Kinds of searches in turn: of how many options the one is taken for which least room is made."""
_MOST_SEARCHES: Final = 24
_MORE_IN_VAIN: Final = 6
"""Number of searches in a row that may fail besides one of each kind, if all is at stake."""
_CHANGES: Final = 2000
_CHANGES_FOR_A_JOB: Final = 200
_USUAL_CHANGES: Final = 8000
"""Length of a search if little is at stake: so many changes, more for each job, at most these."""
_LONGER: Final = 3
_MOST_CHANGES: Final = 16_000
"""Factor by which a search is longer if all is at stake, and its greatest length."""
_ROUNDING: Final = 1e-6


def searched(
    problem: Problem, choice: PlanChoice, enough: float, budget: Budget, stake: float
) -> PlanChoice:
    """The best of several searches from a plan, which is never worth less than it.

    They are as long as the problem is large and as much is at stake; some are left out when half of
    the budget is spent, or when several in a row, of each kind at least one, have found nothing
    better.

    They end at a value that is ``enough``. The more is at ``stake``, from 0 to 1, the longer they
    are, and the more may fail.
    """
    begin = best_value = value_of(problem, choice)
    best = choice
    fruitless, patience = 0, len(_TRIES) + int(_MORE_IN_VAIN * stake)
    half = 0.5 * budget.left
    usual = min(_CHANGES + _CHANGES_FOR_A_JOB * problem.jobs, _USUAL_CHANGES)
    changes = min(int(usual * (1.0 + _LONGER * stake)), _MOST_CHANGES)
    for seed in range(_MOST_SEARCHES):
        if best_value >= enough or fruitless == patience or budget.left <= half:
            break
        tries = _TRIES[seed % len(_TRIES)]
        limits = (begin, enough, changes, changes // 2, tries)
        found, tried = search_plan(problem, choice, limits, seed)
        budget.spend(of_searching(problem, tried))
        value = value_of(problem, found)
        if value > best_value and left_by(problem, found).min(initial=np.inf) >= -_ROUNDING:
            best, best_value, fruitless = found, value, 0
        else:
            fruitless += 1
    return best


def search_plan(
    problem: Problem, choice: PlanChoice, limits: tuple[float, ...], seed: int
) -> tuple[PlanChoice, int]:
    """Change a plan again and again: the best that was met, and how many changes were tried.

    ``limits`` are as the kernel has them; the seed says which changes are tried.
    """
    jobs, victims = choice.group.size, choice.stopped.size
    options = Options(
        np.stack((problem.first_group[:-1], problem.first_group[1:]), axis=1),
        np.stack((problem.consumption, problem.worth), axis=1),
        problem.rows[problem.group_set],
        problem.victim_cost,
        problem.victim_credit,
    )
    plans = np.full((3, jobs + victims, 2), NOT_PLANNED, np.int64)
    plans[:, :jobs, GROUP], plans[:, :jobs, SLOT] = choice.group, choice.slot
    plans[:, jobs:, GROUP] = choice.stopped
    lefts = np.stack((left_by(problem, choice),) * 3)
    most = np.zeros(jobs)
    np.maximum.at(most, problem.group_job, problem.worth.max(axis=1))
    state, asked = np.array([seed], np.uint64), np.array(limits)
    order, least = np.empty(jobs, np.int64), np.empty(problem.slots)
    search(options, plans, lefts, asked, order, least, most, state)
    group, slot = plans[2, :jobs].T.copy()
    stopped = plans[2, jobs:, GROUP].astype(np.bool_)
    return PlanChoice(group, slot, stopped), int(asked[TRIED])


_LEAST_SECONDS: Final = 1e-3
_NOTHING_LEFT: Final = 1e-4
_NEARLY_AS_GOOD: Final = 1.1
"""Prices handed on are good enough if the gap is hardly wider than when they were new."""
_FAR: Final = 0.5
"""Gap beyond which prices are always made anew."""
_LEVELS: Final = (0.5, 0.999)
_PROGRAMS: Final = (0.1, 0.3, 1.0)
"""Sizes of programs, as shares of the largest."""
_OF_WHOLE_JOBS: Final = 0.5
"""Programs of the jobs worth most alone get so much of the work that is left."""
_GREAT: Final = 10.0
"""Worth of a job, as a multiple of the least that counts, from which on they are solved."""
_FORGOTTEN: Final = 0.95
"""Share that is left from cycle to cycle of what programs have failed to find."""
_WIDE: Final = 20.0
"""Multiple of a good enough gap from which programs may take all the work that is left; they
may, too, if a whole job of those worth most may be missing.
"""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SolveRecord:
    """Quality of a choice, and what it cost to find."""

    value: float
    bound: float
    greedy_value: float
    """Worth of the choice, what no choice exceeds, and what greedy's was worth."""
    columns: int = 0
    rows: int = 0
    """Size of the last program; 0 if none was needed."""
    solver_failure: str = ""
    """Message of the solver if it failed; empty if it did not. The plan is then made without it."""

    @property
    def gap(self) -> float:
        """By what share of its value the best choice may be better."""
        return relative_gap(self.value, self.bound)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SolvedChoice(SolveRecord):
    """A choice, and how good it is known to be."""

    choice: PlanChoice
    """Never worth less than greedy's."""
    prices: Floats | None = None
    """Price of a cpu in every row and slot; None if it was not asked."""
    priced_gap: float = 0.0
    """Distance of the plan from the bound in the cycle in which the prices were new."""
    in_vain: float = 0.0
    """Value that programs looked for and missed in this cycle and, ever less, in those before."""


@dataclass(frozen=True, slots=True, eq=False)
class Hint:
    """Beginning of a search: a plan, and prices of rows in slots, shape (rows, slots), if known.

    ``gap`` is how near the plan was to the bound when the prices were new; 0 if there are none.
    """

    choice: PlanChoice
    prices: Floats | None
    gap: float


@dataclass(frozen=True, slots=True)
class Effort:
    """Limits of how hard to try."""

    solver_name: str
    """A registered solver; one that cannot add columns is given a program without prices."""
    seconds: float
    """Amount of work to spend."""
    relative_gap: float
    least_value: float
    """Share of its value within which a choice is good enough; of ``least_value`` where it is worth
    less, so that no work is spent on jobs that are worth next to nothing."""
    most_options: int = 3000
    """A program has no more options than these; of more, those of the jobs worth most."""


def solve_problem(
    asked: Problem,
    effort: Effort,
    hint: Callable[[Problem], Hint] | None = None,
    in_vain: float = 0.0,
) -> SolvedChoice:
    """The best choice that is found.

    ``hint`` says where to begin besides greedy, if that is asked for; ``in_vain`` is that of the
    cycle before.
    """
    return _Attempt(asked, effort, hint, in_vain).solved()


class _Attempt:
    """One answer in the making: the best choice so far, and the least bound."""

    def __init__(
        self, asked: Problem, effort: Effort, hint: Callable[[Problem], Hint] | None, in_vain: float
    ) -> None:
        self._solver = _ready_solver(effort.solver_name)
        self._budget = Budget(effort.seconds)
        self._effort = effort
        self._hint = hint
        self._in_vain = _FORGOTTEN * in_vain
        self._problem = fitting(asked)
        self._budget.spend(of_looking(asked))
        self._best = greedy(self._problem)
        self._value = self._greedy_value = value_of(self._problem, self._best)
        self._plans = [self._best]
        self._bound = _all_best(self._problem)
        self._prices: Prices | None = None
        self._priced_gap: float | None = None
        self._columns = self._rows = 0
        self._failure = ""
        self._spare(self._problem.victim_cost, self._bound)

    def solved(self) -> SolvedChoice:
        """The answer, step by step, until it is good enough."""
        target = self._effort.relative_gap
        for step, enough in (
            (self._by_prices, min(target, _NOTHING_LEFT)),
            (self._by_whole_jobs, target),
            (self._by_search, target),
            (self._by_program, target),
        ):
            if not self._is_within(enough) and not self._budget.is_spent:
                step()
        gap = relative_gap(self._value, self._bound)
        return SolvedChoice(
            choice=in_order_of_arrival(self._problem, self._best),
            value=self._value,
            bound=max(self._bound, self._value),
            greedy_value=self._greedy_value,
            columns=self._columns,
            rows=self._rows,
            prices=None if self._prices is None else self._prices.of_rows,
            priced_gap=gap if self._priced_gap is None else self._priced_gap,
            in_vain=self._in_vain,
            solver_failure=self._failure,
        )

    def _is_within(self, gap: float) -> bool:
        """Return whether the plan is as near to the bound as this share of its value."""
        return self._bound - self._value <= gap * max(abs(self._value), self._effort.least_value)

    def _spare(self, cost: Floats, bound: float) -> None:
        """Stop no job that costs as much as is missing to a bound: no better plan stops it.

        Without what stopping it would give back, fewer options fit, and the bound is nearer.
        """
        possible = (cost < bound - self._value) | self._best.stopped
        credit = self._problem.victim_credit
        if (possible | ~credit.any(axis=(1, 2))).all():
            return
        credit = np.where(possible[:, np.newaxis, np.newaxis], credit, 0.0)
        self._problem = fitting(replace(self._problem, victim_credit=credit))
        self._lower(_all_best(self._problem))

    def _lower(self, bound: float) -> None:
        """Know that no choice is worth more than a bound."""
        whole = whole_jobs(self._problem)
        attainable = bound if whole is None else whole.attainable(bound)
        self._bound = min(self._bound, max(attainable, self._value))

    def _offer(self, choice: PlanChoice) -> None:
        value = value_of(self._problem, choice)
        self._plans.append(choice)
        if value > self._value + _NOTHING_LEFT * 1e-5 * abs(self._value):
            self._best, self._value = choice, value

    def _price(self, found: Prices) -> None:
        """Take over a bound, and plan by the prices."""
        self._prices = found
        self._lower(found.bound)
        for stopped in {tuple((found.stopped > level).tolist()) for level in _LEVELS}:
            self._offer(priced(self._problem, found.reduced, np.array(stopped, np.bool_)))
        given = (self._problem.victim_credit * found.of_rows).sum(axis=(1, 2))
        self._spare(self._problem.victim_cost - given, found.bound)

    def _by_prices(self) -> None:
        if self._hint is not None:
            hint = self._hint(self._problem)
            self._offer(hint.choice)
            if hint.prices is not None:
                stopped = hint.choice.stopped.astype(np.float64)
                self._budget.spend(of_pricing(self._problem))
                self._price(prices_by(self._problem, hint.prices, stopped))
                self._priced_gap = hint.gap if hint.gap <= _FAR else 0.0
        enough = max(0.5 * self._effort.relative_gap, _NEARLY_AS_GOOD * (self._priced_gap or 0.0))
        if relative_gap(self._value, self._bound) <= enough:
            return
        gap = 0.1 * self._effort.relative_gap
        try:
            found = prices(self._problem, self._solver, self._plans, gap, self._budget)
        except RuntimeError as error:
            self._fail(error)
        else:
            if found is not None:
                self._price(found)
                self._priced_gap = None

    def _by_whole_jobs(self) -> None:
        """Programs of the jobs worth most alone, for plans that have one of them more.

        Of their options, those that could be in the best plans, as many as a program may have. What
        was not found before does not count: a whole job is worth the work in any cycle.
        """
        whole = whole_jobs(self._problem)
        if whole is None or whole.most <= _GREAT * self._effort.least_value:
            return
        later = self._budget.set_aside(1.0 - _OF_WHOLE_JOBS)
        before = -np.inf
        while before < self._value and whole.one_more(self._value) < self._bound:
            before = self._value
            if self._budget.is_spent or not self._by_program_with_one_more(whole):
                break
        self._budget.spend(-later)

    def _by_program_with_one_more(self, whole: WholeJobs) -> bool:
        score, most = self._score(), self._effort.most_options
        least = whole.one_more(self._value)
        dearest = least - self._priced_bound
        of_whole = score[whole.jobs[self._problem.group_job]].ravel()
        if np.count_nonzero(of_whole > dearest) > most:
            dearest = float(np.partition(of_whole, -most - 1)[-most - 1])
            least = self._priced_bound + dearest
        if not (of_whole > dearest).any():
            return False
        return self._by_program_of(whole.jobs, score > dearest, least, whole.others)

    def _score(self) -> Floats:
        """Excess of each option's worth over its cost by the prices; -inf if worth nothing."""
        score = self._problem.worth if self._prices is None else self._prices.reduced
        return np.where(self._problem.worth > 0.0, score, -np.inf)

    def _by_search(self) -> None:
        stake = self._share_at_stake()
        self._offer(searched(self._problem, self._best, self._bound, self._budget, stake))

    def _by_program(self) -> None:
        before, at_stake = self._value, self._bound - self._value
        self._budget.keep(self._share_at_stake())
        self._by_ever_larger_programs()
        if self._value > before:
            self._in_vain = 0.0
        elif self._columns:
            self._in_vain = 2.0 * self._in_vain + at_stake

    def _share_at_stake(self) -> float:
        """Return what share of the work that is left is worth it.

        The less is missing to the bound, the less is at stake, and the less the more programs have
        not found lately.
        """
        missing = self._bound - self._value
        wide = _WIDE * max(self._effort.relative_gap, _NOTHING_LEFT) * self._value
        worth_all = min(wide, float(self._problem.worth.max(initial=0.0)))
        share = min(missing / worth_all, 1.0) if worth_all > 0.0 else 1.0
        return share * missing / (missing + self._in_vain)

    def _by_ever_larger_programs(self) -> None:
        """Solve programs of ever more of the jobs worth most; of all at once if they are few."""
        most = self._effort.most_options
        few = np.count_nonzero(self._problem.worth) <= most
        for share in _PROGRAMS[-1:] if few else _PROGRAMS:
            score = self._score()
            possible = score > self._value - self._priced_bound
            jobs, others = _worthiest(self._problem, possible, int(share * most))
            if not jobs.any() or not self._by_program_of(jobs, possible, self._value, others):
                return
            good = self._is_within(self._effort.relative_gap)
            if good or jobs.all() or self._budget.is_spent:
                return

    def _by_program_of(
        self, jobs: Booleans, possible: Booleans, least: float, others: float
    ) -> bool:
        """The program of some jobs; others are given what is left. False if it was not solved.

        No plan worth more than ``least`` has other options than those that are ``possible``. So no
        plan is, or none is worth more than the program's best and all that the ``others`` could be.
        """
        problem = self._problem
        plan = replace(self._best, group=np.where(jobs, self._best.group, NOT_PLANNED))
        groups, slots = _options(problem, jobs, possible, plan)
        program = program_of(problem, groups, slots)
        entries = program.size.entries
        checks = checks_within(self._budget.left, entries)
        if not checks:
            return False
        self._columns, self._rows = program.size.columns, program.size.rows
        start = values_of(problem, groups, slots, plan)
        limits = Limits(
            max(self._budget.guard_seconds, _LEAST_SECONDS),
            0.5 * self._effort.relative_gap,
            most_checks=checks,
        )
        try:
            answer = self._solver.solve(program, limits, start)
        except RuntimeError as error:
            self._fail(error)
            return False
        self._budget.spend(of_program(entries, answer.checks))
        if answer.values is not None:
            self._offer(improved(problem, choice_of(problem, groups, slots, answer.values)))
        self._lower(max(answer.bound + others, least))
        return True

    @property
    def _priced_bound(self) -> float:
        """The bound that the prices prove; infinite without any.

        A plan is worth less than that by what the price of any of its options exceeds its worth.
        """
        return np.inf if self._prices is None else self._prices.bound

    def _fail(self, error: RuntimeError) -> None:
        self._failure = str(error)
        _warn_once(self._effort.solver_name, self._failure)


def _all_best(problem: Problem) -> float:
    """Return what all jobs would be worth with the best option of each: no choice is worth more."""
    worth = best_of_groups(problem, problem.worth.max(axis=1, initial=0.0))
    return float(np.maximum(worth, 0.0).sum())


@cache
def _warn_once(solver_name: str, failure: str) -> None:
    warnings.warn(
        f"solver {solver_name} failed ({failure}); plans are made without it",
        RuntimeWarning,
        stacklevel=2,
    )


@cache
def _ready_solver(name: str) -> Solver:
    """A solver that has solved something: what it has to import first takes no cycle's time."""
    solver = find_solver(name)
    builder = ProgramBuilder()
    builder.add_columns(0.0, 1.0, True, 1.0)
    solver.solve(builder.build(), Limits())
    return solver


def _worthiest(problem: Problem, possible: Booleans, most: int) -> tuple[Booleans, float]:
    """The jobs worth most that have together so many possible options at most.

    With them, what all others could be worth at best.
    """
    options = np.bincount(problem.group_job, possible.sum(axis=1), problem.jobs)
    worth = best_of_groups(problem, np.where(possible, problem.worth, 0.0).max(axis=1, initial=0.0))
    worth = np.maximum(worth, 0.0)
    order = np.argsort(-worth, kind="stable")
    chosen = np.zeros(problem.jobs, np.bool_)
    chosen[order[np.cumsum(options[order]) <= most]] = True
    return chosen, float(worth[~chosen].sum())


def _options(
    problem: Problem, jobs: Booleans, possible: Booleans, plan: PlanChoice
) -> tuple[Integers, Integers]:
    """The plan's options of some jobs, and all of theirs that are possible."""
    groups, slots = np.nonzero(possible & jobs[problem.group_job, np.newaxis])
    planned = plan.planned
    chosen = plan.group[planned] * problem.slots + plan.slot[planned]
    both = np.union1d(groups * problem.slots + slots, chosen)
    return both // problem.slots, both % problem.slots
