"""What a plan would have had in the history of its markets, and whether what is learned holds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from foresail.cli.cloud._transient_offers import demand_days
from foresail.cloud.transient.methods import Method
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foresail.cli.cloud._transient_offers import OfferHistories
    from foresail.cloud.transient.batch import BatchDone, Overload, Surplus
    from foresail.cloud.transient.joint import JointHistory
    from foresail.cloud.transient.plan import CapacityPlan
    from foresail.cloud.transient.serving import TransientMachines
    from foresail.reports.renting.transient_page import (
        HeldToHistory,
        TrailingWindow,
        TransientAnswer,
    )

LONGEST_WAIT_SECONDS: Final = 1.0
"""For which a request queues at most, by default."""
_DAY_SECONDS: Final = 86_400.0
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
    """What a plan would have had in a history, and what could have been done with it.

    The history is of its markets, and perhaps others. ``batch`` are tasks for the surplus,
    ``UNITSxHOURS``; ``requests`` come each second and queue for ``longest_wait`` seconds at most.

    Raises ``InputError`` if ``batch`` is no task, or one so small that there would be too many.
    """
    import numpy as np

    from foresail.cloud.transient.estimating import realised, shuffled_availability
    from foresail.cloud.transient.joint import correlated_pairs
    from foresail.cloud.transient.serving import Cordoned, Traffic, Unprotected, machines_of, serve
    from foresail.reports.renting.transient_page import HeldToHistory

    random = np.random.default_rng(_SEED)
    shuffled = shuffled_availability(history, planned, draws=_DRAWS, random=random)
    together = correlated_pairs(history.of([each.type.name for each in planned.rented]))
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
    """What queues and is turned away while there is less than the capacity."""
    from foresail.cloud.transient.batch import overload

    there = _surplus(machines, 0.0)
    return overload(there, requests, requests / planned.capacity, longest_wait)


def _batch(machines: TransientMachines, planned: CapacityPlan, text: str) -> BatchDone:
    """Enough tasks of a size to keep the surplus busy throughout."""
    import numpy as np

    from foresail.cloud.transient.batch import run_batch, tasks_to_fill

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
    """What a service leaves of the machines that are neither gone nor cordoned."""
    import numpy as np

    from foresail.cloud.transient.batch import surplus
    from foresail.cloud.transient.serving import Cordoned, absence

    return surplus(machines, absence(machines, Cordoned(), np.random.default_rng(_SEED)), needed)


def checked(
    learned: OfferHistories,
    answer: TransientAnswer,
    windows: Sequence[float],
    held_days: float,
    method: Method,
) -> list[TrailingWindow]:
    """Every window, and an oracle; all begin where the longest window allows."""
    from foresail.cloud.transient.estimating import rolled
    from foresail.reports.renting.transient_page import ORACLE, TrailingWindow

    for days in windows:
        demand_days("--check-window", days)
    demand_days("--held-days", held_days)
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
                learned.estimate,
                planned.capacity,
                planned.target,
                window_seconds=seconds,
                step_seconds=held_days * _DAY_SECONDS,
                first_seconds=max(windows) * _DAY_SECONDS,
                method=method,
                extra_nines=planned.extra_nines,
            ),
        )
        for name, seconds in [*kinds, (ORACLE, None)]
    ]
