"""Plans of transient machines for services: asked of ``foresail cloud transient``, then added up.

Planning loads what a small daemon should not hold, so that it is a process of its own.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from foresail.model.errors import ForesailError, InputError
from foresail_kubernetes.transient.settings import Market, Service, Settings

_CALL: Final = (sys.executable, "-c", "from foresail.cli.main import main; main()")
_SECONDS: Final = 1800.0
_OTHER: Final = re.compile(r"[^A-Za-z0-9-]+")
_LONGEST: Final = 50


class NoPlanError(ForesailError):
    """There is a plan, but not one to go by: it did not hold, or costs more than on demand."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Machines of one type."""

    type: str
    """Name of its market, as in the histories: ``ZONE/INSTANCE_TYPE``."""
    count: int
    capacity: float
    """Units of one machine."""

    @property
    def name(self) -> str:
        """Return the name of the type as a label, or as a part of a name, may have it."""
        return _OTHER.sub("-", self.type).strip("-").lower()[:_LONGEST].strip("-")


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """Machines to rent for a service, which held wherever they were held to."""

    service: str
    pools: tuple[Pool, ...]
    availability: float
    """Availability that is expected: the least of the model's and what was found."""
    price_per_hour: float
    on_demand_share: float | None
    """Price over that of the same capacity on demand, if that is known."""

    @property
    def sentence(self) -> str:
        """Return the plan in a sentence."""
        share = self.on_demand_share
        of = "" if share is None else f", {100.0 * share:.3g} % of the price on demand"
        count = sum(each.count for each in self.pools)
        return (
            f"{self.service}: {count} machines of {len(self.pools)} types for "
            f"{self.price_per_hour:.6g} an hour{of}; there {self.availability:.9g} of the time"
        )


def asked_of(service: Service, market: Market, folder: Path) -> list[str]:
    """Return the words by which a plan for a service is asked; paths begin at a folder."""
    words = ["cloud", "transient", "--format", "json"]
    words += ["--capacity", repr(service.units), "--availability", repr(service.availability)]
    prices = folder / market.prices
    words += ["--prices", str(prices) if prices.exists() else market.prices]
    words += ["--machines", str(folder / market.machines), "--market", market.market]
    words += ["--extra-nines", repr(market.extra_nines)]
    if market.window_days is not None:
        words += ["--window", repr(market.window_days)]
    for days in market.check_window_days:
        words += ["--check-window", repr(days)]
    return [*words, "--correlated"] if market.correlated else words


def plan_of(service: Service, record: Mapping[str, Any]) -> ServicePlan:
    """Return a plan of the record that was printed; raises ``NoPlanError`` if it does not hold."""
    expected = record["availability_expected"]
    if not record["accepted"]:
        raise NoPlanError(
            f"{service.name}: no plan holds in the history ({expected:.12g} expected)"
        )
    if not record["is_worth_it"]:
        share = record["on_demand_share"]
        raise NoPlanError(f"{service.name}: the plan costs {share:.3g} times as much as on demand")
    machines = record["machines"]
    pools = tuple(Pool(each["type"], each["count"], each["capacity"]) for each in machines)
    return ServicePlan(
        service.name, pools, expected, record["price_per_hour"], record["on_demand_share"]
    )


def added_up(plans: Iterable[ServicePlan]) -> tuple[Pool, ...]:
    """Return the machines of all plans together, by type.

    Raises ``InputError`` if two types would have the same name.
    """
    found: dict[str, Pool] = {}
    for each in (pool for plan in plans for pool in plan.pools):
        before = found.get(each.name)
        if before is not None and before.type != each.type:
            expected = f"types that differ from {before.type!r} in letters or digits"
            raise InputError(
                "two types, one name", field="type", value=each.type, expected=expected
            )
        count = each.count + (before.count if before else 0)
        found[each.name] = Pool(each.type, count, each.capacity)
    return tuple(found[name] for name in sorted(found))


def plan_services(settings: Settings, folder: Path) -> tuple[ServicePlan, ...]:
    """Return a plan for each service, those with most nines first.

    Raises ``NoPlanError`` with what was said if one does not hold, or cannot be had,
    ``InputError`` if something is wrong with what was given.
    """
    services = sorted(settings.services, key=lambda each: (-each.nines, each.name))
    return tuple(_planned(each, settings.market, folder) for each in services)


def _planned(service: Service, market: Market, folder: Path) -> ServicePlan:
    call = [*_CALL, *asked_of(service, market, folder)]
    try:
        done = subprocess.run(call, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoPlanError(f"{service.name}: {error}") from error
    said = " ".join(done.stderr.split())
    if done.returncode == 2:
        raise InputError(f"{service.name}: {said.removeprefix('foresail: ')}", field="services")
    if done.returncode not in (0, 1):
        raise NoPlanError(f"{service.name}: planning ended with {done.returncode}: {said[-300:]}")
    return plan_of(service, msgspec.json.decode(done.stdout))
