"""The advice: what rules come to, what is chosen under targets, and how many nodes are safe."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import date

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.cloud.advising.advice import advise
from foresail.cloud.advising.choosing import (
    CostWeights,
    certainty,
    chances_to_pay,
    choose,
    futures_of,
    ladder,
    missed,
    recommend,
    within_risk,
)
from foresail.cloud.advising.question import AdviceQuestion, WaitingRule, market_of
from foresail.cloud.advising.trying import demand_of, fitted_waits, rented_altogether, try_rule
from foresail.cloud.prices import Commitment
from foresail.cloud.prices_reading import load_prices
from foresail.cloud.purchasing.terms import ExponentialRevocation, TransientTerms
from foresail.cloud.waiting.jobs import TraceJobs
from foresail.cloud.waiting.simulating import Beliefs, first_predicted, simulate
from foresail.model.errors import InputError, UnknownNameError
from foresail.reports.renting.advice_words import rests_on
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from foresail_studies.waiting.formulas import Load, expected
from foresail_studies.waiting.metrics import measured

WEEK = 7 * 86_400.0
THESIS = load_prices("thesis")
RULES = [
    WaitingRule("all-jobs-wait"),
    WaitingRule("no-jobs-wait", waiting_seconds=0.0),
    WaitingRule("all-jobs-wait-threshold", 3600.0),
    WaitingRule("compound", 3600.0, 600.0),
    WaitingRule("speculative", 3600.0, 600.0),
]


def made_jobs(count=600, seed=1, span=6 * WEEK, widest=4, mean_runtime=20_000.0) -> TraceJobs:
    """Poisson arrivals over some weeks, exponential runtimes."""
    random = np.random.default_rng(seed)
    submit = np.sort(random.uniform(0.0, span, count))
    submit[0], submit[-1] = 0.0, span
    return TraceJobs(
        submit,
        random.exponential(mean_runtime, count),
        random.integers(1, widest + 1, count).astype(np.int64),
    )


def made_workload(jobs: TraceJobs, processors: int | None = 10) -> Workload:
    table = jobs_table(
        {
            "job_id": [str(n) for n in range(len(jobs))],
            "submit_seconds": jobs.submit_seconds,
            "runtime_seconds": jobs.runtime_seconds,
            "tasks": np.ones(len(jobs), np.int64),
            "cpus_per_task": jobs.cores.astype(np.float64),
        }
    )
    return Workload(table, WorkloadMeta("made", "made", processors))


def made_weights(jobs: TraceJobs, wait_price=0.1, node="standard-4", believed=None) -> CostWeights:
    market = market_of(THESIS, jobs, 10.0, node)
    told = jobs.runtime_seconds if believed is None else believed
    return CostWeights(market, demand_of(jobs, market, told), wait_price)


def tried_ladder(weights, rule, nodes=range(16)):
    return [try_rule(weights.demand, weights.market, n, rule) for n in nodes]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_sums_are_those_of_the_simulator(rule):
    """Rent, waiting and shares by block add up to the metrics of the simulation."""
    jobs = made_jobs()
    believed = jobs.runtime_seconds * np.random.default_rng(0).uniform(0.2, 3.0, len(jobs))
    weights = made_weights(jobs, believed=believed)
    tried = try_rule(weights.demand, weights.market, 3, rule)
    fixed = weights.market.fixed(3)
    simulated = simulate(jobs, fixed, weights.market.family, rule.policy, Beliefs(believed))
    metrics = measured(simulated, fixed, rule.policy)
    assert tried.block_rent.sum() == pytest.approx(metrics.rented_cost + metrics.trial_cost)
    told = weights.expected(tried)
    assert told.mean_wait_seconds == pytest.approx(metrics.mean_wait_seconds)
    assert tried.waiting_jobs == pytest.approx(metrics.waiting_jobs)
    assert tried.rented_jobs == pytest.approx(metrics.rented_jobs)
    assert weights.demand.block_rent.sum() == pytest.approx(metrics.on_demand_cost)
    per_month = 730.0 * 3600.0 / metrics.period_seconds
    assert told.cost == pytest.approx(metrics.total_cost * per_month)


def test_price_is_nodes_and_what_is_rented():
    """The identity of the spec: P = d s / a + share of work on demand (one-core jobs)."""
    jobs = made_jobs(widest=1)
    weights = made_weights(jobs, node="standard-1")
    offered = jobs.core_seconds / (weights.demand.hours * 3600.0)
    dear = weights.expected(rented_altogether(weights.demand)).cost
    for nodes in (0, 2, 5):
        tried = try_rule(weights.demand, weights.market, nodes, WaitingRule("no-jobs-wait", 0.0))
        price = weights.expected(tried).cost / dear
        assert price == pytest.approx(0.4 * nodes / offered + tried.rented_work, rel=1e-9)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_use_over_time_is_that_of_an_obvious_count(seed):
    """Mean cores of each hour, and below a node's: the overlap of every job with it."""
    jobs = made_jobs(40, seed, span=30 * 3600.0, mean_runtime=4000.0)
    table = market_of(THESIS, jobs, 1.0, "standard-4").use_over_time(jobs, 30.0, nodes=1)
    assert table["hour"].to_list() == [float(hour) for hour in range(30)]
    for hour in range(30):
        low, high = hour * 3600.0, (hour + 1) * 3600.0
        end = jobs.submit_seconds + jobs.runtime_seconds
        overlap = np.minimum(end, high) - np.maximum(jobs.submit_seconds, low)
        there = float(np.maximum(overlap, 0.0) @ jobs.cores) / 3600.0
        assert table["mean"][hour] == pytest.approx(there, abs=1e-6)
        assert table["below_level"][hour] == pytest.approx(min(there, 4.0), abs=1e-6)


