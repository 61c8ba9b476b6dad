"""The search: which rules on how many nodes are tried, and what is compared with what."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from foresail.cloud.advising import choosing
from foresail.cloud.advising.question import LIMITED, AdviceQuestion, WaitingRule
from foresail.cloud.advising.trying import RuleResult, rented_altogether, try_all

_HOUR: Final = 3600.0
_STEPS: Final = 8
_FINER: Final = 7
_RIVALS: Final = 2
_CHANGE: Final = 0.2
_AROUND: Final = (0.0, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5)
"""Nodes that are tried where demand changes, relative to those advised."""

Progress = Callable[[str, int, int], None]
"""Hears what is being done, how much of it is done, and of how much."""


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """One way to run the log, against which others are held."""

    name: str
    """``advised``, ``today`` or ``on demand``."""
    tried: RuleResult
    expected: choosing.ExpectedMonth
    certainty: choosing.PointCertainty
    """Certainty of cost and waits."""
    foreseen_worth: float
    """Monthly worth in the mean of the futures, demand growing, waiting counted."""
    worse_than_advised: float
    """Share of the futures in which the advice is better, waiting counted; NaN for the advice."""


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Advice if an assumption is wrong."""

    change: str
    """Changed assumption, in words."""
    nodes: int
    rule: WaitingRule
    """Rule that would be advised then."""
    cost: float
    mean_wait_seconds: float
    """Mean wait under that rule."""
    kept_cost: float
    kept_wait_seconds: float
    """Mean wait under the advice as it stands."""


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """A choice made on the first half of a log, and its cost in the second."""

    chosen: RuleResult
    """Choice that the first half alone would have led to."""
    blocks: int
    later_blocks: int
    """Number of blocks that it was chosen on, and lived in."""
    lived: choosing.ExpectedMonth
    """Outcome in the second half."""
    advised: choosing.ExpectedMonth
    best: choosing.ExpectedMonth
    """Outcomes there of the advice, and of the best that was tried."""


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """The search for advice: tries rules, and compares them."""

    weights: choosing.CostWeights
    question: AdviceQuestion
    futures: choosing.LogFutures
    """Prices, what is asked, and what may come."""
    progress: Progress | None
    """Hears how far it is."""
    runtimes_known: bool = False
    """True if the runtimes are the truth, which is not known live: rules that go by them are tried,
    but never chosen."""

    def found(self, owned: int | None) -> list[RuleResult]:
        """The coarse ladders of all rules, those of some that know more, and finer ones."""
        coarse = self._coarse_nodes(owned)
        found = self._tried([(n, rule) for rule in self.question.rules() for n in coarse], "rules")
        better = [(n, rule) for rule in self._better_informed(found) for n in coarse]
        found += self._tried(better, "rules that learn")
        finer: list[tuple[int, WaitingRule]] = []
        for each in self._best_rules(found):
            finer += [(nodes, each.rule) for nodes in _between(coarse, each.nodes)]
        return found + self._tried(finer, "nodes")

    def candidates(self, found: Sequence[RuleResult]) -> list[RuleResult]:
        """Results that may be advised: none that only an oracle could reach."""
        if not self.runtimes_known:
            return list(found)
        return [each for each in found if not each.rule.goes_by_runtimes]

    def held_out(self, advised: RuleResult, found: Sequence[RuleResult]) -> HeldOut | None:
        """Choose on the first half of the blocks, and measure on the second; None without two."""
        blocks = self.futures.draws.shape[1]
        half = blocks // 2
        if not half:
            return None
        first, second = slice(half), slice(half, blocks)
        candidates = self.candidates(found)
        weights = self.weights.within(first)
        halves = [each.within(first) for each in candidates]
        futures = choosing.futures_of(weights.demand, self.question)
        chosen = choosing.recommend(halves, weights, self.question, futures)
        after = self.weights.within(second)
        later = [each.within(second) for each in candidates if each.is_lasting]
        same = candidates[next(i for i, each in enumerate(halves) if each is chosen)]
        return HeldOut(
            chosen=same,
            blocks=half,
            later_blocks=blocks - half,
            lived=after.expected(same.within(second)),
            advised=after.expected(advised.within(second)),
            best=after.expected(choosing.choose(later, after, self.question)),
        )

    def compared(
        self, advised: RuleResult, owned: int | None, found: Sequence[RuleResult]
    ) -> list[Compared]:
        """The advice, today and all on demand."""
        named = [("advised", advised)]
        if owned is not None:
            rule = WaitingRule("all-jobs-wait", queue=self.question.queue)
            named.append(("today", next(t for t in found if (t.nodes, t.rule) == (owned, rule))))
        named.append(("on demand", rented_altogether(self.weights.demand)))
        own = choosing.worths(advised, self.weights, self.futures)
        return [
            Compared(
                name,
                tried,
                self.weights.expected(tried),
                choosing.certainty(tried, self.weights, self.futures),
                choosing.foreseen_worth(tried, [*found, tried], self.weights, self.futures),
                math.nan
                if name == "advised"
                else float((choosing.worths(tried, self.weights, self.futures) > own).mean()),
            )
            for name, tried in named
        ]

    def sensitivities(self, advised: RuleResult, found: Sequence[RuleResult]) -> list[Sensitivity]:
        """Prices of waiting and of renting from what was tried; demand tried anew."""
        less, more = 1.0 - _CHANGE, 1.0 + _CHANGE
        return [
            self._changed("waiting is worth half as much", advised, found, wait_factor=0.5),
            self._changed("waiting is worth twice as much", advised, found, wait_factor=2.0),
            self._changed("on-demand prices fall by 20 %", advised, found, rent_factor=less),
            self._changed("on-demand prices rise by 20 %", advised, found, rent_factor=more),
            self._grown("demand falls by 20 %", advised, less),
            self._grown("demand rises by 20 %", advised, more),
        ]

    def _tried(self, pairs: Iterable[tuple[int, WaitingRule]], what: str) -> list[RuleResult]:
        progress = None
        if self.progress is not None:
            hears = self.progress

            def progress(done: int, of: int) -> None:
                hears(what, done, of)

        market, demand = self.weights.market, self.weights.demand
        return list(try_all(demand, market, pairs, self.question.workers, progress))

    def _coarse_nodes(self, owned: int | None) -> list[int]:
        """Numbers of nodes from what is committed to what could pay at all."""
        market, demand = self.weights.market, self.weights.demand
        busy = market.fixed(1).kept_busy(demand.jobs) / _HOUR
        relative = market.node_price_per_hour * busy / float(demand.rent.sum())
        most = busy / demand.hours / max(relative, 0.1)
        peak = market.use_over_time(demand.jobs, demand.hours)["highest"].to_numpy().max()
        most = min(most, float(peak) / market.node_size) * max(self.question.growth, 1.0)
        most = max(most, 1.0)
        low = market.committed
        steps = {low + round((math.ceil(most)) * step / _STEPS) for step in range(_STEPS + 1)}
        return sorted(steps | ({owned} if owned is not None else set()))

    def _better_informed(self, found: Sequence[RuleResult]) -> list[WaitingRule]:
        """Rules with a limit, at the best thresholds of each kind, that know more."""
        better: list[WaitingRule] = []
        transient = self.weights.demand.transient is not None
        for name in LIMITED:
            kind = [t for t in found if t.rule.name == name and t.is_lasting]
            if kind:
                best = self._best(kind).rule
                better += best.better_informed(transient=transient)
        return better

    def _best_rules(self, found: Sequence[RuleResult]) -> list[RuleResult]:
        """The best point of each of the best rules; of those that come to the same, the first."""
        left = self.candidates(found)
        best: list[RuleResult] = []
        seen: set[tuple[int, float]] = set()
        while left and len(best) < _RIVALS:
            each = self._best(left)
            comes_to = each.nodes, self.weights.expected(each).worth
            if comes_to not in seen:
                best.append(each)
            seen.add(comes_to)
            left = [t for t in left if t.rule != each.rule]
        return best

    def _best(self, tried: Sequence[RuleResult]) -> RuleResult:
        """The point around which others are tried: at a stated risk, the best on the log itself."""
        weighed = self.futures if self.question.risk is None else None
        return choosing.choose(tried, self.weights, self.question, weighed)

    def _recommended(
        self, found: Sequence[RuleResult], weights: choosing.CostWeights
    ) -> RuleResult:
        candidates = self.candidates(found)
        return choosing.recommend(candidates, weights, self.question, self.futures)

    def _changed(
        self,
        change: str,
        advised: RuleResult,
        found: Sequence[RuleResult],
        *,
        wait_factor: float = 1.0,
        rent_factor: float = 1.0,
    ) -> Sensitivity:
        price = self.weights.wait_price_per_hour * wait_factor
        weights = replace(self.weights, wait_price_per_hour=price, rent_factor=rent_factor)
        return _said(change, self._recommended(found, weights), advised, weights)

    def _grown(self, change: str, advised: RuleResult, factor: float) -> Sensitivity:
        """The advised rule on demand times a factor, on a ladder around as many nodes as before."""
        demand = self.weights.demand.faster(factor)
        weights = replace(self.weights, demand=demand)
        low = self.weights.market.committed
        around = {low + round(max(advised.nodes - low, 1) * share) for share in _AROUND}
        pairs = [(nodes, advised.rule) for nodes in sorted(around | {advised.nodes})]
        market = self.weights.market
        found = list(try_all(demand, market, pairs, self.question.workers))
        kept = next(each for each in found if each.nodes == advised.nodes)
        return _said(change, self._recommended(found, weights), kept, weights)


def _between(coarse: Sequence[int], nodes: int) -> list[int]:
    """Numbers of nodes between the neighbours of one on the coarse ladder."""
    below = max((n for n in coarse if n < nodes), default=nodes)
    above = min((n for n in coarse if n > nodes), default=nodes)
    steps = np.linspace(below, above, min(above - below + 1, _FINER + 2)).round().astype(int)
    return [int(n) for n in dict.fromkeys(steps.tolist()) if n not in coarse]


def _said(
    change: str, then: RuleResult, kept: RuleResult, weights: choosing.CostWeights
) -> Sensitivity:
    new, old = weights.expected(then), weights.expected(kept)
    return Sensitivity(
        change=change,
        nodes=then.nodes,
        rule=then.rule,
        cost=new.cost,
        mean_wait_seconds=new.mean_wait_seconds,
        kept_cost=old.cost,
        kept_wait_seconds=old.mean_wait_seconds,
    )
