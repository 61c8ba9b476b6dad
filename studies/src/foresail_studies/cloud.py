"""Shared parts of the studies of cloud capacity: their source, and market histories."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from foresail.cloud.histories import JointHistory, joined
from foresail.cloud.prices_reading import load_histories
from foresail.cloud.transient.offers import MachineKind, Offers
from foresail.cloud.transient.plan import kinds_of_markets, read_kinds
from foresail.cloud.transient.planning import PoolRule, best_of_scales, chosen, gained_nines
from foresail.model.distribution import Integers

SOURCE: Final = "L. P. R. Ambati's thesis on cost-efficient provisioning"
LEFT_OUT: Final = "Left out for want of price histories (`--set prices=FILE`): {}."

YEAR_MINUTES: Final = 525_600.0

_ECU: Final[Mapping[str, float]] = MappingProxyType(
    {"c3.xlarge": 14.0, "d2.8xlarge": 116.0, "g2.2xlarge": 26.0, "m3.medium": 3.0, "r3.large": 6.5}
)
"""Compute units of EC2's types as they were published in 2015."""


Rule = Literal["published", "refined"]
"""Name of a way to choose a pool of transient machines."""


def published_rule(offers: Offers, needed: int, allowed: float, dearest: float) -> Integers | None:
    """The published way to choose a pool: one machine after the other, by gains in nines."""
    return chosen(offers, needed, allowed, gained_nines, dearest=dearest)


RULES: Final[Mapping[Rule, PoolRule]] = {"published": published_rule, "refined": best_of_scales}


def target(nines: float) -> float:
    """An availability of so many whole nines, with the digits that people write."""
    return float(f"0.{'9' * round(nines)}")


@lru_cache(maxsize=1)
def markets(prices: str, machines: str) -> tuple[JointHistory, Mapping[str, MachineKind]]:
    """Histories of markets on one axis, and what each market's machines are.

    ``machines`` is a file with the capacity of each instance type; empty: those of 2015 that are
    known here.

    Raises ``InputError`` if a file cannot be read, or the capacity of a type is not known.
    """
    histories = load_histories(prices)
    known = (
        read_kinds(Path(machines))
        if machines
        else {name: MachineKind(capacity) for name, capacity in _ECU.items()}
    )
    return joined(histories), kinds_of_markets(histories, known, machines or prices)


def stretch(history: JointHistory, place: int, of: int, begin: float) -> tuple[float, float]:
    """Begin and end of one of so many equal stretches of a history from ``begin`` on (seconds)."""
    length = (history.end - begin) / of
    return begin + place * length, begin + (place + 1) * length
