"""The advice in words: rules with their thresholds, sentences, and what all of it rests on."""

from __future__ import annotations

import math
from typing import Final

from foresail.cloud.advising.advice import TRUTH, Advice
from foresail.cloud.advising.choosing import missed
from foresail.cloud.advising.question import Market, WaitingRule
from foresail.cloud.advising.searching import Compared
from foresail.cloud.prices import PriceCatalogue
from foresail.cloud.purchasing.demand import HOURS_PER_YEAR
from foresail.cloud.waiting.jobs import USUAL_SHARE
from foresail.model.words import count, duration, number, percent

_DAY: Final = 86_400.0
_LITTLE: Final = 0.0005
RULE_NAMES: Final = {
    "all-jobs-wait": "every job waits",
    "no-jobs-wait": "no job waits",
    "all-jobs-wait-threshold": "waits have a limit",
    "compound": "only long jobs wait",
    "speculative": "tried on rented ones first",
}
COMPARED_NAMES: Final = {"advised": "advised", "today": "today", "on demand": "all on demand"}
UNWAITED_COUNTS: Final = (
    "Both rows of no waiting are counted otherwise than the advice, and may lie on either side of "
    "it: cores, memory and gpus are bought apart and in any amounts, not as whole nodes that jobs "
    "must fit, for any term on sale at the median discount of all types; “What was considered?” "
    "has what comes of no job waiting when it is counted like the advice."
)
"""Remarks under a table that has both beside the advice."""


def money(amount: float, prices: PriceCatalogue) -> str:
    """An amount with its currency, to three digits at least."""
    return f"{number(round(amount)) if abs(amount) >= 100.0 else number(amount)} {prices.currency}"


def rule_name(rule: WaitingRule) -> str:
    """A rule in a few words."""
    terms = [
        *(["learned waits"] if rule.waits == "learned" else []),
        *(["transient trials"] if rule.trials == "transient" else []),
    ]
    return ", ".join([RULE_NAMES[rule.name], *terms])


def rule_words(rule: WaitingRule) -> str:
    """Say which jobs wait, as an instruction with its thresholds."""
    words = _plain_rule_words(rule)
    if rule.waits == "learned":
        words += (
            f"; a job that is expected to wait for more than {duration(rule.waiting_seconds)}, by "
            "what the state of the nodes and the queue says of waits, is rented one at once"
        )
    return words


def needs_to_know(rule: WaitingRule, advice: Advice) -> str:
    """Say what a rule goes by that must be believed or learned."""
    terms = []
    if rule.goes_by_runtimes:
        terms.append("true runtimes" if advice.believed_by == TRUTH else "runtimes")
    if rule.waits == "learned":
        terms.append("waits")
    if rule.trials == "transient":
        terms.append("lifetimes")
    return ", ".join(terms) or "nothing"


def _plain_rule_words(rule: WaitingRule) -> str:
    limit, short = duration(rule.waiting_seconds), duration(rule.short_seconds)
    match rule.name:
        case "all-jobs-wait":
            return "every job waits until there is room"
        case "no-jobs-wait":
            return "no job waits: one that finds no room runs on a rented machine at once"
        case "all-jobs-wait-threshold":
            return (
                f"a job that finds no room waits for at most {limit}, then runs on a rented machine"
            )
        case "compound":
            return (
                "a job that finds no room runs on a rented machine at once if it is believed to "
                f"run for less than {short}; any other waits, for at most {limit}, and is then "
                "rented one too"
            )
        case _:
            return (
                f"a job that finds no room is tried on a {_trial_machine(rule)} for {short}; if "
                f"it is not done by then it is stopped and waits, for at most {limit}, to start "
                "anew, and is then rented one"
            )


def _trial_machine(rule: WaitingRule) -> str:
    if rule.trials == "on demand":
        return "rented machine"
    return "transient machine (on demand, if that is taken back)"


def sentences(advice: Advice, prices: PriceCatalogue) -> list[str]:
    """The advice, and what it is held against."""
    return [
        *_cautions(advice),
        *_unmet(advice, prices),
        *_advised(advice, prices),
        *_today(advice, prices),
        _on_demand(advice, prices),
    ]