def test_long_logs_are_told_in_days():
    """A log of many hours has at most 400 slots; the highest hour is kept."""
    jobs = made_jobs()
    market = market_of(THESIS, jobs, 1.0, "standard-4")
    days, hours = market.use_over_time(jobs, 6 * 168.0), market.use_over_time(jobs, 399.0)
    assert days["hour"][1] - days["hour"][0] == 3.0
    assert days["highest"].max() >= hours["highest"].max()
    assert (days["highest"] >= days["mean"]).all()


def test_targets_choose_the_best_that_meets_them():
    """The least worth, within the mean wait and within the cost."""
    weights = made_weights(made_jobs())
    tried = [each for rule in RULES for each in tried_ladder(weights, rule)]
    lasting = [each for each in tried if each.is_lasting]
    free = choose(tried, weights, AdviceQuestion())
    worth = min(weights.expected(each).worth for each in lasting)
    assert weights.expected(free).worth == worth
    quick = choose(tried, weights, AdviceQuestion(most_wait_seconds=60.0))
    assert weights.expected(quick).mean_wait_seconds <= 60.0
    most = weights.expected(free).cost * 0.99
    cheap = choose(tried, weights, AdviceQuestion(most_cost_per_month=most))
    assert weights.expected(cheap).cost <= most


def test_targets_that_cannot_be_met_give_the_best_reachable():
    """The cheapest where nothing is cheap enough; the quickest of the affordable otherwise."""
    weights = made_weights(made_jobs())
    tried = [each for rule in RULES for each in tried_ladder(weights, rule)]
    lasting = [each for each in tried if each.is_lasting]
    poor = choose(tried, weights, AdviceQuestion(most_cost_per_month=1.0, most_wait_seconds=9e9))
    least = min(weights.expected(each).cost for each in lasting)
    assert weights.expected(poor).cost == least
    budget = least * 1.05
    hurried = choose(
        tried, weights, AdviceQuestion(most_cost_per_month=budget, most_wait_seconds=0.0)
    )
    affordable = [e for e in map(weights.expected, lasting) if e.cost <= budget]
    quickest = min(each.mean_wait_seconds for each in affordable)
    assert weights.expected(hurried).mean_wait_seconds == quickest


