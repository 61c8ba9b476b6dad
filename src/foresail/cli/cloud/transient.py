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
    from collections.abc import Callable, Mapping, Sequence

    from foresail.cloud.transient.batch import BatchDone
    from foresail.cloud.transient.estimating import MachineKind
    from foresail.cloud.transient.joint import JointHistory
    from foresail.cloud.transient.machines import Machines
    from foresail.cloud.transient.offers import Offers
    from foresail.cloud.transient.overload import Overload
    from foresail.cloud.transient.plan import CapacityPlan
    from foresail.cloud.transient.tiers import Tier
    from foresail.reports.cloud_page import CloudPage
    from foresail.reports.tiers_page import TieredAnswer
    from foresail.reports.transient_page import HeldToHistory, TransientAnswer, Window

_DAY: Final = 86_400.0
_DRAWS: Final = 50
_SEED: Final = 1
_MOST_TASKS: Final = 3_000_000
_LONGEST_WAIT: Final = 1.0


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
    longest_wait: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="With --requests: for how long one may queue."),
    ] = _LONGEST_WAIT,
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
        _refuse({**in_history, **learning}, "needs price histories", "--prices HISTORIES too")
    if tiers:
        in_history["--plan"] = made
        _refuse(in_history, "is not told of tiers", "--capacity UNITS instead of --tier")
    learned = _learned(prices, machines, market, doubt, correlated) if prices is not None else None
    offers = _offers(types, learned, window, on_demand_price)
    if tiers:
        if capacity is not None:
            raise InputError("the capacity is given twice", expected="--capacity or --tier")
        tiered = _tiered(offers, tiers, availability, method, extra_nines, learned)
        _show_tiers(tiered, output_format, output)
        return
    if made is not None:
        _refuse({"--capacity": capacity}, "the plan has one of its own", "--plan or --capacity")
        answer = _answer_of_plan(offers, made, method)
    elif capacity is None:
        raise InputError("no capacity to plan for", expected="--capacity UNITS, --tier, or --plan")
    else:
        answer = _answer(offers, capacity, availability, method, extra_nines)
    if learned is not None:
        held = _held(learned.history, answer.plan, batch, requests, longest_wait)
        answer = replace(answer, held=held)
    if learned is not None and windows:
        answer = replace(answer, windows=_checked(learned, answer, windows, held_days, method))
    if output_format is Format.JSON:
        typer.echo(json.dumps(_record(answer), indent=2, allow_nan=False))
    else:
        _print(answer)
    if output is not None:
        _write(answer, output)


def _refuse(given: Mapping[str, object], problem: str, expected: str) -> None:
    """Options that would be ignored are errors."""
    for field, value in given.items():
        if value is not None:
            raise InputError(problem, field=field, value=value, expected=expected)


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
            _demand_days("--window", window)
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
    from foresail.cloud.transient.frontier import cheaper, frontier
    from foresail.cloud.transient.planning import plan
    from foresail.reports.transient_page import TransientAnswer

    planned = plan(offers, capacity, availability, method=method, extra_nines=extra_nines)
    along = frontier(offers, capacity, method=method, extra_nines=extra_nines)
    return TransientAnswer(offers, cheaper(planned, along), along)


def _answer_of_plan(offers: Offers, path: Path, method: Method) -> TransientAnswer:
    """A plan as it was made, beside what each nine would cost now."""
    from foresail.cloud.transient.frontier import frontier
    from foresail.cloud.transient.offers import Offers
    from foresail.cloud.transient.reading import read_plan
    from foresail.reports.transient_page import TransientAnswer

    planned = read_plan(path)
    along = frontier(offers, planned.capacity, method=method, extra_nines=planned.extra_nines)
    return TransientAnswer(Offers(tuple(each.type for each in planned.rented)), planned, along)


def _held(
    history: JointHistory,
    planned: CapacityPlan,
    batch: str | None,
    requests: float | None,
    longest_wait: float,
) -> HeldToHistory:
    import numpy as np

    from foresail.cloud.transient.estimating import realised, shuffled_availability
    from foresail.cloud.transient.machines import machines_of
    from foresail.cloud.transient.serving import Cordoned, Traffic, Unprotected, serve
    from foresail.reports.transient_page import HeldToHistory

    random = np.random.default_rng(_SEED)
    shuffled = shuffled_availability(history, planned, draws=_DRAWS, random=random)
    held = HeldToHistory(realised(history, planned), shuffled, _together(history, planned))
    machines = machines_of(history, planned)
    if batch is not None:
        held = replace(held, batch=_batch(machines, planned, batch))
    if requests is not None:
        traffic = Traffic(requests_per_second=requests)
        held = replace(
            held,
            served=serve(machines, traffic, Cordoned(), random),
            served_unprotected=serve(machines, traffic, Unprotected(), random),
            overload=_overload(machines, planned, requests, longest_wait),
        )
    return held


