"""Plans compared by what they are worth in drawn futures, the same ones for all of them.

A program knows no start but a fixed one: a job that is to run after an uncertain end is planned for
when that is certain, and valued so. In a future it starts when it can. 3Sigma's two-job example
(spec 3sigma-distsched G1): the job with the deadline is worth 0.5 to the program if it goes second,
and is in time with probability 0.875.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from foresail.model.arrays import Booleans, Floats, Integers
from foresail.model.distribution import Distribution
from foresail.model.view import ClusterView
from foresail.schedulers._planning.beliefs import RuntimeBeliefs
from foresail.schedulers._planning.cell_map import CellMap
from foresail.schedulers._planning.demands import Demands, running_left
from foresail.schedulers._planning.filling import best_of_groups, densities
from foresail.schedulers._planning.parameters import PlanAheadParameters
from foresail.schedulers._planning.problem import PlanChoice, room_with
from foresail.schedulers._planning.valuing import Fall, least_worth
from foresail.schedulers.kernels.plan_filling import NOT_PLANNED
from foresail.schedulers.kernels.scenarios import add_worth, carry_out

_MOST_JOBS: Final = 200
"""Jobs in a list: those planned, then the most promising others."""
_FIRST: Final = 20
"""Jobs at the head of a list that are moved to see whether it gets better."""
_ROUNDS: Final = 2
_BETTER: Final = 1e-9
_ERRORS: Final = 2.0
"""By how much a plan has to be better, beside rounding: in standard errors of the difference."""


@dataclass(frozen=True, slots=True, eq=False)
class ListedPlan:
    """A plan as a list: jobs in the order in which they are to start, and the group of each."""

    order: Integers
    """Numbers of jobs."""
    group: Integers
    """Per job of the problem; -1 for jobs that are not in the list."""
    stopped: Booleans
    """Running jobs that are stopped."""


class DrawnFutures:
    """Runtimes of all jobs in drawn futures, and what plans are worth there.

    Equal views give equal futures. Each job's runtimes are spread evenly over its belief (a Latin
    hypercube): ``runtimes`` has those where it likes best, in shape (futures, jobs).
    """

    def __init__(
        self,
        view: ClusterView,
        demands: Demands,
        places: CellMap,
        parameters: PlanAheadParameters,
    ) -> None:
        self._demands: Final = demands
        self._slots: Final = (parameters.window_slots, parameters.slot_seconds)
        count = parameters.scenarios
        random = np.random.default_rng([len(view.pending), len(view.running), *_bits(view.now)])
        claims = list(_claims(demands))
        self._claim_job: Final = np.array([job for job, _, _ in claims], np.int64)
        moments = [(fall.full, fall.begin_seconds, fall.end_seconds) for _, fall, _ in claims]
        self._falls: Final = np.array(moments).reshape(-1, 3) - [0.0, view.now, view.now]
        further = [at for at, (_, _, rest) in enumerate(claims) if rest is not None]
        least = [
            least_worth(each, fall, parameters)
            for each, fall in zip(demands.pending, demands.falls, strict=True)
        ]
        self._least: Final = np.array(least)[self._claim_job]
        self._least[further] = 0.0
        self._rest: Final = np.zeros((count, len(claims)))
        beliefs = RuntimeBeliefs([rest for _, _, rest in claims if rest is not None])
        self._rest[:, further] = beliefs.quantiles(_levels(random, len(further), count)).T
        beliefs = RuntimeBeliefs([each.prediction for each in demands.pending])
        self.runtimes: Final = beliefs.quantiles(_levels(random, len(demands.pending), count)).T
        levels = _levels(random, len(view.running), count)
        self._running_ends: Final = running_left(view, places, parameters, levels).T

    def starts(self, plan: ListedPlan) -> Floats:
        """When every job starts, seconds from now; infinity for never; shape (futures, jobs)."""
        demands, problem = self._demands, self._demands.problem
        goes_on = np.ones(demands.held.shape[0], np.bool_)
        goes_on[demands.victim_at[plan.stopped]] = False
        group = np.maximum(plan.group, 0)
        starts = np.empty(self.runtimes.shape)
        carry_out(
            plan.order,
            problem.cover[problem.group_set[group]] * problem.consumption[group, :1],
            self.runtimes * self._slowdown(plan),
            room_with(problem, plan.stopped)[:, 0].copy(),
            demands.held[goes_on],
            np.ascontiguousarray(self._running_ends[:, goes_on]),
            starts,
        )
        return starts

    def worth(self, plan: ListedPlan) -> Floats:
        """What every job is worth in every future; shape (futures, jobs)."""
        ends = self.starts(plan) + self.runtimes * self._slowdown(plan)
        worth = np.zeros(ends.shape)
        add_worth(self._claim_job, self._falls, self._rest, self._least, ends, worth)
        return worth

    def values(self, plan: ListedPlan) -> Floats:
        """What a plan is worth in every future, less what stopping jobs costs; shape (futures,)."""
        cost = self._demands.problem.victim_cost[plan.stopped].sum()
        worth: Floats = self.worth(plan).sum(axis=1) - cost
        return worth

    def choice(self, plan: ListedPlan) -> PlanChoice:
        """The plan by slots: what starts now, and the others in the middle one of their starts."""
        slots, slot_seconds = self._slots
        starts = np.median(self.starts(plan), axis=0)
        slot = np.where(starts > 0.0, np.maximum(np.round(starts / slot_seconds), 1.0), 0.0)
        planned = (plan.group >= 0) & (slot < slots)
        return PlanChoice(
            np.where(planned, plan.group, NOT_PLANNED),
            np.where(planned, slot, NOT_PLANNED).astype(np.int64),
            plan.stopped,
        )

    def _slowdown(self, plan: ListedPlan) -> Floats:
        slowdowns = np.array([space.slowdown for space in self._demands.spaces])
        return np.where(plan.group >= 0, slowdowns[np.maximum(plan.group, 0)], 1.0)


def best_in_futures(demands: Demands, futures: DrawnFutures, choice: PlanChoice) -> ListedPlan:
    """The plan worth most in the mean: the program's, others in simple orders, and neighbours.

    Parameters
    ----------
    demands, futures
        The question, and the futures to compare in.
    choice
        The program's answer: nothing worth less in these futures is returned.
    """
    best = listed(demands, choice)
    values = futures.values(best)
    for plan in _in_simple_orders(demands, best):
        found = futures.values(plan)
        if _is_better(found, values):
            best, values = plan, found
    for _ in range(_ROUNDS):
        before = best
        for plan in _neighbours(demands, before):
            found = futures.values(plan)
            if _is_better(found, values):
                best, values = plan, found
        if best is before:
            break
    return best


def _is_better(values: Floats, than: Floats) -> bool:
    """Whether a plan is worth more by more than chance would have it, future by future."""
    more = values - than
    least = _BETTER * abs(float(than.mean())) + _ERRORS * float(more.std()) / more.size**0.5
    return bool(more.mean() > least)


def listed(demands: Demands, choice: PlanChoice) -> ListedPlan:
    """A plan by slots as a list; what is not planned follows, the most worth per cpu first."""
    problem = demands.problem
    planned = choice.planned
    worth = problem.worth[choice.group[planned], choice.slot[planned]]
    first = planned[np.lexsort((-worth, choice.slot[planned]))]
    group = choice.group.copy()
    likes = _liked(demands)
    others = np.argsort(-densities(problem), kind="stable")
    others = others[(choice.group[others] < 0) & (likes[others] >= 0)]
    others = others[: max(_MOST_JOBS - first.size, 0)]
    group[others] = likes[others]
    return ListedPlan(np.concatenate((first, others)), group, choice.stopped)


def _liked(demands: Demands) -> Integers:
    """The group in which each job is worth most if it starts now; -1 for none."""
    problem = demands.problem
    liked = np.full(problem.jobs, NOT_PLANNED, np.int64)
    most = problem.worth.max(axis=1, initial=0.0)
    for job in range(problem.jobs):
        first, end = problem.first_group[job], problem.first_group[job + 1]
        if end > first and most[first:end].max() > 0.0:
            liked[job] = first + int(np.argmax(most[first:end]))
    return liked


def _in_simple_orders(demands: Demands, plan: ListedPlan) -> Iterator[ListedPlan]:
    """The same jobs by worth per cpu, by worth, by deadline and by arrival."""
    problem = demands.problem
    worth = best_of_groups(problem, problem.worth.max(axis=1, initial=0.0))
    begins = np.array([fall.begin_seconds for fall in demands.falls])
    full = np.array([fall.full for fall in demands.falls])
    arrivals = np.arange(problem.jobs)
    for keys in ((-densities(problem),), (-worth,), (begins, -full), (arrivals, -full)):
        order = plan.order[np.lexsort([key[plan.order] for key in keys])]
        yield replace(plan, order=order)


def _neighbours(demands: Demands, plan: ListedPlan) -> Iterator[ListedPlan]:
    """Each of the first jobs to the front, one place back, and in its other sets of places."""
    problem, order = demands.problem, plan.order
    for at in range(min(order.size, _FIRST)):
        job = order[at]
        if at:
            yield replace(plan, order=np.concatenate(([job], np.delete(order, at))))
        if at + 1 < order.size:
            swapped = order.copy()
            swapped[[at, at + 1]] = order[[at + 1, at]]
            yield replace(plan, order=swapped)
        for group in range(problem.first_group[job], problem.first_group[job + 1]):
            if group != plan.group[job]:
                elsewhere = plan.group.copy()
                elsewhere[job] = group
                yield replace(plan, group=elsewhere)


def _claims(demands: Demands) -> Iterator[tuple[int, Fall, Distribution | None]]:
    """What gains by which job's end: the job itself, and deadlines further on."""
    for job, fall in enumerate(demands.falls):
        yield job, fall, None
        for claim in demands.claims[job]:
            yield job, claim.fall, claim.rest


def _levels(random: np.random.Generator, jobs: int, count: int) -> Floats:
    """Levels that fall evenly over 0 to 1 for each job, in random order; shape (jobs, count)."""
    even = np.tile(np.arange(count, dtype=np.float64), (jobs, 1))
    return (random.permuted(even, axis=1) + random.random((jobs, count))) / count


def _bits(number: float) -> tuple[int, int]:
    """A number as two that a generator may be seeded with."""
    low, high = np.array([number]).view(np.uint32)
    return int(low), int(high)