def test_every_missed_target_has_its_best():
    """The cheapest of all; the quickest within the budget, or of all where nothing is within it."""
    weights = made_weights(made_jobs())
    tried = [each for rule in RULES for each in tried_ladder(weights, rule)]
    reachable = [weights.expected(each) for each in tried if each.is_lasting]
    least = min(each.cost for each in reachable)

    def best(budget: float, wait: float) -> dict:
        question = AdviceQuestion(most_cost_per_month=budget, most_wait_seconds=wait)
        advised = choose(tried, weights, question)
        return {each.target: each.best for each in missed(advised, tried, weights, question)}

    both = best(1.0, 0.0)
    assert list(both) == ["cost", "wait"]
    assert both["cost"].cost == least
    assert both["wait"].mean_wait_seconds == 0.0
    affordable = [each for each in reachable if each.cost <= 1.05 * least]
    (within,) = best(1.05 * least, 0.0).items()
    assert within[0] == "wait"
    assert within[1].mean_wait_seconds == min(each.mean_wait_seconds for each in affordable)
    assert best(9e9, 9e9) == {}


def test_targets_may_force_more_nodes_than_the_risk_allows():
    """If all wait, a short wait takes nodes that do not pay; the risk alone has fewer."""
    weights = made_weights(made_jobs(), node="standard-1")
    steps = tried_ladder(weights, WaitingRule("all-jobs-wait"), range(1, 40))
    question = AdviceQuestion(most_wait_seconds=10.0)
    futures = futures_of(weights.demand, question)
    best = choose(steps, weights, question)
    safe = within_risk(best, steps, weights, 0.2, futures)
    assert recommend(steps, weights, replace(question, risk=0.2), futures) is best
    assert safe.nodes < best.nodes
    assert weights.expected(safe).mean_wait_seconds > 10.0


def test_a_queue_that_only_grows_is_not_chosen():
    """Too few nodes with everybody waiting leave work for after the log, which nobody pays."""
    weights = made_weights(made_jobs(), wait_price=0.0)
    tried = tried_ladder(weights, WaitingRule("all-jobs-wait"), range(1, 9))
    assert not tried[0].is_lasting
    assert choose(tried, weights, AdviceQuestion()).is_lasting
    with pytest.raises(InputError, match="keeps the queue stable"):
        choose(tried[:1], weights, AdviceQuestion())


def test_few_nodes_that_cannot_last_are_not_advised():
    """If waiting costs nothing, the fewest nodes that can do the work are enough, and no fewer."""
    jobs = made_jobs()
    for growth in (1.0, 3.0):
        question = AdviceQuestion(node="standard-1", wait_price_per_hour=0.0, growth=growth)
        found = asked(jobs, question)
        assert found.advised.tried.is_lasting
        assert found.held_out.chosen.is_lasting


def test_growth_is_provided_for():
    """Where demand will surely have grown threefold, some three times as many nodes pay."""
    jobs = made_jobs()
    few, many = (
        asked(jobs, AdviceQuestion(node="standard-1", growth=growth, growth_spread=0.0))
        for growth in (1.0, 3.0)
    )
    assert many.advised.tried.nodes > 2 * few.advised.tried.nodes


def test_more_risk_is_never_fewer_nodes():
    """The number of nodes that pays rises with the risk that one takes."""
    weights = made_weights(made_jobs(), node="standard-1")
    rule = WaitingRule("compound", 3600.0, 600.0)
    tried = tried_ladder(weights, rule, range(30))
    best = choose(tried, weights, AdviceQuestion())
    nodes = []
    for risk in (0.01, 0.1, 0.3, 0.5, 0.9):
        question = AdviceQuestion(growth_spread=0.5, risk=risk)
        found = recommend(tried, weights, question, futures_of(weights.demand, question))
        nodes.append(found.nodes)
    assert nodes == sorted(nodes)
    assert nodes[0] < best.nodes


@pytest.mark.parametrize("risk", [0.05, 0.2])
def test_fewer_nodes_for_the_risk_are_no_worse_than_none(risk):
    """Where the risk forbids the best number, what is taken costs no more than renting it all."""
    weights = made_weights(made_jobs(), wait_price=0.05)
    tried = [each for rule in RULES for each in tried_ladder(weights, rule)]
    tried.append(rented_altogether(weights.demand))
    question = AdviceQuestion(growth_spread=0.6)
    best = choose(tried, weights, question)
    safe = within_risk(best, tried, weights, risk, futures_of(weights.demand, question))
    assert safe.nodes < best.nodes
    everything = weights.expected(rented_altogether(weights.demand)).worth
    assert weights.expected(safe).worth <= everything