def how_sure(advice: Advice, prices: PriceCatalogue) -> list[str]:
    """Say what weeks drawn anew, later weeks, odd demand and wrong beliefs make of it."""
    return [
        *_certain(advice, prices),
        *_chosen_before(advice, prices),
        *_not_knowing(advice, prices),
    ]


def _chosen_before(advice: Advice, prices: PriceCatalogue) -> list[str]:
    """Say what the same way of choosing came to in weeks that it had not seen."""
    held = advice.held_out
    if held is None:
        return []
    unit = advice.weights.demand.block_name
    lost = held.lived.worth / held.best.worth - 1.0 if held.best.worth else 0.0
    same = (held.chosen.nodes, held.chosen.rule) == (
        advice.advised.tried.nodes,
        advice.advised.tried.rule,
    )
    chosen = "the same would have been chosen"
    if not held.chosen.nodes and advice.advised.tried.nodes:
        chosen = "no nodes would have been chosen"
    elif held.chosen.nodes and not same:
        chosen = (
            f"{count(held.chosen.nodes, 'node')} would have been chosen, and the rule "
            f"“{rule_name(held.chosen.rule)}”"
        )
    return [
        f"From the first {count(held.blocks, unit)} alone {chosen}; in the "
        f"{count(held.later_blocks, unit)} after, that comes to {money(held.lived.cost, prices)} a "
        f"month with a mean wait of {duration(held.lived.mean_wait_seconds)}: "
        + (
            f"waiting counted, {percent(lost)} more than the best of all that was tried."
            if lost >= _LITTLE
            else "nothing that was tried is better."
        )
    ]


def _unmet(advice: Advice, prices: PriceCatalogue) -> list[str]:
    """Targets that cannot be met come first, each with the best that can be reached."""
    question = advice.question
    budget = money(question.most_cost_per_month or 0.0, prices)
    wanted = duration(question.most_wait_seconds or 0.0)
    best = {each.target: each.best for each in advice.missed}
    said = []
    if "cost" in best:
        said.append(
            f"Nothing that was tried costs {budget} a month or less: the best that can be reached "
            f"is {money(best['cost'].cost, prices)}, as follows."
        )
    if "wait" in best:
        reached = duration(best["wait"].mean_wait_seconds)
        if "cost" in best:
            said.append(
                f"Nor does that keep the mean wait at {wanted} or less: the best that can be "
                f"reached, whatever it costs, is {reached}, for "
                f"{money(best['wait'].cost, prices)} a month."
            )
        else:
            within = "" if question.most_cost_per_month is None else f" for {budget} a month"
            said.append(
                f"A mean wait of {wanted} cannot be had{within}: the best that can be reached is "
                f"{reached}, as follows."
            )
    return said


def _advised(advice: Advice, prices: PriceCatalogue) -> list[str]:
    best = advice.advised
    month = best.expected.cost
    year = month * HOURS_PER_YEAR / 730.0
    wait = (
        "No job waits"
        if best.tried.p95_wait_seconds == 0.0 and best.expected.mean_wait_seconds == 0.0
        else f"Jobs wait {duration(best.expected.mean_wait_seconds)} on average, and 19 of 20 "
        f"at most {duration(best.tried.p95_wait_seconds)}"
    )
    costs = f"That costs {money(month, prices)} a month, {money(year, prices)} a year. {wait}."
    if not best.tried.nodes:
        return [f"Own nothing: rent a machine for every job. {costs}"]
    verb = "Own" if advice.market.bought_as == "owned" else "Reserve"
    term = "" if verb == "Own" else f" for {advice.market.bought_as.removeprefix('reserved for ')}"
    node = advice.market.node
    size = said_size(advice.market, best.tried.nodes)
    what = f"{verb} {count(best.tried.nodes, 'node')} {node.name}{term} ({size})"
    if advice.market.committed:
        what = f"{_have(advice.market)}. {_more(advice, verb, term)}, {size} together"
    return [f"{what}. {costs}", f"The rule: {rule_words(best.tried.rule)}. {_rented(advice)}"]