def _overload(
    machines: Machines, planned: CapacityPlan, requests: float, longest_wait: float
) -> Overload:
    """What queues and is turned away while there is less than the capacity."""
    import numpy as np

    from foresail.cloud.transient.batch import surplus
    from foresail.cloud.transient.overload import overload
    from foresail.cloud.transient.serving import Cordoned, absence

    away = absence(machines, Cordoned(), np.random.default_rng(_SEED))
    there = surplus(machines, away, 0.0)
    return overload(there, requests, requests / planned.capacity, longest_wait)


def _together(history: JointHistory, planned: CapacityPlan) -> list[tuple[str, str, float]]:
    """How the plan's markets go together, pair by pair, the most first."""
    from itertools import combinations

    import numpy as np

    part = history.of([each.type.name for each in planned.rented])
    found = part.correlations()
    pairs = [
        (part.names[one], part.names[other], float(found[one, other]))
        for one, other in combinations(range(len(part.names)), 2)
        if np.isfinite(found[one, other])
    ]
    return sorted(pairs, key=lambda pair: -pair[2])


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

    for days in windows:
        _demand_days("--check-window", days)
    _demand_days("--held-days", held_days)
    most = learned.history.total_seconds / _DAY
    if max(windows) >= most:
        raise InputError(
            "the history ends before the first plan",
            field="--check-window",
            value=max(windows),
            expected=f"less than the {most:.4g} days of the history",
        )
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


def _demand_days(option: str, days: float) -> None:
    if not days > 0.0:
        raise InputError("no number of days", field=option, value=days, expected="above 0")


def _record(answer: TransientAnswer) -> dict[str, Any]:
    """The plan's record, and what else is known of it."""
    from foresail.reports.transient_figures import frontier_table
    from foresail.reports.transient_page import windows_table

    record = answer.plan.to_record()
    plans = [(each.target, each) for each in answer.frontier]
    record["frontier"] = frontier_table(plans).to_dicts()
    if answer.held is not None:
        record["availability_in_history"] = answer.held.realised.availability
        record["availability_in_shuffled_history"] = float(answer.held.shuffled.mean())
        record["correlations"] = [
            {"market": one, "and": other, "correlation": value}
            for one, other, value in answer.held.together
        ]
        for name in ("batch", "served", "served_unprotected", "overload"):
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
    from foresail.reports.transient_page import transient_page

    _write_page(transient_page(answer), answer.plan.to_record(), folder)


def _write_page(page: CloudPage, record: Mapping[str, Any], folder: Path) -> None:
    """The page, its numbers, and the plan for a machine to apply."""
    from foresail.reports.cloud_page import write_cloud_page
    from foresail.reports.files import make_folder, write_whole

    make_folder(folder)
    content = json.dumps(record, indent=2, allow_nan=False)
    write_whole(folder / "plan.json", content.encode())
    path = write_cloud_page(page, folder, command=made_by())
    typer.echo(f"report: {path}; plan: {folder / 'plan.json'}", err=True)


def _tiered(
    offers: Offers,
    tiers: Sequence[str],
    availability: float,
    method: Method,
    extra_nines: float,
    learned: _Learned | None,
) -> TieredAnswer:
    from foresail.cloud.transient.tiers import plan_tiers, realised_availability, tier_frontier
    from foresail.reports.tiers_page import TieredAnswer

    parts = [_tier(text) for text in tiers]
    planned = plan_tiers(offers, parts, availability, method=method, extra_nines=extra_nines)
    return TieredAnswer(
        offers,
        planned,
        availability,
        tier_frontier(offers, parts, method=method, extra_nines=extra_nines),
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


def _show_tiers(answer: TieredAnswer, output_format: Format, output: Path | None) -> None:
    from foresail.cli.trace._tables import print_table
    from foresail.reports.tiers_page import (
        tier_record,
        tier_sentences,
        tier_tables,
        tiers_page,
        tiers_table,
    )

    if output_format is Format.JSON:
        typer.echo(json.dumps(tier_record(answer), indent=2, allow_nan=False))
    else:
        for table in (*tier_tables(answer.plan), tiers_table(answer.plan)):
            typer.echo(table.title)
            print_table(table.headings, table.rows, right=len(table.headings) - 1)
            typer.echo()
        for sentence in tier_sentences(answer):
            _echo(sentence)
    if output is not None:
        _write_page(tiers_page(answer), answer.plan.to_record(), output)
