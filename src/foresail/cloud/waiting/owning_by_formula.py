"""How many servers to own, and which jobs wait for them, by formulas."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Final

from foresail.cloud.waiting.models import (
    ALL_RIGHT,
    Load,
    Mispredicted,
    cheapest_servers,
    expected,
)
from foresail.cloud.waiting.owning import FrontierPoint, OwningAnswer, answered
from foresail.cloud.waiting.settings import GO_BY_RUNTIMES, GO_BY_WAITS, Sweep, WaitingSetting
from foresail.cloud.waiting.worth import Worth

_YEAR_SECONDS: Final = 365.0 * 86400.0


def own_or_rent_by_formula(
    load: Load,
    server_per_hour: float,
    sweep: Sweep,
    worth: Worth,
    wrong: Mispredicted = ALL_RIGHT,
) -> OwningAnswer:
    """What is best by formulas, for a year of Poisson arrivals and exponential runtimes.

    Each job takes one server, which is rented for ``server_per_hour``. There are no formulas for
    the speculative policy, nor for wrong predictions of the compound.

    Raises
    ------
    UnknownNameError
        If there is no formula for a policy.
    InputError
        If no setting is as asked.
    """
    points = {each: _point(each, load, server_per_hour, wrong) for each in sweep.settings()}
    arrivals = load.arrivals_per_second * _YEAR_SECONDS
    answer = answered(points, sweep, worth, _YEAR_SECONDS, arrivals, load.offered, _truths)
    optima = dict.fromkeys(
        _at_lowest_price(each, load, wrong) for each in sorted(points, key=lambda each: each.place)
    )
    found = tuple(_point(each, load, server_per_hour, wrong) for each in optima)
    return replace(answer, optima=found)


def _point(
    setting: WaitingSetting, load: Load, server_per_hour: float, wrong: Mispredicted
) -> FrontierPoint:
    """What a year under a setting comes to."""
    on_demand = load.offered * server_per_hour * _YEAR_SECONDS / 3600.0
    found = expected(setting.policy, load, setting.machines, *setting.limits, wrong)
    wait, rented = float(found.wait_seconds), float(found.rented_work)
    busy = load.offered * (1.0 - rented)
    return FrontierPoint(
        **asdict(setting),
        cost=float(found.price) * on_demand,
        on_demand_cost=on_demand,
        mean_wait_seconds=wait,
        waiting_hours=load.arrivals_per_second * _YEAR_SECONDS * wait / 3600.0,
        rented_work=rented,
        rented_jobs=float(found.rented_jobs),
        fixed_utilisation=busy / setting.machines if setting.machines else 0.0,
    )


def _at_lowest_price(setting: WaitingSetting, load: Load, wrong: Mispredicted) -> WaitingSetting:
    """The same policy with as many machines as cost least."""
    servers = cheapest_servers(setting.policy, load, *setting.limits, wrong)
    return replace(setting, machines=servers)


def _truths(policy: str) -> tuple[str, ...]:
    """What the formulas take to be known."""
    return (
        *(("runtimes",) if policy in GO_BY_RUNTIMES else ()),
        *(("waits",) if policy in GO_BY_WAITS else ()),
    )