def test_least_in_expectation_is_the_least_mean_of_futures():
    """By a plain loop over futures: demand grows by a factor, and so do fewer nodes serve it."""
    weights = made_weights(made_jobs(), wait_price=0.05, node="standard-1")
    rule = WaitingRule("compound", 3600.0, 600.0)
    steps = tried_ladder(weights, rule, range(30))
    question = AdviceQuestion(growth=1.5, growth_spread=0.5, futures=50)
    futures = futures_of(weights.demand, question)
    left = [each.block_rent + each.block_wait_hours * 0.05 for each in steps]
    means = []
    for nodes in range(30):
        worths = []
        for draws, growth in zip(futures.draws, futures.growth, strict=True):
            hours = float(draws @ weights.demand.block_hours)
            by_nodes = [float(draws @ each) / hours for each in left]
            served = growth * np.interp(nodes / growth, range(30), by_nodes)
            worths.append(weights.market.fixed_per_hour(nodes) + float(served))
        means.append(np.mean(worths))
    found = recommend(steps, weights, question, futures)
    assert found.nodes == int(np.argmin(means))
    assert found.nodes != choose(steps, weights, question).nodes


def test_a_certain_future_pays_or_does_not():
    """Without spread and with one block, the chance is 1 up to the best number, then 0."""
    jobs = made_jobs(200, span=3 * 86_400.0)
    weights = made_weights(jobs, wait_price=0.0)
    question = AdviceQuestion(growth_spread=0.0)
    steps = ladder(
        tried_ladder(weights, WaitingRule("no-jobs-wait", 0.0)), WaitingRule("no-jobs-wait", 0.0)
    )
    futures = futures_of(weights.demand, question)
    assert not futures.informative
    pays = chances_to_pay(steps, weights, futures)
    assert set(pays.tolist()) <= {0.0, 1.0}
    worth = [weights.expected(each).worth for each in steps]
    best = int(np.argmin(worth))
    assert pays[best] == 1.0
    assert pays[-1] == 0.0


def test_intervals_hold_the_mean():
    """The log's own cost and wait lie between those of its weeks drawn anew."""
    weights = made_weights(made_jobs())
    futures = futures_of(weights.demand, AdviceQuestion())
    assert weights.demand.block_name == "week"
    tried = try_rule(
        weights.demand, weights.market, 4, WaitingRule("all-jobs-wait-threshold", 3600.0)
    )
    told, sure = weights.expected(tried), certainty(tried, weights, futures)
    assert sure.cost[0] < told.cost < sure.cost[1]
    assert sure.mean_wait_seconds[0] < told.mean_wait_seconds < sure.mean_wait_seconds[1]


def test_default_node_and_pool():
    """Mean demand fills some nodes; they hold every job, or jobs too wide make them one pool."""
    jobs = made_jobs(widest=64)
    market = market_of(THESIS, jobs, jobs.core_seconds / 100.0)
    assert (market.node.name, market.spanning) == ("standard-4", True)
    assert market.fixed(5).total_cores == 20
    assert market.fixed(5).count == 1
    narrow = made_jobs(widest=16)
    wide = market_of(THESIS, narrow, narrow.core_seconds / 100.0)
    assert (wide.node.name, wide.spanning) == ("standard-16", False)
    alone = market_of(THESIS, jobs, jobs.core_seconds / 2000.0)
    assert (alone.node.name, alone.spanning) == ("standard-64", False)
    assert alone.fixed(5).count == 5


def test_commitments_are_paid_in_any_case():
    """Committed nodes cost what was agreed, used or not; only further ones cost the price."""
    held = Commitment("standard-4", 3, 0.05)
    catalogue = replace(THESIS, commitments=(held,))
    market = market_of(catalogue, made_jobs(), 10.0, "standard-4")
    further = 0.4 * 4 * 0.0481
    assert market.fixed_per_hour(0) == pytest.approx(0.15)
    assert market.fixed_per_hour(3) == pytest.approx(0.15)
    assert market.fixed_per_hour(5) == pytest.approx(0.15 + 2 * further)
    expired = replace(held, until=date(2001, 1, 1))
    market = market_of(replace(THESIS, commitments=(expired,)), made_jobs(), 10.0, "standard-4")
    assert market.committed == 0


