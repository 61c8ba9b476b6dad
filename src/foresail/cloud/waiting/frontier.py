"""Cost against waiting: which setting is best, for whatever an hour of waiting is worth."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from foresail.cloud.waiting.settings import WaitingSetting
from foresail.model.errors import InputError

Point = TypeVar("Point")


@dataclass(frozen=True, slots=True)
class FrontierPoint(WaitingSetting):
    """One setting of a waiting policy, and what it leads to."""

    cost: float
    on_demand_cost: float
    """Money for the period; and if everything were rented at once."""
    mean_wait_seconds: float
    """Over all jobs."""
    waiting_hours: float
    """Of all jobs together in the period; where jobs have values of their own, each hour counts as
    its value relative to the mean of them."""
    rented_work: float
    rented_jobs: float
    """Shares of work and of jobs on rented machines."""
    fixed_utilisation: float
    """Share of the owned capacity that is used; above 1, the queue only grows."""
    prices: tuple[float, float] | None = None
    waits: tuple[float, float] | None = None
    """95 % intervals of the price and of the mean wait (s), where they are known."""

    @property
    def price(self) -> float:
        """Cost relative to renting everything at once."""
        return self.cost / self.on_demand_cost

    @property
    def opportunity_cost(self) -> float:
        """Price times mean wait (s)."""
        return self.price * self.mean_wait_seconds

    @property
    def is_lasting(self) -> bool:
        """Whether the owned machines can do what waits for them."""
        return self.fixed_utilisation <= 1.0 and math.isfinite(self.mean_wait_seconds)

    def worth(self, hour_value: float) -> float:
        """Money that it costs, with an hour's waiting of a job at this value."""
        return self.cost + hour_value * self.waiting_hours


@dataclass(frozen=True, slots=True)
class BestFor:
    """A point, and the values of a waiting hour (money) between which none costs less."""

    point: FrontierPoint
    least: float
    most: float


def best_by_value(points: Sequence[FrontierPoint]) -> list[BestFor]:
    """The points that are best for some value of a waiting hour, by rising value.

    They are the corners of the lower left hull of cost against waiting.
    """
    ordered = sorted(points, key=lambda point: (point.waiting_hours, point.cost))
    hull: list[FrontierPoint] = []
    for point in ordered:
        if hull and point.cost >= hull[-1].cost:
            continue
        while len(hull) > 1 and _indifferent(hull[-2], point) >= _indifferent(hull[-2], hull[-1]):
            hull.pop()
        hull.append(point)
    edges = [_indifferent(first, second) for first, second in pairwise(hull)]
    most = [math.inf, *edges]
    least = [*edges, 0.0]
    found = [BestFor(*each) for each in zip(hull, least, most, strict=True)]
    return found[::-1]


def pareto(points: Sequence[Point], place: Callable[[Point], tuple[float, float]]) -> list[Point]:
    """The points than which none is both quicker and cheaper, by rising wait.

    ``place`` is a point's wait and its cost.
    """
    kept: list[Point] = []
    for point in sorted(points, key=place):
        if not kept or place(point)[1] < place(kept[-1])[1]:
            kept.append(point)
    return kept


def advised(
    points: Sequence[FrontierPoint], hour_value: float, longest_wait_seconds: float = math.inf
) -> FrontierPoint:
    """The point that costs least with waiting at its value, among those whose mean wait is allowed.

    Raises
    ------
    InputError
        If none waits so little on average; it says what is the best reachable.
    """
    allowed = [point for point in points if point.mean_wait_seconds <= longest_wait_seconds]
    if not allowed:
        least = min(points, key=lambda point: point.mean_wait_seconds)
        raise InputError(
            "no setting that was tried waits so little on average",
            field="target wait",
            value=f"{longest_wait_seconds:g} s",
            expected=f"at least {math.ceil(least.mean_wait_seconds)} s, the best reachable "
            f"({least.policy} with {least.machines} machines), or a wider sweep",
        )
    return min(allowed, key=lambda point: (point.worth(hour_value), point.waiting_hours))


def _indifferent(quick: FrontierPoint, cheap: FrontierPoint) -> float:
    """Value of a waiting hour at which two points are as good."""
    return (quick.cost - cheap.cost) / (cheap.waiting_hours - quick.waiting_hours)