def _have(market: Market) -> str:
    """Say what nodes are committed to, and until when."""
    held = [each for each in market.commitments if each.instance == market.node.name]
    ends = ["for good" if each.until is None else f"until {each.until}" for each in held]
    parts = [f"{each.count:,} {end}" for each, end in zip(held, ends, strict=True)]
    parts = ends if len(held) == 1 else parts
    return f"You have {count(market.committed, 'node')} {market.node.name} ({', '.join(parts)})"


def _more(advice: Advice, verb: str, term: str) -> str:
    """Say what to buy beyond that."""
    more = advice.advised.tried.nodes - advice.market.committed
    return f"{verb} {more:,} more{term}" if more > 0 else "Buy no more"


def said_size(market: Market, nodes: int) -> str:
    """Say how much so many nodes are."""
    amount = nodes * market.node.cores  # which need not be whole
    cores = f"{number(amount)} {'core' if amount == 1.0 else 'cores'}"
    if not market.node.gpus:
        return cores
    gpus = nodes * market.node.gpus
    return f"{cores}, {number(gpus)} {'gpu' if gpus == 1.0 else 'gpus'}"


def _rented(advice: Advice) -> str:
    """Say what the rest runs on."""
    tried = advice.advised.tried
    share = percent(tried.rented_work)
    where = "on demand"
    if advice.transient is not None:
        where = "on rented machines, transient ones where that is expected to be cheaper"
    if tried.rule.name == "all-jobs-wait":
        return f"What the nodes are too small for, {share} of the work, runs {where}."
    return f"So {share} of the work runs {where}."


def _today(advice: Advice, prices: PriceCatalogue) -> list[str]:
    today = advice.today
    if today is None:
        return []
    whose = f"Today's {count(today.tried.nodes, 'node')}, with every job waiting,"
    rests = _counted_from_the_log(advice)
    if not today.tried.is_lasting:
        return [
            f"{whose} cost {money(today.expected.cost, prices)} a month, and cannot do all the "
            "work: the queue only grows.",
            *rests,
        ]
    change = advice.advised.expected.cost - today.expected.cost
    verb = "costs" if change >= 0.0 else "saves"
    more = " more" if change >= 0.0 else ""
    saved = today.expected.mean_wait_seconds - advice.advised.expected.mean_wait_seconds
    waits = "less" if saved >= 0.0 else "more"
    return [
        f"{whose} cost {money(today.expected.cost, prices)} and keep jobs waiting "
        f"{duration(today.expected.mean_wait_seconds)} on average: the advice {verb} "
        f"{money(abs(change), prices)}{more} a month, for {duration(abs(saved))} {waits} waiting "
        "per job.",
        *rests,
    ]


def _counted_from_the_log(advice: Advice) -> list[str]:
    """Describe that present nodes were counted from the log, where they were not given."""
    if advice.question.owned is not None or advice.market.committed:
        return []
    return [
        "What there is today was not said: the log's processors are counted as so many "
        f"{advice.market.node.name} ({said_size(advice.market, 1)} each), which need not be what "
        "they are; --owned and --node say otherwise."
    ]


def _on_demand(advice: Advice, prices: PriceCatalogue) -> str:
    dear = advice.on_demand.expected.cost
    share = advice.advised.expected.cost / dear
    return (
        f"With everything on demand it would be {money(dear, prices)} a month, and no wait: the "
        f"advice is {percent(share)} of that."
    )


