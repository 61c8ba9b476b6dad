"""The advice: nodes, which jobs wait, the cost, how sure that is, what would change it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from foresail.cloud.advising import choosing
from foresail.cloud.advising.question import AdviceQuestion, Market, countable, market_of
from foresail.cloud.advising.searching import Compared, HeldOut, Progress, Search, Sensitivity
from foresail.cloud.advising.trying import Demand, RuleResult, demand_of, fitted_waits, try_rule
from foresail.cloud.prices import PriceCatalogue
from foresail.cloud.purchasing.demand import expected_costs, transient_cost
from foresail.cloud.purchasing.forecast import ForecastSettings
from foresail.cloud.purchasing.mix import MixReport, MixRequest, mix
from foresail.cloud.purchasing.offline import OfflineSettings
from foresail.cloud.purchasing.terms import PurchaseTerms, TransientTerms
from foresail.cloud.waiting.jobs import TraceJobs, usual_hour_value
from foresail.cloud.waiting.kernels.waiting_choice import FEATURE_NAMES
from foresail.model.distribution import Floats
from foresail.model.errors import InputError
from foresail.traces.workload import Workload

TRUTH: Final = "the truth"
"""The believer of what cannot be known."""
_HOUR: Final = 3600.0
_MORE_LIKELY_THAN_NOT: Final = 0.5
_PLAIN: Final = "microsoft"
"""Sells what the rules of waiting know of: on demand, reserved, transient."""


@dataclass(frozen=True, eq=False)
class Advice:
    """All that is advised, and what it rests on."""

    question: AdviceQuestion
    market: Market
    weights: choosing.CostWeights
    """Question that was asked, at which prices."""
    futures: choosing.LogFutures

    source: str
    jobs: int
    left_out: int
    hours: float
    """The log: its name, jobs that count, those without a runtime or size, its length."""
    believed_by: str
    """Source of the runtimes that the rules went by."""
    transient: TransientTerms | None
    """Terms on which machines may be rented that are taken back; None: they are not."""
    transient_work: float
    """Share of the log's work that would be on them if all were rented."""
    tried: Sequence[RuleResult]
    """All that was simulated."""
    best_nodes: int
    """Nodes of least worth on the log as it is, whatever the risk."""
    chance_to_pay: float
    """Share of futures in which the last tenth of the advised nodes pays; NaN without one."""
    within_risk: RuleResult | None
    """Best rule on the log, with as many nodes as pay at the stated risk if there were no targets;
    None where no risk is stated."""
    missed: tuple[choosing.Missed, ...]
    """The targets that the advice does not meet."""
    compared: Sequence[Compared]
    """The advice first, then today (if known), then all on demand."""
    foreseen: choosing.ExpectedMonth
    """Result of the advised rule if it knew the truth: the cost of not knowing."""
    sensitivities: Sequence[Sensitivity]
    """Changes of the advice under other assumptions."""
    held_out: HeldOut | None
    """Outcome of choosing on the first half of the log and living with it in the second; None for a
    log that is too short to be halved."""
    wait_model: Mapping[str, float] | None
    """Model by which the advised rule expects waits, if it does: seconds to begin with, and for
    each feature of the state of nodes and queue."""
    use_over_time: pl.DataFrame
    """Mean and highest cores (or gpus) in use by slot, were there always room."""
    unwaited: MixReport
    """Purchase, were no job to wait: the optimum in hindsight, and the plan at the stated risk (or
    of what pays more likely than not); in amounts of cores, memory and gpus, not in nodes."""

    @property
    def advised(self) -> Compared:
        """The advice itself."""
        return self.compared[0]

    @property
    def on_demand(self) -> Compared:
        """All jobs rented at once."""
        return self.compared[-1]

    @property
    def today(self) -> Compared | None:
        """Nodes owned now, every job waiting; None where it is not said."""
        return self.compared[1] if len(self.compared) > 2 else None


