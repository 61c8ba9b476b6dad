"""Settings of waiting policies: which there are, and which of them a sweep tries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from foresail.cloud.waiting.models import POLICIES as MODELLED
from foresail.model.errors import InputError, UnknownNameError
from foresail.model.renamed import todays_name

HAVE_WAITING: Final = (
    "all-jobs-wait-threshold",
    "short-waits-wait",
    "compound",
    "speculative",
    "weighing",
)
HAVE_SHORT: Final = ("long-jobs-wait", "compound", "speculative")
GO_BY_WAITS: Final = ("short-waits-wait", "compound")
GO_BY_RUNTIMES: Final = ("long-jobs-wait", "compound", "weighing")
LEARN_WAITS: Final = (*GO_BY_WAITS, "speculative", "weighing")
POLICIES: Final = (*MODELLED, "speculative", "weighing")
_FINER: Final = 8


@dataclass(frozen=True, slots=True)
class WaitingSetting:
    """One policy with its thresholds b and t (None: it has none), and the machines owned."""

    policy: str
    machines: int
    waiting_seconds: float | None
    short_seconds: float | None

    @classmethod
    def of(cls, policy: str, machines: int, waiting: float, short: float) -> WaitingSetting:
        """With those of the thresholds (seconds) that the policy has."""
        return cls(
            policy,
            machines,
            waiting if policy in HAVE_WAITING else None,
            short if policy in HAVE_SHORT else None,
        )

    @property
    def limits(self) -> tuple[float, float]:
        """Both thresholds in seconds; one that it has not limits nothing."""
        waiting = math.inf if self.waiting_seconds is None else self.waiting_seconds
        return waiting, self.short_seconds or 0.0

    @property
    def place(self) -> tuple[int, float, float, int]:
        """Among others: by policy, then by thresholds, then by machines."""
        return (
            POLICIES.index(self.policy),
            self.waiting_seconds or 0.0,
            self.short_seconds or 0.0,
            self.machines,
        )


@dataclass(frozen=True, slots=True)
class Sweep:
    """The settings to try.

    Raises
    ------
    InputError
        If there is nothing to try, or a number is out of range.
    UnknownNameError
        If there is no such policy.
    """

    policies: tuple[str, ...]
    """Names, long or short."""
    counts: tuple[int, ...]
    """Of machines owned."""
    waiting_seconds: tuple[float, ...]
    short_seconds: tuple[float, ...]
    """Thresholds b and t, for the policies that have them."""
    owned: tuple[int, str] | None = None
    """How many machines there are today, and under which policy; None: not asked."""
    refine: bool = False
    """Whether numbers of machines in between are tried too, where the first pass was best."""

    def __post_init__(self) -> None:
        for name in ("policies", "counts", "waiting_seconds", "short_seconds"):
            if not getattr(self, name):
                raise InputError("nothing to try", field=name, expected="one or more")
        policies = tuple(todays_name("waiting policy", each) for each in self.policies)
        object.__setattr__(self, "policies", policies)
        if self.owned is not None:
            machines, policy = self.owned
            object.__setattr__(self, "owned", (machines, todays_name("waiting policy", policy)))
        named = [*self.policies, *([self.owned[1]] if self.owned else [])]
        for policy in named:
            if policy not in POLICIES:
                raise UnknownNameError("waiting policy", policy, POLICIES)
        for name in ("counts", "waiting_seconds", "short_seconds"):
            for value in getattr(self, name):
                if not value >= 0:
                    raise InputError("out of range", field=name, value=value, expected="0 or more")
        if self.owned is not None and self.owned[0] < 0:
            raise InputError(
                "out of range", field="owned", value=self.owned[0], expected="0 or more"
            )

    def settings(self) -> list[WaitingSetting]:
        """All that is to be tried, with what there is today; none twice."""
        tried = [
            WaitingSetting.of(*each)
            for each in product(
                self.policies, self.counts, self.waiting_seconds, self.short_seconds
            )
        ]
        today = self.today
        return list(dict.fromkeys([*tried, *([today] if today else [])]))

    def between(self, best: Sequence[WaitingSetting]) -> list[WaitingSetting]:
        """Numbers of machines around those of some settings, and their policies."""
        found = []
        for each in best:
            own = each.machines
            below = max((c for c in self.counts if c < own), default=own)
            above = min((c for c in self.counts if c > own), default=own)
            step = max((above - below) // _FINER, 1)
            found += [
                WaitingSetting(each.policy, count, each.waiting_seconds, each.short_seconds)
                for count in range(below, above, step)
            ]
        return found

    @property
    def today(self) -> WaitingSetting | None:
        """What there is; its thresholds are the first to try."""
        if self.owned is None:
            return None
        machines, policy = self.owned
        return WaitingSetting.of(policy, machines, self.waiting_seconds[0], self.short_seconds[0])


def usual_counts(mean_machines: float, fixed_price: float, most: int) -> tuple[int, ...]:
    """Numbers of machines to try: from none to where owning alone costs as much as renting all.

    ``mean_machines`` are those that the work would keep busy, ``fixed_price`` is that of an owned
    machine relative to a rented one, and ``most`` is how many numbers there are, about.
    """
    last = max(math.ceil(mean_machines / max(fixed_price, 0.05)), 1)
    step = math.ceil(last / most)
    return tuple(range(0, last + step, step))
