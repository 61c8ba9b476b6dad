"""The best of what was tried, under targets; by expected worth, or at a stated risk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from foresail.cloud.advising.question import AdviceQuestion, Market, WaitingRule
from foresail.cloud.advising.trying import Demand, RuleResult
from foresail.cloud.over_time import block_draws
from foresail.cloud.purchasing.demand import HOURS_PER_MONTH
from foresail.model.distribution import Floats
from foresail.model.errors import InputError

_INTERVAL: Final = (0.05, 0.95)
_SLACK: Final = 1e-9
_LAST_PART: Final = 0.9


@dataclass(frozen=True, slots=True)
class ExpectedMonth:
    """Money and waiting, per month of the log."""

    nodes_cost: float
    rented_cost: float
    """Money for nodes, used or not, and for rented machines."""
    wait_hours: float
    """Hours that all jobs wait, together."""
    mean_wait_seconds: float
    """Over all jobs."""
    worth: float
    """Cost and what waiting is worth: the less the better."""

    @property
    def cost(self) -> float:
        """All that is paid."""
        return self.nodes_cost + self.rented_cost


@dataclass(frozen=True, slots=True, eq=False)
class CostWeights:
    """Prices that turn a simulation into money."""

    market: Market
    demand: Demand
    """Prices of nodes; and the log."""
    wait_price_per_hour: float
    """Price of an hour that one job waits."""
    rent_factor: float = 1.0
    """Cost of rented machines, relative to the market's prices."""

    def within(self, blocks: slice) -> CostWeights:
        """The same for some blocks, of what was tried within them."""
        return replace(self, demand=self.demand.within(blocks))

    def expected(self, tried: RuleResult) -> ExpectedMonth:
        """Per month, over all blocks of the demand."""
        per_month = HOURS_PER_MONTH / self.demand.hours
        nodes = self.market.fixed_per_hour(tried.nodes) * HOURS_PER_MONTH
        rented = float(tried.block_rent.sum()) * self.rent_factor * per_month
        waited = float(tried.block_wait_hours.sum())
        return ExpectedMonth(
            nodes_cost=nodes,
            rented_cost=rented,
            wait_hours=waited * per_month,
            mean_wait_seconds=3600.0 * waited / max(float(self.demand.block_jobs.sum()), 1.0),
            worth=nodes + rented + self.wait_price_per_hour * waited * per_month,
        )


def choose(
    tried: Sequence[RuleResult],
    weights: CostWeights,
    question: AdviceQuestion,
    futures: LogFutures | None = None,
) -> RuleResult:
    """The point of least worth that meets the targets, or the best that can be reached.

    Of targets that cannot be met together, the cost goes first: the least mean wait that it buys;
    where nothing is as cheap, the cheapest. What cannot last is left out.

    The log itself is held against the targets. Worth is the mean over ``futures``; without any,
    that of the log as it is.

    Raises ``InputError`` if nothing lasts.
    """
    worth = None if futures is None else _expected_worth(tried, weights, futures)
    tried = [each for each in tried if each.is_lasting]
    if not tried:
        raise InputError("no tried number of nodes keeps the queue stable", expected="more nodes")
    expected = [weights.expected(each) for each in tried]
    places = range(len(tried))
    affordable = [p for p in places if _affordable(expected[p], question)]
    if not affordable:
        cheapest = min(places, key=lambda p: (expected[p].cost, expected[p].worth))
        return tried[cheapest]
    quick = [p for p in affordable if _quick(expected[p], question)]
    if not quick:
        least = min(affordable, key=lambda p: (expected[p].mean_wait_seconds, expected[p].cost))
        return tried[least]
    if worth is not None:
        return min((tried[p] for p in quick), key=lambda e: worth[e.rule, e.nodes])
    return tried[min(quick, key=lambda p: expected[p].worth)]


def recommend(
    tried: Sequence[RuleResult], weights: CostWeights, question: AdviceQuestion, futures: LogFutures
) -> RuleResult:
    """Return the advice under the targets, as for ``choose``.

    Of least expected worth over the futures; where a risk is stated, as many nodes of the rule
    that is best on the log itself as pay at that risk, if they too meet the targets.
    """
    if question.risk is None:
        return choose(tried, weights, question, futures)
    best = choose(tried, weights, question)
    if not _meets(best, weights, question):
        return best
    safe = within_risk(best, tried, weights, question.risk, futures)
    return safe if _meets(safe, weights, question) else best