def _certain(advice: Advice, prices: PriceCatalogue) -> list[str]:
    blocks = advice.futures.draws.shape[1]
    if not advice.futures.informative:
        return ["The log is too short to say how sure this is: jobs on five days are the least."]
    best = advice.advised
    low, high = best.certainty.cost
    brief, long = best.certainty.mean_wait_seconds
    unit = advice.weights.demand.block_name
    said = [
        f"Put together anew from the log's {count(blocks, unit)}, 9 periods of 10 come to "
        f"{number(round(low))} to {money(high, prices)} a month"
        + (f", with a mean wait of {duration(brief)} to {duration(long)}" if long else "")
        + ". Waiting counted, the advice is better than "
        + " and ".join(
            f"{COMPARED_NAMES[each.name]} in {percent(each.worse_than_advised)}"
            for each in advice.compared[1:]
        )
        + " of them."
    ]
    question = advice.question
    if best.tried.nodes and not math.isnan(advice.chance_to_pay):
        grown = "" if question.growth == 1.0 else f" growing {number(question.growth)}-fold and"
        said.append(
            f"With demand{grown} uncertain by {percent(question.growth_spread)}, the "
            f"last tenth of these nodes pays for itself in {percent(advice.chance_to_pay)} of "
            "futures"
            + ("" if question.risk is None else f" ({percent(1.0 - question.risk)} are asked for)")
            + (
                "."
                if advice.best_nodes == best.tried.nodes
                else f"; on the log as it is, {count(advice.best_nodes, 'node')} would be best."
            )
        )
        said += _forced(advice, prices)
    if question.risk is None:
        said.append(
            "Waiting counted, the mean of these futures is "
            + ", ".join(
                f"{money(each.foreseen_worth, prices)} a month {_as_called(each)}"
                for each in advice.compared
            )
            + ": the advice is the least of all that was tried"
            + (" and meets the targets." if question.has_targets else ".")
        )
    return said


def _forced(advice: Advice, prices: PriceCatalogue) -> list[str]:
    """Describe that targets force nodes that pay less surely than is asked for."""
    question, safe = advice.question, advice.within_risk
    if question.risk is None or safe is None:
        return []
    more = advice.advised.tried.nodes > safe.nodes
    forcing = {each.target for each in missed(safe, advice.tried, advice.weights, question)}
    if not (more and forcing and advice.chance_to_pay < 1.0 - question.risk):
        return []
    targets = []
    if "wait" in forcing:
        targets.append(f"a mean wait of {duration(question.most_wait_seconds or 0.0)}")
    if "cost" in forcing:
        targets.append(f"{money(question.most_cost_per_month or 0.0, prices)} a month")
    expected = advice.weights.expected(safe)
    return [
        f"The target of {' and '.join(targets)} forces more nodes than the risk allows: that would "
        f"be {count(safe.nodes, 'node')} under the best rule, which on the log as it is come to "
        f"{money(expected.cost, prices)} a month with a mean wait of "
        f"{duration(expected.mean_wait_seconds)}."
    ]


def _as_called(each: Compared) -> str:
    return {"advised": "as advised", "today": "as today"}.get(each.name, "all on demand")


def _not_knowing(advice: Advice, prices: PriceCatalogue) -> list[str]:
    """Say what is lost because runtimes and waits are believed, not known."""
    if advice.advised.tried.nodes == 0 or advice.advised.tried.rule.name in (
        "all-jobs-wait",
        "no-jobs-wait",
    ):
        return []
    known, real = advice.foreseen, advice.advised.expected
    return [
        f"Knowing every runtime, and who would wait too long, the same rule would cost "
        f"{money(known.cost, prices)} a month with a mean wait of "
        f"{duration(known.mean_wait_seconds)}: not knowing costs "
        f"{money(real.cost - known.cost, prices)} and "
        f"{duration(real.mean_wait_seconds - known.mean_wait_seconds)} a job."
    ]


def _cautions(advice: Advice) -> list[str]:
    """A log that is not to be signed for says so first."""
    if advice.hours * 3600.0 >= 28.0 * _DAY:
        return []
    return [
        f"The log is {duration(advice.hours * 3600.0)} long, with {count(advice.jobs, 'job')}: too "
        "little to commit money on: rent, collect some months, and ask again. What follows is what "
        "this log alone says."
    ]


