"""The answer to how many machines to own and which jobs wait, on a log or by formula."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Final, NamedTuple, TypeVar

import numpy as np

from foresail.cloud.over_time import block_draws, block_seconds, interval
from foresail.model.arrays import Floats
from foresail.model.errors import InputError
from foresail_studies.renting.formulas import (
    ALL_RIGHT,
    Load,
    Mispredicted,
    cheapest_servers,
    expected,
)
from foresail_studies.renting.metrics import BlockSums, WaitingMetrics
from foresail_studies.renting.owned_machines import Worth
from foresail_studies.renting.sweeping import (
    GO_BY_RUNTIMES,
    GO_BY_WAITS,
    Sweep,
    SweepInputs,
    TrialResult,
    WaitingSetting,
    try_settings,
)

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
    """Sum over all jobs in the period."""
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
        """True if the owned machines can do what waits for them."""
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

    Raises ``InputError`` if none waits so little on average; it says what is the best reachable.
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


@dataclass(frozen=True, slots=True)
class AdviceCertainty:
    """Certainty of the advice, from weeks drawn anew."""

    block_seconds: float
    blocks: int
    """What was drawn, and how many the log has."""
    best_share: float
    """Share of draws in which no other setting costs less, waiting at its value included."""
    near_share: float
    """Share of draws in which none costs less by more than a hundredth."""
    saving: tuple[float, float] | None
    """95 % interval of today's price minus that of the advice; None without a today."""


class Draws(NamedTuple):
    """Price and mean wait in periods put together anew."""

    price: Floats
    wait_seconds: Floats


def drawn(sums: BlockSums) -> Draws:
    """Periods of as many blocks as the log has, alike for all settings; none that has no jobs."""
    weights = block_draws(sums.jobs.size)
    return Draws(*sums.drawn(weights[weights @ sums.jobs > 0.0]))


def shares_best(
    chosen: WaitingSetting, totals: Mapping[WaitingSetting, Floats]
) -> tuple[float, float]:
    """Shares of the draws in which a setting costs least of all, and within a hundredth of that.

    ``totals`` is what each setting costs in the draws, waiting at its value included.
    """
    least = np.min(list(totals.values()), axis=0)
    return (
        float(np.mean(totals[chosen] <= least + 1e-12)),
        float(np.mean(totals[chosen] <= 1.01 * least)),
    )


@dataclass(frozen=True)
class OwningAnswer:
    """All that was found."""

    points: tuple[FrontierPoint, ...]
    """The settings that last, in the order of the sweep."""
    growing: int
    """How many settings were left out because their queues only grow."""
    today: FrontierPoint | None
    """Where one is now; also in ``points`` if it lasts."""
    advised: FrontierPoint
    """What costs least with waiting at its value."""
    unaided: FrontierPoint | None
    """The same among policies that need no oracle; None if there is none."""
    truths: tuple[str, ...]
    """What only an oracle knows and the advised policy goes by: runtimes, waits, both or
    nothing."""
    worth: Worth
    """What the advice respects."""
    period_seconds: float
    """Of the costs."""
    jobs: float
    """In the period, on average."""
    mean_machines: float
    """Machines that the work would keep busy."""
    certainty: AdviceCertainty | None
    """None for formulas, and for logs of fewer than five days."""
    optima: tuple[FrontierPoint, ...] = ()
    """For formulas: each policy and its thresholds with the number of machines at which the price
    is lowest, waiting not counted (s* of the literature), whether it was tried or not."""

    def points_under(self, policy: str) -> list[FrontierPoint]:
        """The points of a policy."""
        return [point for point in self.points if point.policy == policy]

    def best_of(self, policy: str) -> FrontierPoint:
        """Return the cheapest of a policy's points with waiting at its value."""
        return min(self.points_under(policy), key=lambda point: point.worth(self.worth.hour_value))


def answered(
    points: Mapping[WaitingSetting, FrontierPoint],
    sweep: Sweep,
    worth: Worth,
    period_seconds: float,
    jobs: float,
    mean_machines: float,
    truths: Callable[[str], tuple[str, ...]],
) -> OwningAnswer:
    """The best of what was tried; of how sure that is, it says nothing yet.

    ``truths`` says what a policy goes by that only an oracle knows.

    Raises ``InputError`` if no setting lasts, or none waits as little as is asked.
    """
    lasting = tuple(point for point in points.values() if point.is_lasting)
    if not lasting:
        raise InputError(
            "the queue only grows whatever is tried",
            field="fixed",
            value=max(sweep.counts),
            expected=f"more than {mean_machines:.4g} machines, or a policy that rents",
        )
    unaided = [point for point in lasting if not truths(point.policy)]
    best = advised(lasting, worth.hour_value, worth.longest_wait_seconds)
    return OwningAnswer(
        points=lasting,
        growing=len(points) - len(lasting),
        today=None if sweep.today is None else points[sweep.today],
        advised=best,
        unaided=advised(unaided, worth.hour_value) if unaided else None,
        truths=truths(best.policy),
        worth=worth,
        period_seconds=period_seconds,
        jobs=jobs,
        mean_machines=mean_machines,
        certainty=None,
    )


