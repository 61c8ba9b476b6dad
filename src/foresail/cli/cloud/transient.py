"""``foresail cloud transient``: what to rent so that a service has its capacity."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from foresail.cli.formats import naming_options, refuse, require_output
from foresail.cli.progress import doing
from foresail.cli.renting_options import AnswerOptions
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from foresail.cloud.histories import JointHistory
    from foresail.cloud.transient.offers import Offers
    from foresail.cloud.transient.plan import CapacityPlan
    from foresail.cloud.transient.tiers import Tier
    from foresail.reports.renting.transient_page import TrailingWindow, TransientAnswer

_DAY_SECONDS: Final = 86_400.0
_HELD_DAYS: Final = 7.0
_DRAWS: Final = 50
_SEED: Final = 1


def _tier(text: str) -> Tier:
    from foresail.cloud.transient.tiers import Tier

    name, _, units = text.partition("=")
    try:
        return Tier(name.strip(), float(units))
    except ValueError:
        expected = "NAME=UNITS, such as web=20"
        raise InputError("no tier", field="--tier", value=text, expected=expected) from None


_OPTIONS: Final = {
    "availability": "--availability",
    "extra_nines": "--extra-nines",
    "doubt_hours": "--doubt",
    "on_demand_price_per_unit_hour": "--on-demand-price",
}


def command(
    capacity: float | None = None,
    availability: float = 0.9999,
    types: Path | None = None,
    prices: str | None = None,
    machines: Path | None = None,
    market: str = "*",
    window: float | None = None,
    doubt: float = 3.0,
    correlated: bool = False,
    windows: list[float] | None = None,
    tiers: list[str] | None = None,
    made: Path | None = None,
    extra_nines: float = 0.0,
    on_demand_price: float | None = None,
    answering: AnswerOptions = AnswerOptions(),
) -> None:
    """The cheapest mix of transient machines that has a capacity with some availability.

    Types are read from a file, or estimated from histories of their markets. The plan is printed
    as a table or as JSON that an adapter can apply. Exit status 1: histories do not bear it out.

    Options:
        capacity UNITS: Capacity that the service needs.
        availability SHARE: Share of time that it must be there.
        types FILE: Types with capacity, availability and price.
        prices HISTORIES: Or price (or availability) histories of markets.
        machines FILE: With --prices: capacity of each instance type.
        market PATTERN: With --prices: markets of this name only.
        window DAYS: With --prices: learn from the last days.
        doubt HOURS: With --prices: put so many hours, half of them down, to each.
        correlated: With --prices: markets may fail together.
        windows --check-window DAYS: With --prices: see what holds of plans of so many days.
        tiers --tier NAME=UNITS: A tier, instead of --capacity; may be repeated.
        made --plan FILE.json: With --prices: a plan that was made before; see what it would have
            had.
        extra_nines NINES: Plan for so many nines more.
        on_demand_price PRICE: Of a unit of capacity for an hour, to compare with.
    """
    from foresail.cloud.transient.tiers import plan_tiers, realised_availability, tier_frontier
    from foresail.reports.renting.transient_page import (
        TransientAnswer,
        plan_tables,
        sentences,
        transient_page,
        transient_record,
        windows_table,
    )

    checks: dict[str, object] = {"--check-window": windows or None, "--plan": made}
    if prices is None:
        learning = {"--machines": machines, "--window": window, "--correlated": correlated or None}
        refuse({**checks, **learning}, "needs price histories", "--prices HISTORIES too")
    if tiers:
        refuse(checks, "is not known of tiers", "--capacity UNITS instead of --tier")
        refuse({"--capacity": capacity}, "the capacity is given twice", "--capacity or --tier")
    if made is not None:
        refuse({"--capacity": capacity}, "the plan has one of its own", "--plan or --capacity")
    known = (machines, market, doubt, correlated)
    learned = None if prices is None else _learned(prices, *known)
    with naming_options(_OPTIONS):
        offers = _offers(types, learned, window, on_demand_price)
    require_output(answering.output)
    named = "--tier" if tiers else "--capacity"
    with naming_options({**_OPTIONS, "capacity": named, "tiers": named}), doing("planning"):
        if tiers:
            parts = [_tier(text) for text in tiers]
            planned = plan_tiers(offers, parts, availability, extra_nines=extra_nines)
            along = tier_frontier(offers, parts, extra_nines=extra_nines)
            answer = TransientAnswer(offers, planned, availability, along)
            if learned is not None:
                had = partial(realised_availability, learned.history)
                answer = replace(
                    answer, realised=had(planned), held=[had(each) for _, each in along]
                )
        else:
            answer = _answer(offers, capacity, availability, made, extra_nines, learned, windows)
    answering.answer(
        transient_record(answer),
        sentences(answer),
        (*plan_tables(answer.plan), *([windows_table(answer.windows)] if answer.windows else [])),
        lambda: transient_page(answer),
        plan=answer.plan.to_record(),
    )
    if not answer.is_accepted:
        raise typer.Exit(1)


def _answer(
    offers: Offers,
    capacity: float | None,
    availability: float,
    made: Path | None,
    extra_nines: float,
    learned: OfferHistories | None,
    windows: Sequence[float] | None,
) -> TransientAnswer:
    """The plan made before, or the cheapest for a capacity; what each nine costs, and history."""
    from foresail.cloud.transient.offers import Offers
    from foresail.cloud.transient.plan import read_plan
    from foresail.cloud.transient.planning import cheaper, frontier, plan
    from foresail.reports.renting.transient_page import TransientAnswer

    if made is not None:
        planned = read_plan(made)
        along = frontier(offers, planned.capacity, extra_nines=planned.extra_nines)
        offers = Offers(tuple(each.type for each in planned.rented))
    else:
        if capacity is None:
            expected = "--capacity UNITS, --tier, or --plan"
            raise InputError("no capacity to plan for", expected=expected)
        along = frontier(offers, capacity, extra_nines=extra_nines)
        planned = cheaper(plan(offers, capacity, availability, extra_nines=extra_nines), along)
    by_target = [(each.target, each) for each in along]
    answer = TransientAnswer(offers, planned, planned.target, by_target)
    if learned is None:
        return answer
    checked = _checked(learned, planned, windows) if windows else ()
    answer = _held(learned.history, [planned, *along], replace(answer, windows=checked))
    if not windows or answer.is_accepted:
        return answer
    return replace(answer, held=_held_after(learned, along, answer, windows))


@dataclass(frozen=True)
class OfferHistories:
    """Histories of all markets on one time axis, and what estimates offers from a part of them."""

    history: JointHistory
    estimate: Callable[[JointHistory], Offers]


def _offers(
    types: Path | None, learned: OfferHistories | None, window: float | None, price: float | None
) -> Offers:
    """Types of a file, or as the last days of their histories (``window``; None: all) show them.

    The price is that on demand, of a unit of capacity for an hour, instead of what types have.

    Raises ``InputError`` if there is neither file nor histories, or both; or either cannot be read
    so.
    """
    from foresail.cloud.transient.offers import Offers
    from foresail.cloud.transient.plan import read_types

    if (types is None) == (learned is None):
        raise InputError(
            "no types to choose from, or two lists of them", expected="--types or --prices"
        )
    if learned is None:
        assert types is not None
        offers = Offers(read_types(types))
    else:
        seen = learned.history
        if window is not None:
            _require_days("--window", window)
            seen = seen.between(seen.end - window * _DAY_SECONDS, seen.end)
        offers = learned.estimate(seen)
    if price is None:
        return offers
    priced = [replace(each, on_demand_price_per_unit_hour=price) for each in offers.types]
    return replace(offers, types=tuple(priced))


def _learned(
    prices: str, machines: Path | None, market: str, doubt: float, correlated: bool
) -> OfferHistories:
    """Histories of markets and capacities of their machines, for offers to be estimated from.

    ``machines`` is the file with the capacity of each instance type; only markets whose name
    matches the pattern ``market`` count; ``doubt`` are hours, half of them down, that are put to
    what was seen of each; ``correlated`` markets may fail together.

    Raises ``InputError`` if no market has such a name, or the capacity of an instance type is
    missing.
    """
    from foresail.cloud.histories import joined
    from foresail.cloud.prices_reading import load_histories
    from foresail.cloud.transient.estimating import correlated_offers, estimated_offers
    from foresail.cloud.transient.plan import kinds_of_markets, read_kinds

    if machines is None:
        problem = "nothing says what capacity the machines have"
        raise InputError(problem, expected="--machines FILE with instance_type and capacity")
    by_type = read_kinds(machines)
    histories = [each for each in load_histories(prices) if fnmatch(each.market, market)]
    if not histories:
        raise InputError("no market of this name", source=prices, field="--market", value=market)
    kinds = kinds_of_markets(histories, by_type, machines)
    estimate = correlated_offers if correlated else estimated_offers
    return OfferHistories(joined(histories), partial(estimate, kinds=kinds, doubt_hours=doubt))


def _require_days(option: str, days: float) -> None:
    """A number of days must be above 0."""
    if not days > 0.0:
        raise InputError("no number of days", field=option, value=days, expected="above 0")


def _held(
    history: JointHistory, plans: Sequence[CapacityPlan], answer: TransientAnswer
) -> TransientAnswer:
    """Hold the answer's plan, then those of its frontier, to a history of their markets."""
    import numpy as np

    from foresail.cloud.histories import correlated_pairs
    from foresail.cloud.transient.estimating import realised, shuffled_availability

    found = [realised(history, each).availability for each in plans]
    random = np.random.default_rng(_SEED)
    apart = shuffled_availability(history, plans[0], draws=_DRAWS, random=random)
    return replace(
        answer,
        realised=found[0],
        shuffled=float(apart.mean()),
        together=correlated_pairs(history.only([each.type.name for each in plans[0].rented])),
        held=found[1:],
    )


