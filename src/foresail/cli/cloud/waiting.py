"""``foresail cloud waiting``: how many machines to own, and which jobs wait for them."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from foresail.cli.cloud._options import (
    STANDARD_FILTERS,
    Filters,
    PicturedAnswerOptions,
    PriceOptions,
    prices_of,
    show,
    times_of,
    trace_jobs,
)
from foresail.cli.cloud._waiting import (
    BeliefSources,
    Owning,
    WaitingRequest,
    Waits,
    answer_on_log,
    counts_of,
    line_of,
    names_of,
    wrong_shares,
)
from foresail.cli.formats import refuse
from foresail.cli.log_options import LogOptions
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from foresail.cloud.waiting.models import Mispredicted
    from foresail.cloud.waiting.owning import OwningAnswer
    from foresail.reports.renting.rent_or_wait_sentences import Circumstances

_OF_FORMULAS: Final = 1_000
"""Numbers of machines to try, unless they are given."""
_MOST_MACHINES: Final = 1_000_000


def answer_by_formula(
    model: str, wrong_shares: tuple[float, float], question: WaitingRequest, owning: Owning
) -> tuple[OwningAnswer, Circumstances]:
    """Find the best for RATE,RUNTIME, with what was asked of."""
    from foresail.cloud.waiting.models import POLICIES, Load, Mispredicted
    from foresail.cloud.waiting.offers import USUAL_SHARE
    from foresail.cloud.waiting.owning import own_or_rent_by_formula
    from foresail.cloud.waiting.settings import usual_counts
    from foresail.reports.renting.rent_or_wait_sentences import Circumstances

    rate, runtime, arrivals, mean = _arrivals_and_mean(model)
    load = Load(arrivals, 1.0 / mean, owning.relative_price)
    if load.offered > _MOST_MACHINES:
        raise InputError(
            "too many jobs at a time",
            field="--model",
            value=f"{load.offered:g} on average",
            expected=f"up to {_MOST_MACHINES:,}",
        )
    wrong = Mispredicted(*wrong_shares)
    policies = [name for name in POLICIES if name != "compound" or not any(wrong)]
    counts = usual_counts(load.offered, owning.relative_price, _OF_FORMULAS)
    hourly = owning.offer.on_demand_per_hour
    answer = own_or_rent_by_formula(
        load, hourly, question.sweep(policies, counts), question.worth(USUAL_SHARE * hourly), wrong
    )
    return answer, Circumstances(
        log=f"{rate} jobs a second of {runtime} on average",
        machine_name=owning.offer.instance.name,
        machine=owning.machine,
        currency=owning.catalogue.currency,
        catalogue=owning.catalogue.name,
        valid_on=owning.catalogue.valid_on,
        known=_known(wrong),
        by_formula=True,
    )


def _arrivals_and_mean(model: str) -> tuple[str, str, float, float]:
    """RATE and RUNTIME as they were written, and as numbers (per second, and seconds)."""
    parts = model.split(",")
    try:
        rate, runtime = parts
        arrivals = float(rate)
    except ValueError:
        raise InputError(
            "no arrivals and runtime", field="--model", value=model, expected="such as 0.2,500s"
        ) from None
    mean = times_of([runtime], "--model")[0]
    if not (mean > 0.0 and 0.0 < arrivals < math.inf):
        raise InputError(
            "no arrivals and runtime", field="--model", value=model, expected="both above 0"
        )
    return rate, runtime, arrivals, mean


def _known(wrong: Mispredicted) -> str:
    """Quality of the predictions, in words."""
    from foresail.model.words import percent

    if not any(wrong):
        return "by formula, all predictions right"
    return (
        f"by formula, {percent(wrong.over)} of predictions too long, {percent(wrong.under)} of "
        "those that matter too short"
    )


_WORKERS: Final = min(4, os.cpu_count() or 1)


def command(
    log: Annotated[
        Path | None, typer.Argument(metavar="LOG", help="A job log, or a workload folder.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="RATE,RUNTIME",
            help="Instead of a log: jobs per second and their mean runtime, by formula.",
        ),
    ] = None,
    prices: PriceOptions = PriceOptions(),
    machine: Annotated[
        str | None,
        typer.Option(metavar="TYPE", help="What is owned [the largest that can be reserved]."),
    ] = None,
    term: Annotated[
        int | None, typer.Option(metavar="YEARS", help="Of the reservation [the longest].")
    ] = None,
    fixed_price: Annotated[
        float | None, typer.Option(metavar="PRICE", help="Of an owned machine per hour, instead.")
    ] = None,
    customised: Annotated[
        bool,
        typer.Option(
            "--customised",
            help="Rent machines of just the cores and memory that each job asks for, too.",
        ),
    ] = False,
    fixed: Annotated[
        str | None,
        typer.Option(
            metavar="FIRST:LAST:STEP", help="Numbers of machines, or 50,100 [those that may pay]."
        ),
    ] = None,
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy", metavar="NAMES", help="With commas, or repeated [all]; see the docs."
        ),
    ] = None,
    wait_limit: Annotated[
        list[str] | None,
        typer.Option(metavar="TIMES", help="Longest wait b; several with commas [24h]."),
    ] = None,
    short: Annotated[
        list[str] | None,
        typer.Option(metavar="TIMES", help="Jobs below t are short; several with commas [15min]."),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(
            metavar="ORDER",
            help="Which waiting job goes first: fcfs, strict-fcfs, sjf, random, or an order "
            "such as 'requested * cpus' [fcfs].",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY",
            help="Instead of an order: a policy of foresail simulate, such as easy; slower.",
        ),
    ] = None,
    runtimes: Annotated[
        str,
        typer.Option(metavar="BY", help="What policies believe: known, requested, or a predictor."),
    ] = "known",
    waits: Annotated[
        Waits, typer.Option(help="What policies know of waits, or which model predicts them.")
    ] = Waits.KNOWN,
    mispredicted: Annotated[
        str | None,
        typer.Option(
            metavar="OVER,UNDER",
            help="With --model: shares of predictions that are too long, and too short.",
        ),
    ] = None,
    owned: Annotated[
        int | None, typer.Option(metavar="N", help="Machines that you own today.")
    ] = None,
    owned_policy: Annotated[
        str, typer.Option(metavar="NAME", help="Which jobs wait today.")
    ] = "all-jobs-wait",
    hour_value: Annotated[
        float | None,
        typer.Option(metavar="MONEY", help="What an hour of a job's waiting is worth."),
    ] = None,
    hour_values: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="The same by user: columns user, value; --hour-value is for all others.",
        ),
    ] = None,
    target_wait: Annotated[
        str | None, typer.Option(metavar="TIME", help="Largest mean wait.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Simulations at once.")] = _WORKERS,
    kept: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep each result there, and go on from those."),
    ] = None,
    filters: Filters = None,
    log_options: LogOptions = LogOptions(),
    answering: PicturedAnswerOptions = PicturedAnswerOptions(),
) -> None:
    """Find how many machines to own, which jobs should wait, and what that costs.

    Every number of machines is simulated under every policy on the log: jobs run on owned machines
    or wait for them, or run on machines that are rented. The answer names the cheapest, with
    waiting at its value, and how sure it is.
    """
    if (log is None) == (model is None):
        raise InputError("no log, or two questions", expected="LOG, or --model RATE,RUNTIME")
    if model is None and mispredicted is not None:
        raise InputError(
            "on a log policies err as their predictor does",
            field="--mispredicted",
            value=mispredicted,
            expected="--model, or --runtimes and --waits",
        )
    question = WaitingRequest(
        policies=names_of(policies),
        counts=None if fixed is None else counts_of(fixed),
        waiting_seconds=times_of(wait_limit or ["24h"], "--wait-limit"),
        short_seconds=times_of(short or ["15min"], "--short"),
        owned=None if owned is None else (owned, owned_policy),
        hour_value=hour_value,
        hour_values=hour_values,
        longest_wait_seconds=math.inf
        if target_wait is None
        else times_of([target_wait], "--target-wait")[0],
        customised=customised,
    )
    if model is not None:
        _require_formula_suffices(question, order, scheduler)
        stated = {
            "--runtimes": runtimes if runtimes != "known" else None,
            "--waits": waits.value if waits is not Waits.KNOWN else None,
            "--kept": kept,
            "--filter": filters,
            "--reader": log_options.reader,
            "--mapping": log_options.mapping,
            "--processors": log_options.processors,
        }
        refuse(stated, "it says nothing about a formula", "a log")
    wrong = (0.0, 0.0) if mispredicted is None else wrong_shares(mispredicted)
    line = line_of(order, scheduler)
    from foresail.cloud.waiting.offers import owned_machines, owned_offer
    from foresail.reports.renting.rent_or_wait_page import policies_table, record, values_table
    from foresail.reports.renting.rent_or_wait_sentences import sentences

    answering.require_folder()
    catalogue = prices_of(prices)
    offer = owned_offer(catalogue, machine)
    owning = Owning(catalogue, offer, owned_machines(offer, term, fixed_price))
    if model is not None:
        answer, around = answer_by_formula(model, wrong, question, owning)
    else:
        assert log is not None
        from foresail.cli.log_options import load_as_one_pool

        workload = load_as_one_pool(log, log_options, filters or STANDARD_FILTERS)
        jobs = trace_jobs(workload, log)
        if machine is None and jobs.gpus is not None:
            offer = owned_offer(catalogue, None, jobs.requests)
            owning = Owning(catalogue, offer, owned_machines(offer, term, fixed_price))
        sources = BeliefSources(runtimes, waits)
        answer, around = answer_on_log(
            log, workload, jobs, question, owning, line, sources, workers, kept
        )
    tables = policies_table(answer, around), values_table(answer, around)
    show(answering.output_format, record(answer, around), sentences(answer, around), tables)
    if answering.output is not None:
        from foresail.reports.renting.rent_or_wait_page import rent_or_wait_page

        answering.write(rent_or_wait_page(answer, around))


def _require_formula_suffices(
    question: WaitingRequest, order: str | None, scheduler: str | None
) -> None:
    """Formulas know no memory, no users, and nothing but first come, first served."""
    if question.customised:
        raise InputError("a formula knows no memory", field="--customised", expected="a log")
    refuse({"--hour-values": question.hour_values}, "a formula knows no users", "a log")
    lines = {"--scheduler": scheduler, "--order": order}
    refuse(lines, "formulas are of first come, first served", "a log")
