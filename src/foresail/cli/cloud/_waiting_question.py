"""What ``foresail cloud waiting`` was asked: machines, thresholds, and what waiting is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from foresail.cli.cloud._prices import numbers_of
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from foresail.cloud.prices import Offer, PriceCatalogue
    from foresail.cloud.waiting.jobs import FixedMachines
    from foresail.cloud.waiting.settings import Sweep
    from foresail.cloud.waiting.worth import Worth


_MOST_COUNTS: Final = 100_000


class Waits(StrEnum):
    """What policies are told of waits."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    LINEAR = "linear"
    FOREST = "forest"
    BOOSTING = "boosting"


@dataclass(frozen=True)
class ToldBeliefs:
    """What policies are told of runtimes and waits."""

    runtimes: str
    waits: Waits


@dataclass(frozen=True)
class Owning:
    """Prices, and what is owned at them."""

    catalogue: PriceCatalogue
    offer: Offer
    machine: FixedMachines

    @property
    def relative_price(self) -> float:
        """Of an owned machine, to one that is rented."""
        return self.machine.price_per_hour / self.offer.on_demand_per_hour


@dataclass(frozen=True)
class WaitingRequest:
    """What was asked about machines and thresholds; None: nothing in particular."""

    policies: tuple[str, ...] | None
    counts: tuple[int, ...] | None
    waiting_seconds: tuple[float, ...]
    short_seconds: tuple[float, ...]
    owned: tuple[int, str] | None
    hour_value: float | None
    hour_values: Path | None
    longest_wait_seconds: float
    customised: bool

    def sweep(self, usual_policies: Sequence[str], usual_counts: tuple[int, ...]) -> Sweep:
        """The settings to try."""
        from foresail.cloud.waiting.settings import Sweep

        return Sweep(
            policies=tuple(usual_policies) if self.policies is None else self.policies,
            counts=usual_counts if self.counts is None else self.counts,
            waiting_seconds=self.waiting_seconds,
            short_seconds=self.short_seconds,
            owned=self.owned,
            refine=self.counts is None,
        )

    def worth(self, usual_hour_value: float) -> Worth:
        """What waiting is worth."""
        from foresail.cloud.waiting.worth import Worth

        stated = self.hour_value is not None
        value = usual_hour_value if self.hour_value is None else self.hour_value
        return Worth(value, stated, self.longest_wait_seconds)


def names_of(texts: Sequence[str] | None) -> tuple[str, ...] | None:
    """Names, each alone or several with commas; None if there are none."""
    return tuple(name.strip() for text in texts or () for name in text.split(",")) or None


def counts_of(text: str) -> tuple[int, ...]:
    """Numbers of machines: FIRST:LAST:STEP, or several with commas."""
    parts = text.split(":")
    counts: Sequence[int]
    try:
        if len(parts) == 1:
            counts = tuple(int(each) for each in text.split(","))
        else:
            first, last, step = (int(part) for part in [*parts, "1"][:3])
            counts = range(first, last + 1, step)
    except ValueError:
        counts = ()
    if len(counts) > _MOST_COUNTS:
        raise InputError(
            "too many numbers of machines to try",
            field="--fixed",
            value=text,
            expected=f"up to {_MOST_COUNTS:,} of them; a larger STEP",
        )
    if not counts or min(counts) < 0:
        raise InputError(
            "no numbers of machines",
            field="--fixed",
            value=text,
            expected="0 or more, such as 50:300:10 or 50,100",
        )
    return tuple(counts)


def wrong_shares(text: str) -> tuple[float, float]:
    """Shares of predictions that are too long, and too short."""
    shares = numbers_of([text], "--mispredicted")
    if len(shares) != 2 or not all(0.0 <= share <= 1.0 for share in shares):
        raise InputError(
            "not two shares",
            field="--mispredicted",
            value=text,
            expected="such as 0.05,0.3: too long, too short",
        )
    return shares[0], shares[1]
