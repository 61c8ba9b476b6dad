"""``foresail cloud transient``: what to rent so that a service has its capacity."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from foresail.cli.cloud._options import AnswerOptions, echo, naming_options, print_numbers
from foresail.cli.cloud._transient import (
    LONGEST_WAIT_SECONDS,
    checked,
    held_to,
    learned_of,
    offers_of,
)
from foresail.cli.formats import Format, print_json, refuse
from foresail.cli.progress import doing
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foresail.cli.cloud._transient import OfferHistories
    from foresail.cloud.transient.offers import Offers
    from foresail.cloud.transient.tiers import Tier
    from foresail.reports.renting.transient_page import TieredAnswer, TransientAnswer


def show(answer: TransientAnswer, answering: AnswerOptions) -> None:
    """Print a plan, and write the page about it where one is asked for."""
    from foresail.reports.renting.transient_page import (
        plan_table,
        sentences,
        transient_page,
        transient_record,
        windows_table,
    )

    if answering.output_format is Format.JSON:
        print_json(transient_record(answer))
    else:
        print_numbers(plan_table(answer.plan))
        typer.echo()
        if answer.windows:
            print_numbers(windows_table(answer.windows))
            typer.echo()
        for sentence in sentences(answer):
            echo(sentence)
    if answering.output is not None:
        answering.write(transient_page(answer), plan=answer.plan.to_record())


def show_tiers(answer: TieredAnswer, answering: AnswerOptions) -> None:
    """Print the plans of tiers, and write the page about them where one is asked for."""
    from foresail.reports.renting.transient_page import (
        tier_record,
        tier_sentences,
        tier_tables,
        tiers_page,
        tiers_table,
    )

    if answering.output_format is Format.JSON:
        print_json(tier_record(answer))
    else:
        for table in (*tier_tables(answer.plan), tiers_table(answer.plan)):
            typer.echo(table.title)
            print_numbers(table)
            typer.echo()
        for sentence in tier_sentences(answer):
            echo(sentence)
    if answering.output is not None:
        answering.write(tiers_page(answer), plan=answer.plan.to_record())


def answer_of(
    offers: Offers, capacity: float, availability: float, extra_nines: float
) -> TransientAnswer:
    """The cheapest plan for a capacity, and what each nine would cost."""
    from foresail.cloud.transient.planning import cheaper, frontier, plan
    from foresail.reports.renting.transient_page import TransientAnswer

    planned = plan(offers, capacity, availability, extra_nines=extra_nines)
    along = frontier(offers, capacity, extra_nines=extra_nines)
    return TransientAnswer(offers, cheaper(planned, along), along)


def answer_of_plan(offers: Offers, path: Path) -> TransientAnswer:
    """A plan as it was made, beside what each nine would cost now."""
    from foresail.cloud.transient.offers import Offers
    from foresail.cloud.transient.plan import read_plan
    from foresail.cloud.transient.planning import frontier
    from foresail.reports.renting.transient_page import TransientAnswer

    planned = read_plan(path)
    along = frontier(offers, planned.capacity, extra_nines=planned.extra_nines)
    return TransientAnswer(Offers(tuple(each.type for each in planned.rented)), planned, along)


def tiered_answer(
    offers: Offers,
    tiers: Sequence[str],
    availability: float,
    extra_nines: float,
    learned: OfferHistories | None,
) -> TieredAnswer:
    """Plans for tiers, each a text ``NAME=UNITS``; held to the histories where there are any."""
    from foresail.cloud.transient.tiers import plan_tiers, realised_availability, tier_frontier
    from foresail.reports.renting.transient_page import TieredAnswer

    parts = [_tier(text) for text in tiers]
    planned = plan_tiers(offers, parts, availability, extra_nines=extra_nines)
    return TieredAnswer(
        offers,
        planned,
        availability,
        tier_frontier(offers, parts, extra_nines=extra_nines),
        None if learned is None else realised_availability(learned.history, planned),
    )


def _tier(text: str) -> Tier:
    from foresail.cloud.transient.tiers import Tier

    name, _, units = text.partition("=")
    try:
        return Tier(name.strip(), float(units))
    except ValueError:
        raise InputError(
            "no tier", field="--tier", value=text, expected="NAME=UNITS, such as web=20"
        ) from None


_OPTIONS: Final = {
    "availability": "--availability",
    "extra_nines": "--extra-nines",
    "doubt_hours": "--doubt",
    "requests_per_second": "--requests",
    "longest_wait_seconds": "--longest-wait",
}


def command(
    capacity: Annotated[
        float | None, typer.Option(metavar="UNITS", help="Capacity that the service needs.")
    ] = None,
    availability: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of time that it must be there.")
    ] = 0.9999,
    types: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Types with capacity, availability and price."),
    ] = None,
    prices: Annotated[
        str | None,
        typer.Option(metavar="HISTORIES", help="Or price (or availability) histories of markets."),
    ] = None,
    machines: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --prices: capacity of each instance type."),
    ] = None,
    market: Annotated[
        str, typer.Option(metavar="PATTERN", help="With --prices: markets of this name only.")
    ] = "*",
    window: Annotated[
        float | None, typer.Option(metavar="DAYS", help="With --prices: learn from the last days.")
    ] = None,
    doubt: Annotated[
        float,
        typer.Option(
            metavar="HOURS", help="With --prices: put so many hours, half of them down, to each."
        ),
    ] = 3.0,
    correlated: Annotated[
        bool, typer.Option("--correlated", help="With --prices: markets may fail together.")
    ] = False,
    windows: Annotated[
        list[float] | None,
        typer.Option(
            "--check-window",
            metavar="DAYS",
            help="With --prices: plan of so many days again and again, and see what holds.",
        ),
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(
            metavar="UNITSxHOURS", help="With --prices: run such batch tasks on the surplus."
        ),
    ] = None,
    requests: Annotated[
        float | None,
        typer.Option(
            metavar="PER_SECOND", help="With --prices: send requests, and see which fail."
        ),
    ] = None,
    longest_wait: Annotated[
        float, typer.Option(metavar="SECONDS", help="With --requests: for how long one may queue.")
    ] = LONGEST_WAIT_SECONDS,
    tiers: Annotated[
        list[str] | None,
        typer.Option(
            "--tier", metavar="NAME=UNITS", help="A tier, instead of --capacity; may be repeated."
        ),
    ] = None,
    made: Annotated[
        Path | None,
        typer.Option(
            "--plan",
            metavar="FILE.json",
            help="With --prices: a plan that was made before; see what it would have had.",
        ),
    ] = None,
    extra_nines: Annotated[
        float, typer.Option(metavar="NINES", help="Plan for so many nines more.")
    ] = 0.0,
    on_demand_price: Annotated[
        float | None,
        typer.Option(metavar="PRICE", help="Of a unit of capacity for an hour, to compare with."),
    ] = None,
    answering: AnswerOptions = AnswerOptions(),
) -> None:
    """The cheapest mix of transient machines that has a capacity with some availability.

    Types are read from a file, or estimated from histories of their markets. The plan is printed
    as a table or as JSON that an adapter can apply.
    """
    in_history: dict[str, object] = {
        "--batch": batch,
        "--requests": requests,
        "--check-window": windows or None,
    }
    if prices is None:
        learning = {
            "--machines": machines,
            "--window": window,
            "--correlated": correlated or None,
            "--plan": made,
        }
        refuse({**in_history, **learning}, "needs price histories", "--prices HISTORIES too")
    if tiers:
        in_history["--plan"] = made
        refuse(in_history, "is not known of tiers", "--capacity UNITS instead of --tier")
    learned = (
        learned_of(prices, machines, market, doubt, correlated) if prices is not None else None
    )
    with naming_options({"doubt_hours": "--doubt"}):
        offers = offers_of(types, learned, window, on_demand_price)
    answering.require_folder()
    if tiers:
        if capacity is not None:
            raise InputError("the capacity is given twice", expected="--capacity or --tier")
        options = {**_OPTIONS, "capacity": "--tier", "tiers": "--tier"}
        with naming_options(options), doing("planning tiers"):
            tiered = tiered_answer(offers, tiers, availability, extra_nines, learned)
        show_tiers(tiered, answering)
        return
    options = {**_OPTIONS, "capacity": "--capacity"}
    with naming_options(options), doing("planning capacity"):
        answer = _answer(offers, capacity, availability, made, extra_nines)
        if learned is not None:
            held = held_to(learned.history, answer.plan, batch, requests, longest_wait)
            answer = replace(answer, held=held)
        if learned is not None and windows:
            answer = replace(answer, windows=checked(learned, answer, windows))
    show(answer, answering)


def _answer(
    offers: Offers,
    capacity: float | None,
    availability: float,
    made: Path | None,
    extra_nines: float,
) -> TransientAnswer:
    """The plan that was made before, or one for a capacity."""
    if made is not None:
        refuse({"--capacity": capacity}, "the plan has one of its own", "--plan or --capacity")
        return answer_of_plan(offers, made)
    if capacity is None:
        raise InputError("no capacity to plan for", expected="--capacity UNITS, --tier, or --plan")
    return answer_of(offers, capacity, availability, extra_nines)