def test_what_is_committed_is_the_node_and_what_there_is_today():
    """The type that most cores are committed to, unless another is asked for; ended ones do not."""
    held = (
        Commitment("standard-2", 3, 0.05),
        Commitment("standard-16", 1, 0.2, until=date(2019, 6, 30)),
        Commitment("standard-64", 9, 0.2, until=date(2001, 1, 1)),
    )
    catalogue = replace(THESIS, commitments=held)
    market = market_of(catalogue, made_jobs(), 10.0)
    assert (market.node.name, market.committed) == ("standard-16", 1)
    assert market.commitments == held[:2]
    assert market_of(catalogue, made_jobs(), 10.0, "standard-4").committed == 0


def test_a_node_without_a_price_is_refused():
    """No reservation of the term: another way is offered; unknown types are named."""
    jobs = made_jobs()
    only_spot = replace(
        THESIS, offers=tuple(replace(offer, reserved=()) for offer in THESIS.offers)
    )
    with pytest.raises(InputError, match="nothing is reserved for 3 years"):
        market_of(only_spot, jobs, 10.0)
    with pytest.raises(InputError, match=r"'node'.*is not reserved.*--node-price"):
        market_of(only_spot, jobs, 10.0, "standard-4")
    own = market_of(only_spot, jobs, 10.0, "standard-4", node_price_per_hour=0.01)
    assert (own.bought_as, own.node_price_per_hour) == ("owned", 0.01)
    with pytest.raises(UnknownNameError, match="standard-4"):
        market_of(THESIS, jobs, 10.0, "standard-5")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"owned": -1}, "owned"),
        ({"risk": 1.0}, "risk"),
        ({"term_years": 2}, "term_years"),
        ({"waiting_seconds": (-1.0,)}, "waiting_seconds"),
        ({"wait_price_per_hour": math.nan}, "wait_price_per_hour"),
        ({"growth": 0.0}, "growth"),
    ],
)
def test_questions_out_of_range_are_refused(wrong, message):
    """The field is named, and what was expected."""
    with pytest.raises(InputError, match=f"field '{message}': out of range"):
        AdviceQuestion(**wrong)
    with pytest.raises(UnknownNameError, match="queue"):
        AdviceQuestion(queue="lifo")


def test_nodes_are_those_of_the_formula():
    """Poisson jobs of one core that may not wait: as many nodes as the loss formula has best."""
    random = np.random.default_rng(5)
    count, rate, mean = 40_000, 0.01, 1000.0
    jobs = TraceJobs(
        np.cumsum(random.exponential(1.0 / rate, count)),
        random.exponential(mean, count),
        np.ones(count, np.int64),
    )
    load = Load(rate, 1.0 / mean, 0.4)
    prices = [float(expected("njw", load, s).price) for s in range(30)]
    best = int(np.argmin(prices))
    question = AdviceQuestion(
        node="standard-1",
        owned=best,
        wait_price_per_hour=1e6,
        growth_spread=0.0,
        risk=0.5,
        waiting_seconds=(0.0,),
        short_seconds=(60.0,),
    )
    advice = advise(made_workload(jobs, None), THESIS, question)
    assert abs(advice.advised.tried.nodes - best) <= 1
    price = advice.advised.expected.cost / advice.on_demand.expected.cost
    assert price == pytest.approx(prices[best], rel=0.02)


def asked(jobs: TraceJobs, question: AdviceQuestion, transient: TransientTerms | None = None):
    """The advice where somebody believed all runtimes rightly."""
    workload = made_workload(jobs)
    return advise(workload, THESIS, question, jobs.runtime_seconds, "somebody", transient)


@pytest.fixture(scope="module")
def advice():
    return asked(made_jobs(), AdviceQuestion(node="standard-4"))


