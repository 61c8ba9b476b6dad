"""Settings of services on transient capacity: their needs, the markets, who makes the machines."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any, Final

import msgspec

from foresail.model.documents import toml_of
from foresail.model.errors import InputError, naming

TYPE: Final = "foresail.io/transient"
"""Label of transient nodes, and key of their taint; its value is the name of their type."""
SERVING: Final = "foresail.io/serving"
"""Label of pods that a Service selects by, beside others; a pod that is to leave loses it."""

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_PATH: Final = re.compile(r" - at `\$\.?(.*)`$")
_KARPENTER, _COMMAND, _PLACEHOLDER = "karpenter", "command", "placeholder"
MAKERS: Final = (_KARPENTER, _COMMAND, _PLACEHOLDER)


class _Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Table of a file of settings."""


class Market(_Settings, frozen=True):
    """Offers of transient machines, as ``foresail cloud transient`` has them."""

    prices: str
    """Histories of the markets: a plan has to hold in them."""
    machines: str
    """File with the capacity of each instance type."""
    market: str = "*"
    window_days: float | None = None
    check_window_days: tuple[float, ...] = (7.0,)
    """Plans of so many trailing days have to hold in the weeks after."""
    extra_nines: float = 0.0
    correlated: bool = False
    again_hours: float = 24.0
    """Time between two plans."""


class NodeClass(_Settings, frozen=True):
    """Object of Karpenter's that says what machines are made of."""

    group: str
    kind: str
    name: str


class Pools(_Settings, frozen=True):
    """Maker of machines, one of ``MAKERS``."""

    by: str
    command: tuple[str, ...] = ()
    """Command to which a type and a number of machines are added: it sees to it that so many are
    there."""
    node_class: NodeClass | None = None
    cpus_for_each_unit: float = 1.0
    """Cpus of a placeholder."""


class Leaving(_Settings, frozen=True):
    """Rules by which a machine is left that is about to be taken back."""

    wait_seconds: float = 15.0
    """Time between leaving the endpoints and eviction, in which all who send hear of it."""
    warning_seconds: float = 120.0
    """Time that is left where a notice does not say it."""
    notices: str = ""
    """File with a node in each line, and, if known, the time at which it goes."""
    taints: tuple[str, ...] = ("aws-node-termination-handler/spot-itn",)
    """Keys of taints that say that a node is about to be taken back."""


class Service(_Settings, frozen=True):
    """A service, and the capacity that it has to have with some availability."""

    name: str
    units: float
    """Capacity in the unit of the file of machines."""
    nines: float
    """Share of the time, by its nines: 3 is 99.9 %."""
    labels: dict[str, str]
    """Labels that all of its pods have."""
    namespace: str = "default"

    @property
    def availability(self) -> float:
        """Return the share of the time, with no more digits than are meant."""
        return round(1.0 - math.pow(10.0, -self.nines), 12)


class Settings(_Settings, frozen=True):
    """All of a file of settings."""

    market: Market
    pools: Pools
    services: tuple[Service, ...]
    leaving: Leaving = Leaving()


def read_settings(path: Path) -> Settings:
    """Return the settings of a TOML file; paths in it are from its folder on.

    Raises ``InputError`` that names file and field if there is none, or a field cannot be.
    """
    with naming(path):
        settings = _converted(toml_of(path))
        _check_services(settings.services)
        _check_pools(settings.pools)
        for field, least, value in (
            ("leaving.wait_seconds", 0.0, settings.leaving.wait_seconds),
            ("leaving.warning_seconds", 1.0, settings.leaving.warning_seconds),
            ("market.again_hours", 0.01, settings.market.again_hours),
            ("pools.cpus_for_each_unit", 0.001, settings.pools.cpus_for_each_unit),
        ):
            if not least <= value < 1e9:
                raise InputError("cannot be", field=field, value=value, expected=f"{least:g} on")
        if not settings.market.check_window_days:
            raise InputError(
                "a plan is held to nothing that came after",
                field="market.check_window_days",
                expected="at least one number of days",
            )
    return settings


def _converted(table: dict[str, Any]) -> Settings:
    try:
        return msgspec.convert(table, Settings, strict=False)
    except msgspec.ValidationError as error:
        said = str(error)
        place = _PATH.search(said)
        field = place[1] if place else None
        raise InputError(_PATH.sub("", said), field=field or None) from error


def _check_services(services: tuple[Service, ...]) -> None:
    if not services:
        raise InputError("there is no service", field="services", expected="[[services]] tables")
    for each in services:
        if not _NAME.fullmatch(each.name):
            raise InputError("is no name", field="services.name", value=each.name)
        if not 0.0 < each.units < 1e9:
            raise InputError("is no capacity", field="services.units", value=each.units)
        if not 0.0 < each.nines <= 9.0:
            expected = "above 0, at most 9"
            raise InputError(
                "no nines", field="services.nines", value=each.nines, expected=expected
            )
        if not each.labels:
            expected = "labels of its pods, such as {app = 'web'}"
            raise InputError("selects all pods", field="services.labels", expected=expected)
    name, count = Counter(each.name for each in services).most_common(1)[0]
    if count > 1:
        raise InputError("comes twice", field="services.name", value=name)


def _check_pools(pools: Pools) -> None:
    if pools.by not in MAKERS:
        expected = ", ".join(MAKERS)
        raise InputError("is unknown", field="pools.by", value=pools.by, expected=expected)
    if pools.by == _COMMAND and not pools.command:
        raise InputError("is missing", field="pools.command", expected="a command, word by word")
    if pools.by == _KARPENTER and pools.node_class is None:
        raise InputError("is missing", field="pools.node_class", expected="group, kind and name")