def own_or_rent(
    inputs: SweepInputs,
    sweep: Sweep,
    worth: Worth,
    *,
    workers: int = 1,
    done: Callable[[int, int], None] = lambda _, __: None,
) -> OwningAnswer:
    """Simulate every setting on a log, and say which is best.

    ``workers`` as for ``try_settings``; ``done`` is called after each setting with how many are
    done and how many are known of.
    """
    results: dict[WaitingSetting, TrialResult] = {}

    def try_all(asked: Sequence[WaitingSetting]) -> OwningAnswer:
        new = [each for each in dict.fromkeys(asked) if each not in results]
        total = len(results) + len(new)
        for setting, tried in try_settings(inputs, new, workers=workers):
            results[setting] = tried
            done(len(results), total)
        return _of_simulations(results, inputs, sweep, worth)

    answer = try_all(sweep.settings())
    if not sweep.refine:
        return answer
    best = [answer.advised, *([answer.unaided] if answer.unaided else [])]
    return try_all(sweep.between(best))


def _of_simulations(
    results: Mapping[WaitingSetting, TrialResult], inputs: SweepInputs, sweep: Sweep, worth: Worth
) -> OwningAnswer:
    """The answer, with intervals from blocks that all settings draw alike."""
    draws = {
        setting: drawn(tried.sums) for setting, tried in results.items() if tried.sums is not None
    }
    points = {
        setting: _point(setting, results[setting].metrics, draws.get(setting))
        for setting in sorted(results, key=lambda each: each.place)
    }
    span, jobs = inputs.jobs.span_seconds, len(inputs.jobs)
    answer = answered(points, sweep, worth, span, jobs, inputs.mean_machines, inputs.truths_used)
    length = block_seconds(inputs.jobs.submit_seconds)
    if length is None:
        return answer
    blocks = next(each.sums.jobs.size for each in results.values() if each.sums is not None)
    return replace(answer, certainty=_certainty(answer, points, draws, length, blocks))


def _point(setting: WaitingSetting, result: WaitingMetrics, draws: Draws | None) -> FrontierPoint:
    prices = waits = None
    if draws is not None:
        prices, waits = interval(draws.price), interval(draws.wait_seconds)
    return FrontierPoint(
        **asdict(setting),
        cost=result.total_cost,
        on_demand_cost=result.on_demand_cost,
        mean_wait_seconds=result.mean_wait_seconds,
        waiting_hours=result.jobs * result.mean_wait_seconds / 3600.0,
        rented_work=result.rented_work,
        rented_jobs=result.rented_jobs,
        fixed_utilisation=result.fixed_utilisation,
        prices=prices,
        waits=waits,
    )


def _certainty(
    answer: OwningAnswer,
    points: Mapping[WaitingSetting, FrontierPoint],
    draws: Mapping[WaitingSetting, Draws],
    length: float,
    blocks: int,
) -> AdviceCertainty:
    """Certainty of the advice among allowed settings; costs are per hour of work rented."""
    of_wait = answer.jobs / answer.advised.on_demand_cost * answer.worth.hour_value / 3600.0
    totals = {
        setting: draws[setting].price + of_wait * draws[setting].wait_seconds
        for setting, point in points.items()
        if point.is_lasting and point.mean_wait_seconds <= answer.worth.longest_wait_seconds
    }
    chosen = next(setting for setting in totals if points[setting] is answer.advised)
    saving = None
    if answer.today is not None:
        today = next(setting for setting, point in points.items() if point is answer.today)
        saving = interval(draws[today].price - draws[chosen].price)
    return AdviceCertainty(length, blocks, *shares_best(chosen, totals), saving)


_YEAR_SECONDS: Final = 365.0 * 86400.0


def own_or_rent_by_formula(
    load: Load,
    server_per_hour: float,
    sweep: Sweep,
    worth: Worth,
    wrong: Mispredicted = ALL_RIGHT,
) -> OwningAnswer:
    """Find the best by formulas, for a year of Poisson arrivals and exponential runtimes.

    Each job takes one server, which is rented for ``server_per_hour``. There are no formulas for
    the speculative policy, nor for wrong predictions of the compound.

    Raises ``UnknownNameError`` if there is no formula for a policy; ``InputError`` if no setting is
    as asked.
    """
    points = {each: _year_under(each, load, server_per_hour, wrong) for each in sweep.settings()}
    arrivals = load.arrivals_per_second * _YEAR_SECONDS
    answer = answered(points, sweep, worth, _YEAR_SECONDS, arrivals, load.offered, _truths)
    optima = dict.fromkeys(
        _at_lowest_price(each, load, wrong) for each in sorted(points, key=lambda each: each.place)
    )
    found = tuple(_year_under(each, load, server_per_hour, wrong) for each in optima)
    return replace(answer, optima=found)


def _year_under(
    setting: WaitingSetting, load: Load, server_per_hour: float, wrong: Mispredicted
) -> FrontierPoint:
    """Cost and waits of a year under a setting."""
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
    """Truths that the formulas take to be known."""
    return (
        *(("runtimes",) if policy in GO_BY_RUNTIMES else ()),
        *(("waits",) if policy in GO_BY_WAITS else ()),
    )
