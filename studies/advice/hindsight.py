"""What advice from the first half of a log costs in the second, against the best in hindsight.

usage: python studies/advice/hindsight.py LOG ...

Logs that are absent are passed over. Every rule and number of nodes that ``foresail cloud advise``
tries on the whole log is a candidate; what is chosen sees the first half of the weeks alone.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from foresail.cloud.advising.advice import Advice, advise
from foresail.cloud.advising.choosing import choose, futures_of, recommend
from foresail.cloud.advising.question import AdviceQuestion, WaitingRule
from foresail.cloud.advising.trying import RuleResult, try_rule
from foresail.cloud.prices_reading import load_prices
from foresail.evaluation.replaying import believed_runtimes
from foresail.model.words import percent
from foresail.traces.filtering import FilterChoice, apply_filters
from foresail.traces.folder import load_workload

PRICES, BELIEVED_BY = "ec2-2017", "recent"
RISK = 0.2
OF_THE_MEAN = 1.2
"""Nodes by the rule of thumb, relative to what mean demand fills."""
THUMB = WaitingRule("ajw-t", 4 * 3600.0)


def advice_on(path: Path) -> Advice:
    """The advice on a log as a whole, for its candidates."""
    workload = apply_filters(load_workload(path), [FilterChoice("replayable")])
    believed = believed_runtimes(workload, BELIEVED_BY)
    question = AdviceQuestion(workers=2)
    return advise(workload, load_prices(PRICES), question, believed, BELIEVED_BY)


def by_thumb(advice: Advice, half: int) -> RuleResult:
    """So many nodes as mean demand of the first half fills, and a fifth more."""
    demand, market = advice.weights.demand, advice.market
    early = demand.block < half
    work = float((demand.jobs.runtime_seconds * demand.jobs.cores)[early].sum())
    seconds = float(demand.block_hours[:half].sum()) * 3600.0
    nodes = round(OF_THE_MEAN * work / seconds / market.node.cores)
    return try_rule(demand, market, nodes, THUMB)


def losses(advice: Advice) -> list[float]:
    """By least expected worth, at a stated risk, by thumb: share above the best in hindsight."""
    half = advice.weights.demand.block_hours.size // 2
    first, second = slice(half), slice(half, advice.weights.demand.block_hours.size)
    before, after = advice.weights.within(first), advice.weights.within(second)
    futures = futures_of(before.demand, advice.question)
    halves = [each.within(first) for each in advice.tried]
    chosen = []
    for risk in (None, RISK):
        found = recommend(halves, before, replace(advice.question, risk=risk), futures)
        chosen.append(next(t for t, h in zip(advice.tried, halves, strict=True) if h is found))
    later = [each.within(second) for each in advice.tried if each.is_lasting]
    best = after.expected(choose(later, after, advice.question)).worth
    chosen.append(by_thumb(advice, half))
    return [after.expected(each.within(second)).worth / best - 1.0 for each in chosen]


def main() -> None:
    """A row a log, and the mean."""
    print("| log | least expected worth | risk 0.2 | 1.2 times the mean load |")
    print("|---|--:|--:|--:|")
    rows = []
    for path in map(Path, sys.argv[1:]):
        if not path.exists():
            continue
        rows.append(losses(advice_on(path)))
        print(f"| {path.name.split('.')[0]} | {' | '.join(map(percent, rows[-1]))} |", flush=True)
    if rows:
        means = np.mean(rows, axis=0).tolist()
        print(f"| mean | {' | '.join(map(percent, means))} |")


if __name__ == "__main__":
    main()