def _held_after(
    learned: OfferHistories,
    along: Sequence[CapacityPlan],
    answer: TransientAnswer,
    windows: Sequence[float],
) -> list[float]:
    """The least that each plan of the frontier had, in history and after plans like it.

    It is 0 of those for less than the target, and beyond the first that has it: nobody looked.
    """
    found: list[float] = []
    for known, each in zip(answer.held, along, strict=True):
        tried = replace(answer, plan=each, realised=known, windows=())
        if each.target >= answer.target > max(found, default=0.0):
            tried = replace(tried, windows=_checked(learned, each, windows))
        found.append(tried.had if tried.windows else 0.0)
    return found


def _checked(
    learned: OfferHistories, planned: CapacityPlan, windows: Sequence[float]
) -> list[TrailingWindow]:
    """Every window, and an oracle; all begin where the longest window allows."""
    from foresail.cloud.transient.estimating import rolled
    from foresail.cloud.transient.planning import plan
    from foresail.reports.renting.transient_page import ORACLE, TrailingWindow

    for days in windows:
        _require_days("--check-window", days)
    most = learned.history.total_seconds / _DAY_SECONDS
    if max(windows) >= most:
        raise InputError(
            "the history ends before the first plan",
            field="--check-window",
            value=max(windows),
            expected=f"less than the {most:.4g} days of the history",
        )
    kinds = [(f"{days:g} days", days * _DAY_SECONDS) for days in windows]
    return [
        TrailingWindow(
            name,
            rolled(
                learned.history,
                lambda seen: plan(
                    learned.estimate(seen),
                    planned.capacity,
                    planned.target,
                    extra_nines=planned.extra_nines,
                ),
                window_seconds=seconds,
                step_seconds=_HELD_DAYS * _DAY_SECONDS,
                first_seconds=max(windows) * _DAY_SECONDS,
            ),
        )
        for name, seconds in [*kinds, (ORACLE, None)]
    ]
