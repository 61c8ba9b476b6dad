"""How many machines to own, and which jobs wait for them: the question as a whole, on a log."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from foresail.cloud.waiting.blocks import block_draws, block_seconds
from foresail.cloud.waiting.frontier import Point, advised
from foresail.cloud.waiting.jobs import FixedMachines, Floats, RentedType, TraceJobs, rents
from foresail.cloud.waiting.metrics import WaitingMetrics
from foresail.cloud.waiting.models import (
    ALL_RIGHT,
    Load,
    Mispredicted,
    cheapest_servers,
    expected,
)
from foresail.cloud.waiting.trying import (
    GO_BY_RUNTIMES,
    GO_BY_WAITS,
    HAVE_SHORT,
    HAVE_WAITING,
    POLICIES,
    Grounds,
    Setting,
    Tried,
    try_settings,
)
from foresail.model.errors import InputError, UnknownNameError

USUAL_SHARE: Final = 0.1
"""Of the price of a job's machine: what its waiting is worth if nobody says."""
_DRAWS: Final = 1000
_SEED: Final = 1
_LEVELS: Final = (0.025, 0.975)
_FINER: Final = 8
_YEAR_SECONDS: Final = 365.0 * 86400.0


@dataclass(frozen=True, slots=True)
class Sweep:
    """The settings to try.

    Parameters
    ----------
    policies
        Names.
    counts
        Of machines owned.
    waiting_seconds, short_seconds
        Thresholds b and t, for the policies that have them.
    owned
        How many machines there are today, and under which policy; None: not asked.
    refine
        Whether numbers of machines in between are tried too, where the first pass was best.

    Raises
    ------
    InputError
        If there is nothing to try, or a number is out of range.
    UnknownNameError
        If there is no such policy.
    """

    policies: tuple[str, ...]
    counts: tuple[int, ...]
    waiting_seconds: tuple[float, ...]
    short_seconds: tuple[float, ...]
    owned: tuple[int, str] | None = None
    refine: bool = False

    def __post_init__(self) -> None:
        for name in ("policies", "counts", "waiting_seconds", "short_seconds"):
            if not getattr(self, name):
                raise InputError("nothing to try", field=name, expected="one or more")
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

    def settings(self) -> list[Setting]:
        """All that is to be tried, with what there is today; none twice."""
        tried = [
            Setting(
                policy,
                machines,
                waiting if policy in HAVE_WAITING else None,
                short if policy in HAVE_SHORT else None,
            )
            for policy, machines, waiting, short in product(
                self.policies, self.counts, self.waiting_seconds, self.short_seconds
            )
        ]
        today = self.today
        return list(dict.fromkeys([*tried, *([today] if today else [])]))

    def between(self, best: Sequence[Point]) -> list[Setting]:
        """Numbers of machines around those of some points, and their policies."""
        found = []
        for point in best:
            below = max((c for c in self.counts if c < point.machines), default=point.machines)
            above = min((c for c in self.counts if c > point.machines), default=point.machines)
            step = max((above - below) // _FINER, 1)
            found += [
                Setting(point.policy, count, point.waiting_seconds, point.short_seconds)
                for count in range(below, above, step)
            ]
        return found

    @property
    def today(self) -> Setting | None:
        """What there is; its thresholds are the first to try."""
        if self.owned is None:
            return None
        machines, policy = self.owned
        return Setting(
            policy,
            machines,
            self.waiting_seconds[0] if policy in HAVE_WAITING else None,
            self.short_seconds[0] if policy in HAVE_SHORT else None,
        )


@dataclass(frozen=True, slots=True)
class Worth:
    """What the advice is to respect.

    Parameters
    ----------
    hour_value
        Money that an hour's waiting of a job is worth; the mean, where users say their own.
    stated
        Whether somebody said so; else it is a share of what a job's machine costs for an hour.
    longest_wait_seconds
        Largest mean wait.
    users
        How many say their own.
    others_value
        What counts for the jobs of all others, where some say their own.
    """

    hour_value: float
    stated: bool
    longest_wait_seconds: float = math.inf
    users: int = 0
    others_value: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.hour_value < math.inf:
            raise InputError(
                "out of range", field="hour value", value=self.hour_value, expected="0 or more"
            )


@dataclass(frozen=True, slots=True)
class Certainty:
    """What weeks drawn anew say of the advice.

    Parameters
    ----------
    block_seconds, blocks
        What was drawn, and how many the log has.
    best_share
        Share of draws in which no other setting costs less, waiting at its value included.
    near_share
        Share of draws in which none costs less by more than a hundredth.
    saving
        95 % interval of today's price minus that of the advice; None without a today.
    """

    block_seconds: float
    blocks: int
    best_share: float
    near_share: float
    saving: tuple[float, float] | None


@dataclass(frozen=True)
class OwningAnswer:
    """All that was found.

    Parameters
    ----------
    points
        The settings that last, in the order of the sweep.
    growing
        How many settings were left out because their queues only grow.
    today
        Where one is now; also in ``points`` if it lasts.
    advised
        What costs least with waiting at its value.
    unaided
        The same among policies that no oracle tells anything; None if none is.
    truths
        What only an oracle knows and the advised policy goes by: runtimes, waits, both or nothing.
    worth
        What the advice respects.
    period_seconds
        Of the costs.
    jobs
        In the period, on average.
    mean_machines
        Machines that the work would keep busy.
    certainty
        None for formulas, and for logs of fewer than five days.
    optima
        For formulas: each policy and its thresholds with the number of machines at which the price
        is lowest, waiting not counted (s* of the literature), whether it was tried or not.
    """

    points: tuple[Point, ...]
    growing: int
    today: Point | None
    advised: Point
    unaided: Point | None
    truths: tuple[str, ...]
    worth: Worth
    period_seconds: float
    jobs: float
    mean_machines: float
    certainty: Certainty | None
    optima: tuple[Point, ...] = ()

    def of(self, policy: str) -> list[Point]:
        """The points of a policy."""
        return [point for point in self.points if point.policy == policy]

    def best_of(self, policy: str) -> Point:
        """What costs least of a policy's points with waiting at its value."""
        return min(self.of(policy), key=lambda point: point.worth(self.worth.hour_value))


def usual_counts(mean_machines: float, fixed_price: float, most: int) -> tuple[int, ...]:
    """Numbers of machines to try: from none to where owning alone costs as much as renting all.

    Parameters
    ----------
    mean_machines
        Machines that the work would keep busy.
    fixed_price
        Of an owned machine relative to a rented one.
    most
        How many numbers, about.
    """
    last = max(math.ceil(mean_machines / max(fixed_price, 0.05)), 1)
    step = math.ceil(last / most)
    return tuple(range(0, last + step, step))


def own_or_rent(
    grounds: Grounds,
    sweep: Sweep,
    worth: Worth,
    *,
    workers: int = 1,
    kept: Path | None = None,
    done: Callable[[int, int], None] = lambda _, __: None,
) -> OwningAnswer:
    """Simulate every setting on a log, and say which is best.

    Parameters
    ----------
    grounds
        The log, the machines to own and to rent, and what policies are told.
    sweep
        The settings.
    worth
        What waiting is worth.
    workers, kept
        As for ``try_settings``.
    done
        Called with how many settings are done and how many are known of, after each.

    Raises
    ------
    InputError
        If no setting is as asked, or a kept result cannot be used.
    """
    results: dict[Setting, Tried] = {}

    def try_all(asked: Sequence[Setting]) -> OwningAnswer:
        new = [each for each in dict.fromkeys(asked) if each not in results]
        total = len(results) + len(new)
        for setting, tried in try_settings(grounds, new, workers=workers, kept=kept):
            results[setting] = tried
            done(len(results), total)
        return _of_simulations(results, grounds, sweep, worth)

    answer = try_all(sweep.settings())
    if not sweep.refine:
        return answer
    best = [answer.advised, *([answer.unaided] if answer.unaided else [])]
    return try_all(sweep.between(best))


class _Draws(NamedTuple):
    """Of a setting in periods put together anew: price, mean wait, and what a job's is worth."""

    price: Floats
    wait_seconds: Floats
    delay_cost: Floats


def _of_simulations(
    results: Mapping[Setting, Tried], grounds: Grounds, sweep: Sweep, worth: Worth
) -> OwningAnswer:
    """The answer, with intervals from blocks that all settings draw alike."""
    draws: dict[Setting, _Draws] = {}
    blocks = 0
    for setting, tried in results.items():
        if tried.sums is not None:
            blocks = tried.sums.jobs.size
            weights = block_draws(blocks, _DRAWS, _SEED)
            prices, waits = tried.sums.drawn(weights)
            delays = worth.hour_value * waits / 3600.0
            if grounds.own_values is not None:
                delays = tried.sums.drawn_delay_cost(weights)
            draws[setting] = _Draws(prices, waits, delays)
    own_mean = None if grounds.own_values is None else worth.hour_value
    points = {
        setting: _point(setting, results[setting].metrics, draws.get(setting), own_mean)
        for setting in sorted(results, key=_order)
    }
    span, jobs = grounds.span_seconds, len(grounds.jobs)
    answer = _answered(points, sweep, worth, span, jobs, grounds.mean_machines, grounds.told_truths)
    length = block_seconds(grounds.jobs.submit_seconds)
    if length is None:
        return answer
    return replace(answer, certainty=_certainty(answer, points, draws, length, blocks))


def _order(setting: Setting) -> tuple[int, float, float, int]:
    return (
        POLICIES.index(setting.policy),
        setting.waiting_seconds or 0.0,
        setting.short_seconds or 0.0,
        setting.machines,
    )


def own_or_rent_by_formula(
    load: Load,
    server_per_hour: float,
    sweep: Sweep,
    worth: Worth,
    wrong: Mispredicted = ALL_RIGHT,
) -> OwningAnswer:
    """The same by formulas, for a year of Poisson arrivals and exponential runtimes.

    Parameters
    ----------
    load
        Arrivals, runtimes and the relative price of a fixed server; each job takes one server.
    server_per_hour
        What a server is rented for.
    sweep, worth
        As for ``own_or_rent``; there is no formula for the speculative policy.
    wrong
        Shares of wrong predictions; the compound has no formula for them.

    Raises
    ------
    UnknownNameError
        If there is no formula for a policy.
    InputError
        If no setting is as asked.
    """
    points = {each: _by_formulas(each, load, server_per_hour, wrong) for each in sweep.settings()}
    arrivals = load.arrivals_per_second * _YEAR_SECONDS
    answer = _answered(points, sweep, worth, _YEAR_SECONDS, arrivals, load.offered, _by_formula)
    optima = dict.fromkeys(
        _at_lowest_price(each, load, wrong) for each in sorted(points, key=_order)
    )
    found = tuple(_by_formulas(each, load, server_per_hour, wrong) for each in optima)
    return replace(answer, optima=found)


def _by_formulas(
    setting: Setting, load: Load, server_per_hour: float, wrong: Mispredicted
) -> Point:
    """What a year under a setting comes to."""
    on_demand = load.offered * server_per_hour * _YEAR_SECONDS / 3600.0
    found = expected(
        setting.policy,
        load,
        setting.machines,
        math.inf if setting.waiting_seconds is None else setting.waiting_seconds,
        setting.short_seconds or 0.0,
        wrong,
    )
    wait, rented = float(found.wait_seconds), float(found.rented_work)
    busy = load.offered * (1.0 - rented)
    return Point(
        setting.policy,
        setting.machines,
        setting.waiting_seconds,
        setting.short_seconds,
        float(found.price) * on_demand,
        on_demand,
        wait,
        load.arrivals_per_second * _YEAR_SECONDS * wait / 3600.0,
        rented,
        float(found.rented_jobs),
        busy / setting.machines if setting.machines else 0.0,
    )


def _at_lowest_price(setting: Setting, load: Load, wrong: Mispredicted) -> Setting:
    """The same policy with as many machines as cost least."""
    servers = cheapest_servers(
        setting.policy,
        load,
        math.inf if setting.waiting_seconds is None else setting.waiting_seconds,
        setting.short_seconds or 0.0,
        wrong,
    )
    return replace(setting, machines=servers)


def _by_formula(policy: str) -> tuple[str, ...]:
    """What the formulas take to be known."""
    return (
        *(("runtimes",) if policy in GO_BY_RUNTIMES else ()),
        *(("waits",) if policy in GO_BY_WAITS else ()),
    )


def usual_hour_value(jobs: TraceJobs, family: Sequence[RentedType]) -> float:
    """A tenth of what a job's machine costs for an hour on demand, the mean over all jobs."""
    requests = jobs.requests
    return USUAL_SHARE * float(rents(requests, family)[requests.of_job].mean())


def share_too_wide(jobs: TraceJobs, machine: FixedMachines, family: Sequence[RentedType]) -> float:
    """Share of the work that asks for more than one machine has, and is therefore rented.

    Work is in core-seconds or, where jobs ask for gpus, what it costs on demand.
    """
    requests = jobs.requests
    each = requests.cores if jobs.gpus is None else rents(requests, family)
    work = jobs.runtime_seconds * each[requests.of_job]
    wide = ~machine.holds(requests)[requests.of_job]
    total = float(work.sum())
    return float(work @ wide) / total if total else 0.0


def _point(
    setting: Setting, result: WaitingMetrics, draws: _Draws | None, own_mean: float | None
) -> Point:
    """``own_mean``: mean of the jobs' own values of an hour, if they have such."""
    prices = waits = None
    if draws is not None:
        prices, waits = _interval(draws.price), _interval(draws.wait_seconds)
    hours = result.jobs * result.mean_wait_seconds / 3600.0
    if own_mean:
        hours = result.delay_cost / own_mean
    return Point(
        setting.policy,
        setting.machines,
        setting.waiting_seconds,
        setting.short_seconds,
        result.total_cost,
        result.on_demand_cost,
        result.mean_wait_seconds,
        hours,
        result.rented_work,
        result.rented_jobs,
        result.fixed_utilisation,
        prices,
        waits,
    )


def _answered(
    points: dict[Setting, Point],
    sweep: Sweep,
    worth: Worth,
    period_seconds: float,
    jobs: float,
    busy_machines: float,
    truths: Callable[[str], tuple[str, ...]],
) -> OwningAnswer:
    lasting = tuple(point for point in points.values() if point.is_lasting)
    if not lasting:
        raise InputError(
            "the queue only grows whatever is tried",
            field="fixed",
            value=max(sweep.counts),
            expected=f"more than {busy_machines:.4g} machines, or a policy that rents",
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
        mean_machines=busy_machines,
        certainty=None,
    )


def _certainty(
    answer: OwningAnswer,
    points: dict[Setting, Point],
    draws: dict[Setting, _Draws],
    length: float,
    blocks: int,
) -> Certainty:
    """Of the advice, against the settings that were allowed; costs are per hour of work rented."""
    allowed = [
        setting
        for setting, point in points.items()
        if point.is_lasting and point.mean_wait_seconds <= answer.worth.longest_wait_seconds
    ]
    point = answer.advised
    scale = answer.jobs / point.on_demand_cost
    totals = np.array([draws[each].price + scale * draws[each].delay_cost for each in allowed])
    chosen = next(setting for setting in allowed if points[setting] is point)
    mine = totals[allowed.index(chosen)]
    least = totals.min(axis=0)
    saving = None
    if answer.today is not None:
        today = next(s for s, each in points.items() if each is answer.today)
        saving = _interval(draws[today].price - draws[chosen].price)
    return Certainty(
        block_seconds=length,
        blocks=blocks,
        best_share=float(np.mean(mine <= least + 1e-12)),
        near_share=float(np.mean(mine <= 1.01 * least)),
        saving=saving,
    )


def _interval(values: Floats) -> tuple[float, float]:
    low, high = np.quantile(values, _LEVELS).tolist()
    return low, high