def test_advice_is_held_against_today_and_renting(advice):
    """Three ways in their order; today as the log's machine, everybody waiting."""
    assert [each.name for each in advice.compared] == ["advised", "today", "on demand"]
    assert (advice.today.tried.nodes, advice.today.tried.rule) == (2, WaitingRule("all-jobs-wait"))
    assert advice.advised.expected.worth < advice.on_demand.expected.worth
    assert advice.on_demand.worse_than_advised > 0.9
    assert math.isnan(advice.advised.worse_than_advised)
    assert advice.unwaited.share("optimum") < 1.0
    least = min(each.foreseen_worth for each in advice.compared)
    assert advice.advised.foreseen_worth == least


def test_waiting_is_worth_the_share_that_the_page_states(advice):
    """The printed share, times the mean rent of an hour, is the price that was used."""
    words = " ".join(rests_on(advice, replace(load_prices("thesis"), source="")))
    (share,) = re.findall(r"(\d+) % of what its machine costs, as none was given", words)
    mean_rent = float(advice.weights.demand.on_demand_hour.mean())
    assert advice.weights.wait_price_per_hour == pytest.approx(int(share) / 100.0 * mean_rent)


def test_sensitivities_go_the_right_way(advice):
    """Dearer renting or more demand is never fewer nodes or less money than the opposite."""
    told = {each.change: each for each in advice.sensitivities}
    fall, rise = told["on-demand prices fall by 20 %"], told["on-demand prices rise by 20 %"]
    assert fall.nodes <= rise.nodes
    assert fall.kept_cost <= advice.advised.expected.cost <= rise.kept_cost
    less, more = told["demand falls by 20 %"], told["demand rises by 20 %"]
    assert less.nodes <= more.nodes
    assert less.cost < more.cost
    assert less.kept_wait_seconds <= more.kept_wait_seconds


def test_transient_machines_make_renting_cheaper():
    """With machines at a tenth of the price, rented work costs at most what it did."""
    question = AdviceQuestion(node="standard-4", owned=2)
    dear = asked(made_jobs(), question)
    cheap = asked(made_jobs(), question, TransientTerms(0.1))
    assert cheap.transient_work > 0.5
    assert cheap.advised.expected.worth < dear.advised.expected.worth
    assert cheap.on_demand.expected.cost == dear.on_demand.expected.cost


def test_beliefs_that_are_wrong_cost_something():
    """With shuffled beliefs the rule does no better than one that is told the truth."""
    jobs = made_jobs()
    shuffled = np.random.default_rng(2).permutation(jobs.runtime_seconds)
    question = AdviceQuestion(node="standard-4", waiting_seconds=(3600.0,), short_seconds=(3600.0,))
    advice = advise(made_workload(jobs), THESIS, question, shuffled, "dice")
    assert advice.believed_by == "dice"
    price = advice.weights.wait_price_per_hour
    known = advice.foreseen.cost + price * advice.foreseen.wait_hours
    assert known <= advice.advised.expected.worth * 1.001


def test_jobs_without_runtime_are_left_out():
    """They are counted; a log of nothing else is refused."""
    workload = made_workload(made_jobs(50))
    some = workload.jobs.with_columns(
        runtime_seconds=pl.when(pl.col("job_id") == "3")
        .then(None)
        .otherwise(pl.col("runtime_seconds"))
    )
    advice = advise(workload.with_jobs(some), THESIS, AdviceQuestion(node="standard-4"))
    assert (advice.jobs, advice.left_out) == (49, 1)
    none = workload.jobs.with_columns(runtime_seconds=pl.lit(None, pl.Float64))
    with pytest.raises(InputError, match="no jobs to advise on"):
        advise(workload.with_jobs(none), THESIS, AdviceQuestion())


def test_nothing_is_advised_that_only_an_oracle_could_do():
    """Rules that go by known runtimes are tried, and never chosen; nor are transient machines."""
    workload = made_workload(made_jobs())
    for queue in ("fcfs", "sjf"):
        question = AdviceQuestion(node="standard-4", queue=queue, wait_price_per_hour=0.01)
        found = advise(workload, THESIS, question)
        assert not found.advised.tried.rule.goes_by_runtimes
        assert any(each.rule.goes_by_runtimes for each in found.tried)
        assert not any(each.rule.goes_by_runtimes for each in [found.held_out.chosen])
    with pytest.raises(InputError, match="'runtimes': what runs on transient machines"):
        advise(workload, THESIS, AdviceQuestion(), transient=TransientTerms(0.1))


