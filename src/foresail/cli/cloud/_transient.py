"""Plans held to the history of their markets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from foresail.cli.cloud._options import naming_options
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from foresail.cloud.histories import JointHistory
    from foresail.cloud.transient.offers import Offers
    from foresail.cloud.transient.plan import CapacityPlan
    from foresail.cloud.transient.serving import BatchDone, Overload, Surplus, TransientMachines
    from foresail.reports.renting.transient_page import (
        HeldToHistory,
        TrailingWindow,
        TransientAnswer,
    )


_DAY_SECONDS: Final = 86_400.0


@dataclass(frozen=True)
class OfferHistories:
    """Histories of all markets on one time axis, and what estimates offers from a part of them."""

    history: JointHistory
    estimate: Callable[[JointHistory], Offers]


def offers_of(
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
            demand_days("--window", window)
            seen = seen.between(seen.end - window * _DAY_SECONDS, seen.end)
        offers = learned.estimate(seen)
    if price is None:
        return offers
    with naming_options({"on_demand_price_per_unit_hour": "--on-demand-price"}):
        priced = [replace(each, on_demand_price_per_unit_hour=price) for each in offers.types]
    return replace(offers, types=tuple(priced))


def learned_of(
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
        raise InputError(
            "nothing says what capacity the machines have",
            expected="--machines FILE with instance_type and capacity",
        )
    by_type = read_kinds(machines)
    histories = [each for each in load_histories(prices) if fnmatch(each.market, market)]
    if not histories:
        raise InputError("no market of this name", source=prices, field="--market", value=market)
    kinds = kinds_of_markets(histories, by_type, machines)
    estimate = correlated_offers if correlated else estimated_offers
    return OfferHistories(joined(histories), partial(estimate, kinds=kinds, doubt_hours=doubt))


def demand_days(option: str, days: float) -> None:
    """A number of days must be above 0."""
    if not days > 0.0:
        raise InputError("no number of days", field=option, value=days, expected="above 0")


LONGEST_WAIT_SECONDS: Final = 1.0
"""For which a request queues at most, by default."""
_HELD_DAYS: Final = 7.0
_DRAWS: Final = 50
_SEED: Final = 1
_MOST_TASKS: Final = 3_000_000


def held_to(
    history: JointHistory,
    planned: CapacityPlan,
    batch: str | None,
    requests: float | None,
    longest_wait: float,
) -> HeldToHistory:
    """Hold a plan to a history: its capacity there, and what could have been done with it.

    The history is of its markets, and perhaps others. ``batch`` are tasks for the surplus,
    ``UNITSxHOURS``; ``requests`` come each second and queue for ``longest_wait`` seconds at most.

    Raises ``InputError`` if ``batch`` is no task, or one so small that there would be too many.
    """
    import numpy as np

    from foresail.cloud.histories import correlated_pairs
    from foresail.cloud.transient.estimating import realised, shuffled_availability
    from foresail.cloud.transient.serving import Cordoned, Traffic, Unprotected, machines_of, serve
    from foresail.reports.renting.transient_page import HeldToHistory

    random = np.random.default_rng(_SEED)
    shuffled = shuffled_availability(history, planned, draws=_DRAWS, random=random)
    together = correlated_pairs(history.only([each.type.name for each in planned.rented]))
    held = HeldToHistory(realised(history, planned), shuffled, together)
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
    machines: TransientMachines, planned: CapacityPlan, requests: float, longest_wait: float
) -> Overload:
    """Requests that queue and are turned away while there is less than the capacity."""
    from foresail.cloud.transient.serving import overload

    there = _surplus(machines, 0.0)
    return overload(there, requests, requests / planned.capacity, longest_wait)


def _batch(machines: TransientMachines, planned: CapacityPlan, text: str) -> BatchDone:
    """Enough tasks of a size to keep the surplus busy throughout."""
    import numpy as np

    from foresail.cloud.transient.serving import run_batch, tasks_to_fill

    units, seconds = _task(text)
    offered = _surplus(machines, planned.capacity)
    many = tasks_to_fill(offered, units, seconds)
    if many > _MOST_TASKS:
        raise InputError(
            f"more than {_MOST_TASKS:,} tasks", field="--batch", value=text, expected="larger ones"
        )
    return run_batch(offered, np.full(many, units), np.full(many, seconds))


def _task(text: str) -> tuple[float, float]:
    """Capacity and seconds of a batch task, from ``UNITSxHOURS``."""
    import math

    try:
        units, hours = (float(part) for part in text.split("x"))
    except ValueError:
        units = hours = 0.0
    if not (0.0 < units < math.inf and 0.0 < hours < math.inf):
        raise InputError(
            "no batch task", field="--batch", value=text, expected="UNITSxHOURS, such as 4x0.5"
        )
    return units, hours * 3600.0


def _surplus(machines: TransientMachines, needed: float) -> Surplus:
    """Capacity that a service leaves of machines that are neither gone nor cordoned."""
    import numpy as np

    from foresail.cloud.transient.serving import Cordoned, absence, surplus

    return surplus(machines, absence(machines, Cordoned(), np.random.default_rng(_SEED)), needed)


def checked(
    learned: OfferHistories,
    answer: TransientAnswer,
    windows: Sequence[float],
) -> list[TrailingWindow]:
    """Every window, and an oracle; all begin where the longest window allows."""
    from foresail.cloud.transient.estimating import rolled
    from foresail.cloud.transient.planning import plan
    from foresail.reports.renting.transient_page import ORACLE, TrailingWindow

    for days in windows:
        demand_days("--check-window", days)
    most = learned.history.total_seconds / _DAY_SECONDS
    if max(windows) >= most:
        raise InputError(
            "the history ends before the first plan",
            field="--check-window",
            value=max(windows),
            expected=f"less than the {most:.4g} days of the history",
        )
    planned = answer.plan
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