@dataclass(frozen=True, slots=True)
class Missed:
    """A target that what is advised does not meet."""

    target: Literal["cost", "wait"]
    """Quantity that misses its target."""
    best: ExpectedMonth
    """The nearest to it that can be reached: the cheapest; or the least mean wait, within the
    budget where anything is."""


def missed(
    advised: RuleResult, tried: Sequence[RuleResult], weights: CostWeights, question: AdviceQuestion
) -> tuple[Missed, ...]:
    """All targets that are not met, the cost first; what cannot last reaches nothing.

    ``tried`` is what could be reached; at least one of it lasts.
    """
    own = weights.expected(advised)
    reachable = [weights.expected(each) for each in tried if each.is_lasting]
    found = []
    if not _affordable(own, question):
        found.append(Missed("cost", min(reachable, key=lambda e: (e.cost, e.worth))))
    if not _quick(own, question):
        within = [each for each in reachable if _affordable(each, question)] or reachable
        found.append(Missed("wait", min(within, key=lambda e: (e.mean_wait_seconds, e.cost))))
    return tuple(found)


def _meets(point: RuleResult, weights: CostWeights, question: AdviceQuestion) -> bool:
    expected = weights.expected(point)
    return _affordable(expected, question) and _quick(expected, question)


def _affordable(expected: ExpectedMonth, question: AdviceQuestion) -> bool:
    most = question.most_cost_per_month
    return most is None or bool(expected.cost <= most * (1.0 + _SLACK))


def _quick(expected: ExpectedMonth, question: AdviceQuestion) -> bool:
    most = question.most_wait_seconds
    return bool(most is None or expected.mean_wait_seconds <= most * (1.0 + _SLACK))


@dataclass(frozen=True, slots=True, eq=False)
class LogFutures:
    """Futures that a log allows: how often each block comes, and by what factor demand grows."""

    draws: Floats
    """Shape (futures, blocks)."""
    growth: Floats
    """Shape (futures,)."""

    @property
    def informative(self) -> bool:
        """True if the log has blocks to put together anew."""
        return bool(self.draws.shape[1] > 1)


def futures_of(demand: Demand, question: AdviceQuestion) -> LogFutures:
    """Draw blocks with replacement, and growth from a log-normal distribution."""
    draws = block_draws(demand.block_hours.size, question.futures, question.seed)
    steps = np.random.default_rng([question.seed, 1]).standard_normal(question.futures)
    return LogFutures(draws, question.growth * np.exp(steps * question.growth_spread))


def ladder(tried: Sequence[RuleResult], rule: WaitingRule) -> list[RuleResult]:
    """Results of a rule by nodes, ascending; each number once."""
    steps = {each.nodes: each for each in tried if each.rule == rule}
    if not steps:
        raise InputError("a rule that was not tried", value=rule.name)
    return [steps[nodes] for nodes in sorted(steps)]


def chances_to_pay(
    steps: Sequence[RuleResult], weights: CostWeights, futures: LogFutures
) -> Floats:
    """Share of futures in which the last tenth of the nodes pays; shape (steps,).

    It pays where it costs no more than the renting and waiting that it saves; compared is the
    nearest step with a tenth fewer, for the worth of a single node is within the noise of a log.
    The lowest step has nothing to compare with, and pays.

    Where demand grows by a factor, so many nodes serve it as fewer, by that factor, serve the
    log's: what they leave to rent and wait for is read between the steps and multiplied.
    """
    worth = _worth(steps, weights, futures)
    nodes = np.array([each.nodes for each in steps])
    low = nodes[0]
    lower = np.searchsorted(nodes, low + _LAST_PART * (nodes - low) + _SLACK, side="right") - 1
    lower = np.minimum(lower, np.maximum(np.arange(nodes.size) - 1, 0))
    return np.asarray(_pays(worth, worth[:, lower]))


def _worth(steps: Sequence[RuleResult], weights: CostWeights, futures: LogFutures) -> Floats:
    """Cost per hour of each step in each future, waiting counted; shape (futures, steps)."""
    nodes = np.array([float(each.nodes) for each in steps])
    fixed = np.array([weights.market.fixed_per_hour(each.nodes) for each in steps])
    rent = np.stack([each.block_rent for each in steps]) * weights.rent_factor
    wait = np.stack([each.block_wait_hours for each in steps]) * weights.wait_price_per_hour
    hours = futures.draws @ weights.demand.block_hours
    left = futures.draws @ (rent + wait).T / hours[:, None]
    rows = [
        fixed + growth * np.interp(nodes / growth, nodes, row)
        for growth, row in zip(futures.growth, left, strict=True)
    ]
    return np.stack(rows)


