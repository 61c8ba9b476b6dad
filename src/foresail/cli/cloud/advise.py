"""``foresail cloud advise``: how many nodes to own, which jobs wait, what the rest runs on."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import typer

from foresail.cli import renting_options
from foresail.cli.formats import naming_options
from foresail.cli.log_options import LogOptions, LogPath
from foresail.cli.progress import doing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foresail.cloud.advising.searching import Progress
    from foresail.cloud.purchasing.terms import TransientTerms

_OPTIONS: Final = {
    "owned": "--owned",
    "node": "--node",
    "term_years": "--term",
    "node_price_per_hour": "--node-price",
    "wait_price_per_hour": "--wait-price",
    "most_wait_seconds": "--max-wait",
    "most_cost_per_month": "--budget",
    "waiting_seconds": "--wait-limit",
    "short_seconds": "--short",
    "risk": "--risk",
    "growth": "--growth",
    "growth_spread": "--growth-spread",
    "runtimes": "--runtimes",
    "reserved": "--prices",
}
"""Options on the command line for the fields of a question."""
_UNMET: Final = 1
_LONG_LOG: Final = 1_000_000
_RUNTIMES, _LONG_RUNTIMES = "combined", "recent"
_WAIT_LIMITS, _LONG_WAIT_LIMITS = "1h,4h,24h", "4h,24h"
_SHORT, _LONG_SHORT = "3min,15min", "15min"
"""For logs, and for long ones: fewer thresholds, and a predictor that keeps little of each job, so
that a year of jobs takes minutes."""


class Term(StrEnum):
    """Years of a reservation."""

    ONE = "1"
    THREE = "3"


def command(
    log: LogPath,
    prices: renting_options.PriceOptions = renting_options.PriceOptions(),
    node: str | None = None,
    term: Term = Term.THREE,
    node_price: float | None = None,
    owned: int | None = None,
    wait_price: float | None = None,
    max_wait: str | None = None,
    budget: float | None = None,
    history: str | None = None,
    runtimes: str | None = None,
    wait_limit: str | None = None,
    short: str | None = None,
    order: renting_options.WaitingOrder = renting_options.WaitingOrder.FCFS,
    risk: float | None = None,
    growth: float = 1.0,
    growth_spread: float = 0.2,
    seed: int = 0,
    workers: renting_options.Workers = renting_options.WORKERS,
    filters: renting_options.Filters = None,
    log_options: LogOptions = LogOptions(),
    answering: renting_options.PicturedAnswerOptions = renting_options.PicturedAnswerOptions(),
) -> None:
    """One page for the person who signs: how many nodes, which jobs wait, what it costs, how sure.

    Rules of waiting are simulated on the log for many numbers of nodes, by runtimes as they were
    believed on submission. A target that cannot be met ends with status 1, and says what is the
    best that can be reached.

    Options:
        node TYPE: What is owned [the cheapest of a suitable size].
        term: Years for which it is reserved.
        node_price PRICE: Of an owned node per hour, instead of reserving.
        owned N: Nodes that you own today [as the log says, if it does].
        wait_price MONEY: What an hour of a job's waiting is worth.
        max_wait TIME: Target: mean wait at most, such as 1h.
        budget MONEY: Target: cost of a month at most.
        history HISTORIES: Price histories: jobs may be rented transient machines as these were.
        runtimes BY: What rules believe of runtimes: a predictor, requested, or known [combined;
            recent for logs of over a million jobs].
        wait_limit TIMES: Longest waits to try [1h,4h,24h; 4h,24h for such logs].
        short TIMES: Runtimes below which jobs are short, to try [3min,15min; 15min for such logs].
        order: Which waiting job goes first.
        risk SHARE: Chance that the last nodes do not pay, at most [any: least expected worth].
        growth FACTOR: By which demand will have grown.
        growth_spread SHARE: How uncertain that is.
        seed (0..): Of the futures drawn.
    """
    from foresail.cli.log_options import load_as_one_pool
    from foresail.cloud.advising.advice import advise
    from foresail.cloud.advising.question import AdviceQuestion
    from foresail.evaluation.replaying import KNOWN, believed_runtimes
    from foresail.reports.renting.advice_page import (
        advice_page,
        candidates_table,
        compared_table,
        record,
        sensitivity_table,
    )
    from foresail.reports.renting.advice_words import UNWAITED_COUNTS, how_sure, rests_on, sentences

    with naming_options(_OPTIONS):
        question = AdviceQuestion(
            owned=owned,
            node=node,
            term_years=int(term.value),
            node_price_per_hour=node_price,
            wait_price_per_hour=wait_price,
            most_wait_seconds=None
            if max_wait is None
            else renting_options.times_of([max_wait], "--max-wait")[0],
            most_cost_per_month=budget,
            waiting_seconds=renting_options.times_of([wait_limit or _WAIT_LIMITS], "--wait-limit"),
            short_seconds=renting_options.times_of([short or _SHORT], "--short"),
            queue=order.value,
            risk=risk,
            growth=growth,
            growth_spread=growth_spread,
            seed=seed,
            workers=workers,
        )
    catalogue = renting_options.prices_of(prices)
    transient = None if history is None else _transient(history)
    workload = load_as_one_pool(log, log_options, filters or renting_options.STANDARD_FILTERS)
    renting_options.require_jobs(workload)
    if len(workload) > _LONG_LOG:
        runtimes = runtimes or _LONG_RUNTIMES
        question = replace(
            question,
            waiting_seconds=renting_options.times_of(
                [wait_limit or _LONG_WAIT_LIMITS], "--wait-limit"
            ),
            short_seconds=renting_options.times_of([short or _LONG_SHORT], "--short"),
        )
    runtimes = runtimes or _RUNTIMES
    with _progress() as progress:
        progress(f"runtimes by {runtimes}", 0, 1)
        by = "" if runtimes == KNOWN else runtimes
        believed = believed_runtimes(workload, runtimes) if by else None
        with naming_options(_OPTIONS):
            advice = advise(workload, catalogue, question, believed, by, transient, progress)
    answer = record(advice, catalogue)
    answering.answer(
        answer,
        (*sentences(advice, catalogue), *how_sure(advice, catalogue)),
        (
            compared_table(advice, catalogue),
            sensitivity_table(advice, catalogue),
            candidates_table(advice, catalogue),
        ),
        lambda: advice_page(advice, catalogue),
        (UNWAITED_COUNTS, "What it rests on:", *rests_on(advice, catalogue)),
        advice=answer,
    )
    if advice.missed:
        raise typer.Exit(_UNMET)


def _transient(history: str) -> TransientTerms:
    from foresail.cloud.prices_reading import load_histories
    from foresail.cloud.purchasing.terms import observed_transient

    return observed_transient(load_histories(history))


@contextmanager
def _progress() -> Iterator[Progress]:
    """Show what is being done."""
    with doing("advising") as entered:

        def progress(what: str, done: int, of: int) -> None:
            entered.begin(what, done, of if of > 1 else None)

        yield progress
