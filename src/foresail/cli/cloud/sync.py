"""``foresail cloud sync``: what waiting for each other costs workers of differing speed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from foresail.cli.cloud._options import AnswerOptions, print_numbers
from foresail.cli.formats import Format, print_json, refuse
from foresail.cli.progress import doing
from foresail.model.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from foresail.cloud.synchronization.costing import Costs, DrawnCosts
    from foresail.cloud.synchronization.models import BarrierProgram
    from foresail.model.distribution import Distribution
    from foresail.model.short_form import PlugIn

STANDARD: Final = (
    "on_demand",
    "transient",
    "replicas(count=k)",
    "partial(dropped=k/2)",
    "fsp(dropped=k-1)",
)
"""What is compared when no model is named."""
_MOST_WORKERS: Final = 100_000
_ALONE: Final = "changes nothing alone"

_LOWEST: Final = 0.05
_MODEL_HELP: Final = f'Such as "replicas(count=2)"; may be repeated [{", ".join(STANDARD)}].'
_LOWEST_HELP: Final = f"Slower workers count as this fast [{_LOWEST} where speeds are drawn]."


def command(
    workers: Annotated[
        str, typer.Option(metavar="FIRST:LAST", help="Numbers of workers, or 4,8,16.")
    ] = "1:64",
    models: Annotated[
        list[str] | None, typer.Option("--model", metavar="MODEL", help=_MODEL_HELP)
    ] = None,
    operations: Annotated[float, typer.Option(help="All work; one worker does one a second.")] = (
        8_000.0
    ),
    barriers: Annotated[int, typer.Option(help="How often all workers synchronise.")] = 500,
    network: Annotated[
        float, typer.Option(metavar="SECONDS", help="A worker's messages at one barrier.")
    ] = 0.175,
    discount: Annotated[
        float, typer.Option(metavar="SHARE", help="How much cheaper transient workers are.")
    ] = 0.9,
    speeds: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json", help="Speeds as a record of a distribution [uniform, 0 to 1]."
        ),
    ] = None,
    prices: Annotated[
        str | None,
        typer.Option(metavar="HISTORIES", help="Speeds measured: workers work while one is up."),
    ] = None,
    market: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which market of the histories.")
    ] = None,
    lowest_speed: Annotated[float | None, typer.Option(metavar="SPEED", help=_LOWEST_HELP)] = None,
    monte_carlo: Annotated[
        int, typer.Option(metavar="RUNS", min=0, help="Draw speeds so often; 0: expected speeds.")
    ] = 0,
    speed_intervals: Annotated[
        int, typer.Option(min=1, help="Intervals that a drawn speed lasts.")
    ] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Of the draws.")] = 1,
    answering: AnswerOptions = AnswerOptions(),
) -> None:
    """Time and cost of ways to synchronise, against the number of workers.

    A model may say its numbers by the number of workers k: fsp(dropped=k-1),
    partial(dropped=k/2), replicas(count=k), hybrid(dropped=k-1,replicas=2),
    staleness(intervals=10). By default speeds are expected ones, as published; --monte-carlo
    draws them.
    """
    from foresail.cloud.synchronization.models import BarrierProgram, model_of

    if prices is None:
        refuse({"--market": market}, _ALONE, "--prices HISTORIES too")
    if speed_intervals > 1 and not monte_carlo:
        refuse({"--speed-intervals": speed_intervals}, _ALONE, "--monte-carlo RUNS too")
    setting = BarrierProgram(operations, barriers, network, discount)
    counts = _workers(workers)
    parts = [model_of(text) for text in models or STANDARD]
    for part in parts:
        part.build().rules(counts)
    interval = operations / barriers
    given, how = _speeds(speeds, prices, market, interval, lowest_speed, monte_carlo > 0)
    how += f"; drawn {monte_carlo:,} times" if monte_carlo else ""
    answering.require_folder()
    with doing("costs of synchronisation"):
        found = _found(parts, setting, counts, given, monte_carlo, speed_intervals, seed)
    if answering.output_format is Format.JSON:
        _print_json(found)
    else:
        _print_table(found)
        typer.echo(f"\nTransient workers: {how}.")
    if answering.output is not None:
        from foresail.reports.renting.synchronization_page import synchronization_page

        answering.write(synchronization_page(setting, found, how))


def _workers(text: str) -> NDArray[np.int64]:
    import numpy as np

    try:
        first, colon, last = text.partition(":")
        if colon:
            counts = np.arange(int(first), min(int(last), _MOST_WORKERS + 1) + 1)
        else:
            counts = np.array([int(each) for each in text.split(",")])
    except ValueError:
        counts = np.empty(0, dtype=np.int64)
    if not counts.size or counts.min() < 1 or counts.max() > _MOST_WORKERS:
        raise InputError(
            "no numbers of workers",
            field="--workers",
            value=text,
            expected=f"1 to {_MOST_WORKERS}, such as 1:64 or 4,8,16",
        )
    return counts


def _speeds(
    file: Path | None,
    prices: str | None,
    market: str | None,
    interval_seconds: float,
    lowest: float | None,
    drawn: bool,
) -> tuple[Distribution | None, str]:
    """Speeds of transient workers, None for the published ones; and what they are in words."""
    from foresail.cloud.synchronization.models import at_least
    from foresail.distributions.basic import Uniform
    from foresail.distributions.records import read_record

    if file is not None and prices is not None:
        raise InputError(
            "speeds are given twice", field="--prices", value=prices, expected="or --speeds"
        )
    if file is None and prices is None and lowest is None and not drawn:
        return None, "their speeds are uniform from 0 to 1"
    raised = _LOWEST if lowest is None else lowest
    if file is None and prices is None and not raised < 1.0:
        raise InputError(
            "no worker is as fast",
            field="--lowest-speed",
            value=raised,
            expected="below 1, for speeds are uniform from 0 to 1",
        )
    bound = f", and at least {raised:g}"
    if file is not None:
        return at_least(read_record(file), raised), f"their speeds are those of {file.name}{bound}"
    if prices is not None:
        speeds, name = _measured(prices, market, interval_seconds)
        return at_least(speeds, raised), f"their speeds are measured in {name}{bound}"
    return at_least(Uniform(0.0, 1.0), raised), f"their speeds are uniform from 0 to 1{bound}"


def _measured(prices: str, market: str | None, interval_seconds: float) -> tuple[Distribution, str]:
    from foresail.cloud.prices_reading import load_histories
    from foresail.cloud.synchronization.models import measured_speeds

    histories = {each.market: each for each in load_histories(prices)}
    name = next(iter(histories)) if market is None else market
    if name not in histories:
        raise UnknownNameError("market", name, histories)
    return measured_speeds(histories[name], interval_seconds), name


def _found(
    parts: Sequence[PlugIn],
    setting: BarrierProgram,
    counts: NDArray[np.int64],
    speeds: Distribution | None,
    runs: int,
    intervals: int,
    seed: int,
) -> list[Costs | DrawnCosts]:
    import numpy as np

    from foresail.cloud.synchronization.costing import costs, drawn_costs
    from foresail.cloud.synchronization.models import AnySpeeds, label

    if not runs or speeds is None:
        ranked = None if speeds is None else AnySpeeds(speeds)
        return [costs(label(part), part.build(), setting, counts, ranked) for part in parts]
    random = np.random.default_rng(seed)
    return [
        drawn_costs(
            label(part),
            part.build(),
            setting,
            counts,
            speeds,
            runs=runs,
            random=random,
            intervals_per_draw=intervals,
        )
        for part in parts
    ]


def _print_table(found: Sequence[Costs | DrawnCosts]) -> None:
    from foresail.reports.renting.synchronization_page import best_table

    print_numbers(best_table([_costs(each) for each in found]))


def _print_json(found: Sequence[Costs | DrawnCosts]) -> None:
    from foresail.cloud.synchronization.costing import DrawnCosts

    content: list[dict[str, Any]] = []
    for each in found:
        costs = _costs(each)
        entry = {
            "model": costs.name,
            "workers": costs.workers.tolist(),
            "seconds": costs.seconds.tolist(),
            "speedup": costs.speedup.tolist(),
            "cost": costs.cost.tolist(),
            "speedup_per_cost": costs.ratio.tolist(),
            "fastest_workers": int(costs.workers[costs.fastest]),
            "best_value_workers": int(costs.workers[costs.best_value]),
        }
        if isinstance(each, DrawnCosts):
            entry["half_interval_seconds"] = each.half_interval_seconds.tolist()
        content.append(entry)
    print_json({"models": content})


def _costs(found: Costs | DrawnCosts) -> Costs:
    from foresail.cloud.synchronization.costing import DrawnCosts

    return found.costs if isinstance(found, DrawnCosts) else found