def rests_on(advice: Advice, prices: PriceCatalogue) -> list[str]:
    """Say what the advice takes for granted, a sentence each."""
    market, question = advice.market, advice.question
    length = duration(advice.hours * 3600.0)
    term = question.term_years * HOURS_PER_YEAR
    repeats = "" if advice.hours >= term else ", and is taken to repeat over the term"
    left_out = f"; {count(advice.left_out, 'job')} left out" if advice.left_out else ""
    stated = (
        "as stated"
        if question.wait_price_per_hour is not None
        else f"{percent(USUAL_SHARE)} of what its machine costs, as none was given"
    )
    return [
        f"Prices: {prices.name} of {prices.valid_on}"
        + (f" ({prices.source})" if prices.source else "")
        + f". A node costs {money(market.node_price_per_hour, prices)} an hour, used or not "
        f"({market.bought_as}); a job is rented the cheapest machine that holds it, for as long as "
        "it runs, and shares it with no other." + _committed(advice, prices),
        f"Demand: {advice.source}, {count(advice.jobs, 'job')} over {length}{repeats}{left_out}.",
        f"An hour that a job waits is worth {money(advice.weights.wait_price_per_hour, prices)}: "
        f"{stated}.",
        *_runtimes(advice),
        f"Waiting jobs go in the order {question.queue}, and the first that fits starts.",
        "Jobs may use several nodes at once: the nodes are one pool of "
        f"{market.unit}s" + (" and cores." if market.unit == "gpu" else ".")
        if market.spanning
        else "A job runs within one node; what needs more is rented.",
        *_gpus(advice),
        *(
            []
            if market.memory_known
            else [
                "The log does not say what memory jobs need: "
                f"{'cores and gpus' if market.unit == 'gpu' else 'cores'} alone decide what fits."
            ]
        ),
        *_transient(advice),
        *_todays_nodes(advice),
    ]


def _runtimes(advice: Advice) -> list[str]:
    """Describe whose beliefs count, and what was not advised for want of an honest one."""
    rule = advice.advised.tried.rule
    learned = (
        f" Waits are learned from the first third of the log, where every job waits up to "
        f"{duration(rule.waiting_seconds)}, by a linear model of the state of nodes and queue; "
        "until then no job is expected to wait too long."
        if rule.waits == "learned"
        else " No waiting job knows for how long."
    )
    if advice.believed_by == TRUTH:
        return [
            "Runtimes are taken to be known; rules that go by them are tried, but not advised, for "
            f"they are not known on submission.{learned}"
        ]
    return [f"Runtimes are believed as {advice.believed_by} says.{learned}"]


def _gpus(advice: Advice) -> list[str]:
    """Say where jobs that ask for gpus run."""
    demand, node = advice.weights.demand, advice.market.node
    if demand.jobs.gpus is None:
        return []
    asks = demand.jobs.gpus > 0.0
    share = float(demand.rent[asks].sum()) / float(demand.rent.sum())
    where = (
        f"they run on nodes with {count(round(node.gpus), 'gpu')}, or on rented machines with gpus"
        if node.gpus
        else "the nodes have none, so that these jobs are all rented machines with gpus"
    )
    return [
        f"{count(int(asks.sum()), 'job')} ask for gpus, {percent(share)} of what renting all would "
        f"cost: {where}. Gpus are taken to be alike, whatever their model."
    ]


def _todays_nodes(advice: Advice) -> list[str]:
    if advice.today is None or advice.question.owned is not None:
        return []
    if advice.market.committed:
        return ["Today's nodes are those that are committed to."]
    return ["Today's nodes are as many as the log's processors make, at the price of new ones."]


def _committed(advice: Advice, prices: PriceCatalogue) -> str:
    market = advice.market
    others = sorted({c.instance for c in market.commitments} - {market.node.name})
    left_out = f" Commitments to {', '.join(others)} are not counted." if others else ""
    if not market.committed:
        return left_out
    ends = any(each.until for each in market.commitments)
    return (
        f" {count(market.committed, 'node')} are committed to already, at "
        f"{money(market.committed_price_per_hour, prices)} an hour each: that is paid in any case"
        f"{', and taken to be renewed at that price when it ends' if ends else ''}.{left_out}"
    )


def _transient(advice: Advice) -> list[str]:
    if advice.transient is None:
        return []
    return [
        f"Transient machines cost {percent(advice.transient.price)} of on demand by their history. "
        f"{percent(advice.transient_work)} of the work would be cheaper there; a job whose machine "
        "is taken back starts again on demand. There are taken to be as many as are wanted."
    ]