def advise(
    workload: Workload,
    catalogue: PriceCatalogue,
    question: AdviceQuestion,
    believed_seconds: Floats | None = None,
    believed_by: str = "",
    transient: TransientTerms | None = None,
    progress: Progress | None = None,
) -> Advice:
    """Advise how many nodes to own, which jobs wait for them, and what the rest runs on.

    Every rule of ``AdviceQuestion.rules`` is simulated on a coarse ladder of nodes; the best of
    each kind again with learned waits, and with trials on transient machines if there are some; the
    two best rules on finer ladders. Advised is what comes to least in the mean of the futures, or
    as many nodes of the best rule as pay at the stated risk.

    Raises ``InputError`` if no job of the log can be counted, it lasts for more than a century, the
    prices do not suffice, there are more nodes today than can be simulated, or transient machines
    are to be chosen by the truth; ``UnknownNameError`` if there is no such node.

    Parameters
    ----------
    workload
        The jobs; wait for whom they did in the log does not matter.
    catalogue
        Prices of one region.
    question
        What is asked.
    believed_seconds
        Runtimes as they were believed at submission, by row of the jobs table; None: the truth, and
        no rule is advised that goes by it.
    believed_by
        Who believed that, in words.
    transient
        Terms of machines that may be taken back, if jobs may be rented them; a job that is revoked
        starts again on demand.
    progress
        Hears what is being done, and how much of it is done.
    """
    if transient is not None and believed_seconds is None:
        raise InputError(
            "what runs on transient machines is chosen by runtimes, which are not known",
            field="runtimes",
            value=TRUTH,
            expected="runtimes as they are believed on submission",
        )
    counted = countable(workload)
    jobs = TraceJobs.of_workload(counted.workload)
    believed = jobs.runtime_seconds
    if believed_seconds is not None:
        believed = np.ascontiguousarray(believed_seconds[counted.kept])
    market = market_of(
        catalogue,
        jobs,
        max(_span(jobs), 1.0),
        question.node,
        question.term_years,
        question.node_price_per_hour,
    )
    relative, on_transient = _relative_rent(jobs, believed, transient)
    demand = demand_of(jobs, market, believed, relative, transient)
    price = question.wait_price_per_hour
    weights = choosing.CostWeights(
        market, demand, usual_hour_value(jobs, market.family) if price is None else price
    )
    owned = _owned(question, workload, market)
    futures = choosing.futures_of(demand, question)
    search = Search(weights, question, futures, progress, believed_seconds is None)
    found = search.found(owned)
    candidates = search.candidates(found)
    best = choosing.choose(candidates, weights, question)
    advised = choosing.recommend(candidates, weights, question, futures)
    compared = search.compared(advised, owned, found)
    if progress is not None:
        progress("what would change it", 0, 1)
    return Advice(
        question=question,
        market=market,
        weights=weights,
        futures=futures,
        source=workload.meta.source,
        jobs=len(jobs),
        left_out=len(workload) - len(jobs),
        hours=demand.hours,
        believed_by=believed_by or TRUTH,
        transient=transient,
        transient_work=on_transient,
        tried=found,
        best_nodes=best.nodes,
        chance_to_pay=_chance(advised, found, weights, futures),
        within_risk=None
        if question.risk is None
        else choosing.within_risk(best, candidates, weights, question.risk, futures),
        missed=choosing.missed(advised, candidates, weights, question),
        compared=compared,
        foreseen=weights.expected(
            try_rule(demand, market, advised.nodes, advised.rule, foreseen=True)
        ),
        sensitivities=search.sensitivities(advised, found),
        held_out=search.held_out(advised, found),
        wait_model=_wait_model(demand, market, advised),
        use_over_time=market.use_over_time(jobs, demand.hours, advised.nodes),
        unwaited=_unwaited(counted.workload, catalogue, question, transient),
    )


def _unwaited(
    workload: Workload,
    catalogue: PriceCatalogue,
    question: AdviceQuestion,
    transient: TransientTerms | None,
) -> MixReport:
    """The purchasing mix of jobs that never wait; a log shorter than the term is repeated."""
    return mix(
        workload,
        catalogue,
        MixRequest(
            provider=_PLAIN,
            transient=transient is not None,
            transient_terms=transient,
            settings=OfflineSettings(extension="repeat"),
            forecast=ForecastSettings(
                risk=_MORE_LIKELY_THAN_NOT if question.risk is None else question.risk,
                growth=question.growth,
                growth_spread=question.growth_spread,
                seed=question.seed,
            ),
        ),
    )


def _span(jobs: TraceJobs) -> float:
    """From the first submission to the last; to the last end where that is less than a day."""
    if jobs.span_seconds >= 86_400.0:
        return jobs.span_seconds
    return float((jobs.submit_seconds + jobs.runtime_seconds).max() - jobs.submit_seconds[0])


def _owned(question: AdviceQuestion, workload: Workload, market: Market) -> int | None:
    if question.owned is not None:
        return _simulable(question.owned, market, "owned", question.owned)
    if market.committed:
        return _simulable(market.committed, market, "commitments", market.committed)
    processors = workload.meta.processors
    if processors is None:
        return None
    nodes = max(1, round(processors / market.node.cores))
    return _simulable(nodes, market, "processors", processors, workload.meta.source)


def _simulable(
    nodes: int, market: Market, field: str, value: int, source: str | None = None
) -> int:
    """So many nodes, unless they are too many; then the error names what stated them."""
    try:
        market.fixed(nodes)
    except InputError as error:
        raise InputError(
            error.problem, source=source, field=field, value=value, expected=error.expected
        ) from error
    return nodes


def _relative_rent(
    jobs: TraceJobs, believed: Floats, transient: TransientTerms | None
) -> tuple[Floats | None, float]:
    """Expected cost of each rented job relative to on demand; and the share of work on transient.

    What is rented goes by beliefs, what it costs by the truth.
    """
    if transient is None:
        return None, 0.0
    terms = PurchaseTerms(reserved=(), transient=transient)
    hours = jobs.runtime_seconds / _HOUR
    # Of what nothing is believed stays on demand.
    known = np.isfinite(believed)
    expected = np.where(known, believed, 0.0) / _HOUR
    chosen = known & expected_costs(expected[:, None], terms)[1]
    cost = transient_cost(hours, transient)
    relative = np.ones(hours.size)
    np.divide(cost, hours, out=relative, where=chosen & (hours > 0.0))
    work = jobs.runtime_seconds * jobs.cores
    return relative, float(work[chosen].sum() / max(float(work.sum()), 1e-300))


def _wait_model(demand: Demand, market: Market, advised: RuleResult) -> dict[str, float] | None:
    """Return the model of waits that the advised rule learned."""
    if advised.rule.waits == "unknown":
        return None
    learned = fitted_waits(demand, market, advised.nodes, advised.rule)
    if learned is None:
        return None
    weights = dict(zip(FEATURE_NAMES, learned.weights.tolist(), strict=True))
    return {"seconds": float(learned.base[0]), **weights}


def _chance(
    advised: RuleResult,
    found: Sequence[RuleResult],
    weights: choosing.CostWeights,
    futures: choosing.LogFutures,
) -> float:
    steps = choosing.ladder(found, advised.rule)
    place = [each.nodes for each in steps].index(advised.nodes)
    return float(choosing.chances_to_pay(steps, weights, futures)[place]) if place else math.nan
