"""``foresail cloud transient``: what to rent so that a service has its capacity."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from foresail.cli.cloud._options import Config, Format, FormatOption, Output, made_by
from foresail.cloud.transient.methods import Method
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from foresail.cloud.transient.batch import BatchDone
    from foresail.cloud.transient.estimating import MachineKind
    from foresail.cloud.transient.joint import JointHistory
    from foresail.cloud.transient.machines import Machines
    from foresail.cloud.transient.offers import Offers
    from foresail.cloud.transient.plan import CapacityPlan
    from foresail.cloud.transient.tiers import Tier, TieredPlan
    from foresail.reports.transient_page import HeldToHistory, TransientAnswer, Window

_DAY: Final = 86_400.0
_DRAWS: Final = 50
_SEED: Final = 1
_MOST_TASKS: Final = 3_000_000


@dataclass(frozen=True)
class _Learned:
    """Histories that offers are estimated from, and how."""

    history: JointHistory
    estimate: Callable[[JointHistory], Offers]


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
    held_days: Annotated[
        float, typer.Option(metavar="DAYS", help="How long a checked plan is held to.")
    ] = 7.0,
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
    tiers: Annotated[
        list[str] | None,
        typer.Option(
            "--tier", metavar="NAME=UNITS", help="A tier, instead of --capacity; may be repeated."
        ),
    ] = None,
    method: Annotated[Method, typer.Option(help="How machines are chosen.")] = Method.BEST,
    extra_nines: Annotated[
        float, typer.Option(metavar="NINES", help="Plan for so many nines more.")
    ] = 0.0,
    on_demand_price: Annotated[
        float | None,
        typer.Option(metavar="PRICE", help="Of a unit of capacity for an hour, to compare with."),
    ] = None,
    config: Config = None,
    output_format: FormatOption = Format.TABLE,
    output: Output = None,
) -> None:
    """The cheapest mix of transient machines that has a capacity with some availability.

    Types are read from a file, or estimated from histories of their markets. The plan is printed
    as a table or as JSON that an adapter can apply.
    """
    del config
    learned = _learned(prices, machines, market, doubt, correlated) if prices is not None else None
    offers = _offers(types, learned, window, on_demand_price)
    if tiers:
        if capacity is not None:
            raise InputError("the capacity is given twice", expected="--capacity or --tier")
        _plan_tiers(offers, tiers, availability, method, extra_nines, output_format, output)
        return
    if capacity is None:
        raise InputError("no capacity to plan for", expected="--capacity UNITS, or --tier")
    answer = _answer(offers, capacity, availability, method, extra_nines)
    if learned is not None:
        answer = replace(answer, held=_held(learned.history, answer.plan, batch, requests))
    if learned is not None and windows:
        answer = replace(answer, windows=_checked(learned, answer, windows, held_days, method))
    if output_format is Format.JSON:
        typer.echo(json.dumps(_record(answer), indent=2, allow_nan=False))
    else:
        _print(answer)
    if output is not None:
        _write(answer, output)


def _offers(
    types: Path | None, learned: _Learned | None, window: float | None, price: float | None
) -> Offers:
    """Types of a file, or as the last days of their histories show them."""
    from foresail.cloud.transient.offers import Offers
    from foresail.cloud.transient.reading import read_types

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
            seen = seen.between(seen.end - window * _DAY, seen.end)
        offers = learned.estimate(seen)
    if price is None:
        return offers
    priced = (replace(each, on_demand_price_per_unit_hour=price) for each in offers.types)
    return replace(offers, types=tuple(priced))


def _learned(
    prices: str, machines: Path | None, market: str, doubt: float, correlated: bool
) -> _Learned:
    from foresail.cloud.prices_reading import load_histories
    from foresail.cloud.transient.estimating import correlated_offers, estimated_offers
    from foresail.cloud.transient.joint import joined
    from foresail.cloud.transient.reading import read_kinds

    if machines is None:
        raise InputError(
            "nothing says what capacity the machines have",
            expected="--machines FILE with instance_type and capacity",
        )
    by_type = read_kinds(machines)
    histories = [each for each in load_histories(prices) if fnmatch(each.market, market)]
    if not histories:
        raise InputError("no market of this name", source=prices, field="--market", value=market)
    kinds: dict[str, MachineKind] = {}
    for each in histories:
        if each.instance_type not in by_type:
            raise InputError(
                "the capacity of an instance type is missing",
                source=machines,
                field="instance_type",
                value=each.instance_type,
            )
        kinds[each.market] = by_type[each.instance_type].or_on_demand(each.on_demand_per_hour)
    estimate = correlated_offers if correlated else estimated_offers
    return _Learned(joined(histories), partial(estimate, kinds=kinds, doubt_hours=doubt))


def _answer(
    offers: Offers,
    capacity: float,
    availability: float,
    method: Method,
    extra_nines: float,
) -> TransientAnswer:
    from foresail.cloud.transient.frontier import frontier
    from foresail.cloud.transient.planning import plan
    from foresail.reports.transient_page import TransientAnswer

    planned = plan(offers, capacity, availability, method=method, extra_nines=extra_nines)
    along = frontier(offers, capacity, method=method)
    return TransientAnswer(offers, planned, along)


def _held(
    history: JointHistory, planned: CapacityPlan, batch: str | None, requests: float | None
) -> HeldToHistory:
    import numpy as np

    from foresail.cloud.transient.estimating import realised, shuffled_availability
    from foresail.cloud.transient.machines import machines_of
    from foresail.cloud.transient.serving import Cordoned, Traffic, Unprotected, serve
    from foresail.reports.transient_page import HeldToHistory

    random = np.random.default_rng(_SEED)
    shuffled = shuffled_availability(history, planned, draws=_DRAWS, random=random)
    held = HeldToHistory(realised(history, planned), shuffled)
    machines = machines_of(history, planned)
    if batch is not None:
        held = replace(held, batch=_batch(machines, planned, batch))
    if requests is not None:
        traffic = Traffic(requests_per_second=requests)
        held = replace(
            held,
            served=serve(machines, traffic, Cordoned(), random),
            served_unprotected=serve(machines, traffic, Unprotected(), random),
        )
    return held


def _batch(machines: Machines, planned: CapacityPlan, text: str) -> BatchDone:
    """Enough tasks of a size to keep the surplus busy throughout."""
    import math

    import numpy as np

    from foresail.cloud.transient.batch import run_batch, surplus
    from foresail.cloud.transient.serving import Cordoned, absence

    try:
        units, hours = (float(part) for part in text.split("x"))
    except ValueError:
        units = hours = 0.0
    if not (0.0 < units < math.inf and 0.0 < hours < math.inf):
        raise InputError(
            "no batch task", field="--batch", value=text, expected="UNITSxHOURS, such as 4x0.5"
        )
    away = absence(machines, Cordoned(), np.random.default_rng(_SEED))
    offered = surplus(machines, away, planned.capacity)
    seconds = hours * 3600.0
    many = math.ceil(offered.capacity_seconds / (units * seconds)) + math.ceil(
        float(offered.capacity.max()) / units
    )
    if many > _MOST_TASKS:
        raise InputError(
            f"more than {_MOST_TASKS:,} tasks", field="--batch", value=text, expected="larger ones"
        )
    return run_batch(offered, np.full(many, units), np.full(many, seconds))


def _checked(
    learned: _Learned,
    answer: TransientAnswer,
    windows: Sequence[float],
    held_days: float,
    method: Method,
) -> list[Window]:
    """Every window, and an oracle; all begin where the longest window allows."""
    from foresail.cloud.transient.estimating import rolled
    from foresail.reports.transient_page import Window

    for days in (*windows, held_days):
        if not days > 0.0:
            raise InputError("no number of days", value=days, expected="above 0")
    planned = answer.plan
    kinds = [(f"{days:g} days", days * _DAY) for days in windows]
    return [
        Window(
            name,
            rolled(
                learned.history,
                learned.estimate,
                planned.capacity,
                planned.target,
                window_seconds=seconds,
                step_seconds=held_days * _DAY,
                first_seconds=max(windows) * _DAY,
                method=method,
                extra_nines=planned.extra_nines,
            ),
        )
        for name, seconds in [*kinds, ("oracle", None)]
    ]


def _record(answer: TransientAnswer) -> dict[str, Any]:
    """The plan's record, and what else is known of it."""
    from foresail.reports.transient_page import frontier_table, windows_table

    record = answer.plan.to_record()
    record["frontier"] = frontier_table(answer.frontier).to_dicts()
    if answer.held is not None:
        record["availability_in_history"] = answer.held.realised.availability
        record["availability_in_shuffled_history"] = float(answer.held.shuffled.mean())
        for name in ("batch", "served", "served_unprotected"):
            done = getattr(answer.held, name)
            if done is not None:
                record[name] = asdict(done)
    if answer.windows:
        table = windows_table(answer.windows).table.fill_nan(None)
        record["windows"] = table.to_dicts()
    return record