def _expected_worth(
    tried: Sequence[RuleResult], weights: CostWeights, futures: LogFutures
) -> dict[tuple[WaitingRule, int], float]:
    """Cost per hour of each point, waiting counted, in the mean of all futures."""
    means = {}
    for rule in dict.fromkeys(each.rule for each in tried):
        steps = ladder(tried, rule)
        mean = _worth(steps, weights, futures).mean(axis=0).tolist()
        means.update({(rule, each.nodes): worth for each, worth in zip(steps, mean, strict=True)})
    return means


def _worth_of(
    point: RuleResult, tried: Sequence[RuleResult], weights: CostWeights, futures: LogFutures
) -> Floats:
    """Cost per hour of a point in each future, by the ladder of its rule; shape (futures,)."""
    steps = ladder(tried, point.rule)
    place = [each.nodes for each in steps].index(point.nodes)
    return np.asarray(_worth(steps, weights, futures)[:, place])


def foreseen_worth(
    point: RuleResult, tried: Sequence[RuleResult], weights: CostWeights, futures: LogFutures
) -> float:
    """Cost per month of a point in the mean of all futures, waiting counted."""
    return float(_worth_of(point, tried, weights, futures).mean()) * HOURS_PER_MONTH


def _pays(worth: Floats, otherwise: Floats) -> Floats:
    """Share of futures (first axis) in which one costs no more than the other."""
    return np.asarray((worth <= otherwise + _SLACK * np.abs(otherwise)).mean(axis=0))


def within_risk(
    best: RuleResult,
    tried: Sequence[RuleResult],
    weights: CostWeights,
    risk: float,
    futures: LogFutures,
) -> RuleResult:
    """Choose as many nodes as pay at the stated risk, whatever the targets.

    From the best number on the log itself one goes up, under its rule, while the last tenth of the
    nodes pays, or down until it does, or there are none left. With fewer nodes than the best,
    another rule or still fewer may be better: that is taken, unless the best as a whole pays
    against it. What cannot last is left out.
    """
    steps = ladder(tried, best.rule)
    wanted = 1.0 - risk
    lasting = np.array([each.is_lasting for each in steps])
    pays = (chances_to_pay(steps, weights, futures) >= wanted) & lasting
    place = [each.nodes for each in steps].index(best.nodes)
    fewest = int(np.argmax(lasting))
    if pays[place]:
        while place + 1 < len(steps) and pays[place + 1]:
            place += 1
    else:
        below = np.flatnonzero(pays[fewest + 1 : place + 1]) + fewest + 1
        place = int(below[-1]) if below.size else fewest
    safe = steps[place]
    if safe.nodes >= best.nodes:
        return safe
    fewer = [each for each in tried if each.nodes <= safe.nodes and each.is_lasting]
    instead = min(fewer, key=lambda each: weights.expected(each).worth)
    mine, other = (_worth_of(each, tried, weights, futures) for each in (best, instead))
    return best if _pays(mine, other) >= wanted else instead


@dataclass(frozen=True, slots=True)
class PointCertainty:
    """Intervals of a point in the log's weeks put together anew, demand as it was."""

    cost: tuple[float, float]
    mean_wait_seconds: tuple[float, float]
    """5 % and 95 % quantile, per month."""


def certainty(tried: RuleResult, weights: CostWeights, futures: LogFutures) -> PointCertainty:
    """Intervals of cost and mean wait."""
    jobs = futures.draws @ weights.demand.block_jobs
    wait = 3600.0 * (futures.draws @ tried.block_wait_hours) / np.maximum(jobs, 1.0)
    low, high = np.quantile(costs(tried, weights, futures), _INTERVAL)
    briefest, longest = np.quantile(wait, _INTERVAL)
    return PointCertainty((float(low), float(high)), (float(briefest), float(longest)))


def costs(tried: RuleResult, weights: CostWeights, futures: LogFutures) -> Floats:
    """Cost per month in every future, demand as it was; shape (futures,)."""
    hours = futures.draws @ weights.demand.block_hours
    rented = futures.draws @ tried.block_rent * weights.rent_factor / hours
    return (weights.market.fixed_per_hour(tried.nodes) + rented) * HOURS_PER_MONTH


def worths(tried: RuleResult, weights: CostWeights, futures: LogFutures) -> Floats:
    """The same with what waiting is worth."""
    hours = futures.draws @ weights.demand.block_hours
    waited = futures.draws @ tried.block_wait_hours / hours * HOURS_PER_MONTH
    return costs(tried, weights, futures) + weights.wait_price_per_hour * waited