def test_learned_waits_are_used_only_after_they_were_learned():
    """Told and untold rules begin alike; afterwards fewer wait in vain."""
    jobs = made_jobs(4000, mean_runtime=10_000.0)
    weights = made_weights(jobs)
    plain = WaitingRule("all-jobs-wait-threshold", 3600.0)
    untold = try_rule(weights.demand, weights.market, 4, plain)
    told = try_rule(weights.demand, weights.market, 4, replace(plain, waits="learned"))
    assert told.block_rent[0] == untold.block_rent[0]
    assert told.block_wait_hours[0] == untold.block_wait_hours[0]
    assert told.block_wait_hours[2:].sum() < untold.block_wait_hours[2:].sum()
    assert first_predicted(len(jobs)) == math.ceil(len(jobs) / 3)


def test_what_comes_later_teaches_nothing():
    """The model is the same whatever follows the first third of the log."""
    jobs = made_jobs(3000, mean_runtime=12_000.0)
    weights = made_weights(jobs)
    late = np.arange(len(jobs)) >= 1000
    changed = replace(jobs, runtime_seconds=np.where(late, 7.0, jobs.runtime_seconds))
    rule = WaitingRule("compound", 3600.0)
    models = [
        fitted_waits(replace(weights.demand, jobs=each), weights.market, 4, rule)
        for each in (jobs, changed)
    ]
    assert models[0].weights.tolist() == models[1].weights.tolist()


def test_few_jobs_teach_nothing():
    """Where too few waits are over, the rule goes on untold."""
    jobs = made_jobs(200)
    weights = made_weights(jobs)
    plain = WaitingRule("all-jobs-wait-threshold", 3600.0)
    assert fitted_waits(weights.demand, weights.market, 2, plain) is None
    told = try_rule(weights.demand, weights.market, 2, replace(plain, waits="learned"))
    untold = try_rule(weights.demand, weights.market, 2, plain)
    assert told.block_rent.tolist() == untold.block_rent.tolist()


def test_trials_on_transient_machines_cost_what_the_simulator_says():
    """Rent and waits are those of a simulation that loses the same trials, at the same price."""
    jobs = made_jobs()
    terms = TransientTerms(0.25, ExponentialRevocation(1.0))
    market = market_of(THESIS, jobs, 1.0, "standard-4")
    demand = demand_of(jobs, market, jobs.runtime_seconds, transient=terms)
    rule = WaitingRule("speculative", 3600.0, 1800.0, trials="transient")
    lost = demand.trial_lost_seconds(1800.0)
    tried_for = np.minimum(jobs.runtime_seconds, 1800.0)
    assert ((lost >= 0.0) & (lost < tried_for)).all()
    share = float((lost > 0.0).mean())
    assert share == pytest.approx(
        float(terms.revocation.revoked(tried_for / 3600.0).mean()), abs=0.06
    )
    found = try_rule(demand, market, 2, rule)
    fixed = market.fixed(2)
    simulated = simulate(
        jobs, fixed, market.family, rule.policy, Beliefs(jobs.runtime_seconds), lost_seconds=lost
    )
    metrics = measured(simulated, fixed, rule.policy, 0.25)
    assert found.block_rent.sum() == pytest.approx(metrics.rented_cost + metrics.trial_cost)
    waited = (simulated.start_seconds - jobs.submit_seconds).sum() / 3600.0
    assert found.block_wait_hours.sum() == pytest.approx(waited)


def test_a_lost_trial_is_lost_in_seconds():
    """Machines that live an hour in the mean: of trials of an hour, 1 - 1/e end, after 1,504 s."""
    jobs = made_jobs()
    jobs = replace(jobs, runtime_seconds=np.full(len(jobs), 1e5))
    terms = TransientTerms(0.25, ExponentialRevocation(1.0))
    market = market_of(THESIS, jobs, 1.0, "standard-4")
    demand = demand_of(jobs, market, jobs.runtime_seconds, transient=terms)
    lost = demand.trial_lost_seconds(3600.0)
    assert (lost > 0.0).mean() == pytest.approx(1.0 - np.exp(-1.0), abs=0.06)
    mean = 3600.0 * (1.0 - 2.0 * np.exp(-1.0)) / (1.0 - np.exp(-1.0))
    assert lost[lost > 0.0].mean() == pytest.approx(mean, rel=0.1)