def _print(answer: TransientAnswer) -> None:
    from foresail.cli.trace._tables import print_table
    from foresail.reports.transient_page import plan_table, sentences, windows_table

    tables = [plan_table(answer.plan)]
    if answer.windows:
        tables.append(windows_table(answer.windows))
    for table in tables:
        print_table(table.headings, table.rows, right=len(table.headings) - 1)
        typer.echo()
    for sentence in sentences(answer):
        _echo(sentence)


def _echo(sentence: str) -> None:
    import textwrap

    typer.echo(textwrap.fill(sentence, 100, break_on_hyphens=False))


def _write(answer: TransientAnswer, folder: Path) -> None:
    from foresail.reports.cloud_page import write_cloud_page
    from foresail.reports.files import make_folder, write_whole
    from foresail.reports.transient_page import transient_page

    make_folder(folder)
    content = json.dumps(answer.plan.to_record(), indent=2, allow_nan=False)
    write_whole(folder / "plan.json", content.encode())
    path = write_cloud_page(transient_page(answer), folder, command=made_by())
    typer.echo(f"report: {path}; plan: {folder / 'plan.json'}", err=True)


def _plan_tiers(
    offers: Offers,
    tiers: Sequence[str],
    availability: float,
    method: Method,
    extra_nines: float,
    output_format: Format,
    output: Path | None,
) -> None:
    """A plan for every tier: a record with all of them, or a table each."""
    from foresail.cloud.transient.tiers import plan_tiers
    from foresail.reports.files import make_folder, write_whole

    planned = plan_tiers(
        offers,
        [_tier(text) for text in tiers],
        availability,
        method=method,
        extra_nines=extra_nines,
    )
    content = json.dumps(planned.to_record(), indent=2, allow_nan=False)
    if output_format is Format.JSON:
        typer.echo(content)
    else:
        _print_tiers(planned)
    if output is not None:
        make_folder(output)
        write_whole(output / "plan.json", content.encode())
        typer.echo(f"plan: {output / 'plan.json'}", err=True)


def _tier(text: str) -> Tier:
    from foresail.cloud.transient.tiers import Tier

    name, _, units = text.partition("=")
    try:
        return Tier(name.strip(), float(units))
    except ValueError:
        raise InputError(
            "no tier", field="--tier", value=text, expected="NAME=UNITS, such as web=20"
        ) from None


def _print_tiers(planned: TieredPlan) -> None:
    from foresail.cli.trace._tables import print_table
    from foresail.cloud.transient.planning import said_availability
    from foresail.model.words import number
    from foresail.reports.transient_page import plan_table

    for tier, each in zip(planned.tiers, planned.plans, strict=True):
        typer.echo(f"{tier.name}: {number(tier.capacity)} units")
        table = plan_table(each)
        print_table(table.headings, table.rows, right=len(table.headings) - 1)
        typer.echo()
    _echo(
        f"All tiers are up {said_availability(1.0 - planned.availability)} of the time, for "
        f"{number(planned.price_per_hour)} an hour; were their machines independent of each other, "
        f"{said_availability(1.0 - planned.independent_availability)}."
    )