def test_transient_trials_are_candidates_where_there_are_terms(advice):
    """With terms, trials on transient machines are tried, too; without, none are."""
    found = asked(made_jobs(), AdviceQuestion(node="standard-4"), TransientTerms(0.1))
    assert {each.rule.trials for each in found.tried} == {"on demand", "transient"}
    assert {each.rule.trials for each in advice.tried} == {"on demand"}
    assert {each.rule.waits for each in advice.tried} == {"unknown", "learned"}


def test_chosen_on_the_first_half_and_lived_in_the_second(advice):
    """The blocks are halved; nothing that was tried is better there than the best."""
    held = advice.held_out
    assert (held.blocks, held.later_blocks) == (3, 3)
    assert held.best.worth <= min(held.lived.worth, held.advised.worth)
    halves = [each.within(slice(3, 6)) for each in advice.tried if each.is_lasting]
    weights = advice.weights.within(slice(3, 6))
    assert held.best.worth == min(weights.expected(each).worth for each in halves)


def gpu_catalogue():
    """The built-in one with machines of 4 gpus beside the plain ones."""
    plain = THESIS.after_discounts().find("standard-16")
    with_gpus = replace(
        plain,
        instance=replace(plain.instance, name="gpus-4", gpus=4.0),
        on_demand_per_hour=4.0,
        reserved=tuple(replace(each, price_per_hour=1.6) for each in plain.reserved),
    )
    return replace(THESIS, offers=(*THESIS.offers, with_gpus))


def test_jobs_with_gpus_run_on_machines_with_gpus():
    """Most of the work asks for gpus: nodes and rented machines have some; else it is an error."""
    plain = made_jobs()
    jobs = replace(plain, gpus=np.where(np.arange(len(plain)) % 4, 1.0, 0.0))
    with pytest.raises(InputError, match="no machine on offer has gpus"):
        market_of(THESIS, jobs, 1e6)
    market = market_of(gpu_catalogue(), jobs, 1e6)
    assert (market.node.name, market.unit, market.node_size) == ("gpus-4", "gpu", 4.0)
    demand = demand_of(jobs, market, jobs.runtime_seconds)
    asks = jobs.gpus > 0.0
    assert (demand.on_demand_hour[asks] == 4.0).all()
    assert (demand.on_demand_hour[~asks] < 1.0).all()
    tried = try_rule(demand, market, 3, WaitingRule("all-jobs-wait-threshold", 3600.0))
    fixed = market.fixed(3)
    assert fixed.count * fixed.gpus == 12.0
    simulated = simulate(
        jobs,
        fixed,
        market.family,
        WaitingRule("all-jobs-wait-threshold", 3600.0).policy,
        Beliefs(jobs.runtime_seconds),
    )
    assert tried.utilisation == pytest.approx(
        measured(
            simulated, fixed, WaitingRule("all-jobs-wait-threshold", 3600.0).policy
        ).fixed_utilisation,
        rel=1e-3,
    )
    table = market.use_over_time(jobs, demand.hours)
    assert table["highest"].max() >= table["mean"].max() > 1.0


def test_gpus_of_few_jobs_are_rented():
    """Where little of the money is for gpus, plain nodes are advised, and those jobs are rented."""
    plain = made_jobs()
    jobs = replace(plain, gpus=np.where(np.arange(len(plain)) % 100, 0.0, 1.0))
    market = market_of(gpu_catalogue(), jobs, jobs.core_seconds / 5.0)
    assert market.node.gpus == 0.0
    demand = demand_of(jobs, market, jobs.runtime_seconds)
    tried = try_rule(demand, market, 50, WaitingRule("all-jobs-wait"))
    assert tried.rented_jobs == pytest.approx(float((jobs.gpus > 0.0).mean()))
    assert tried.waiting_jobs == 0.0
