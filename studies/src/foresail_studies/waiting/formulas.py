"""Price and waits of waiting policies by formula (chapter 6 of the thesis, corrected).

Behind them: queues of equal servers, Poisson arrivals and exponential service times.

Jobs arrive as a Poisson process, run for exponential times and hold one server each. Prices are
relative to the on-demand price. Every function broadcasts over servers and thresholds. For fixed
servers that are paid all the time, price = fixed price x servers / offered load + the share of work
that is rented.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foresail.kernels.compile import bare_kernel
from foresail.model.distribution import Floats
from foresail.model.errors import InputError, UnknownNameError, require, require_positive
from foresail.model.registry import todays_name


@bare_kernel
def erlang_b(
    servers: NDArray[np.int64], offered: NDArray[np.float64], lost: NDArray[np.float64]
) -> None:
    """Fill ``lost`` with the share of arrivals that find all ``servers`` busy and leave.

    ``offered`` is the arrival rate times the mean service time. Never by factorials.
    """
    for i in range(servers.size):
        share = 1.0
        for busy in range(1, servers[i] + 1):
            share = offered[i] * share / (busy + offered[i] * share)
        lost[i] = share


_SERIES_BELOW: Final = 1e-4


class ImpatientQueue(NamedTuple):
    """A queue in which no job waits longer than a threshold, in the long run."""

    leaving: Floats
    """Share of arrivals that are served elsewhere."""
    wait_seconds: Floats
    """Mean over all arrivals, where those that leave do so at once."""


def blocking(servers: ArrayLike, offered: ArrayLike) -> Floats:
    """Share of arrivals that find all servers busy when none waits (Erlang B).

    ``servers`` are whole numbers, 0 or more; ``offered`` is arrival rate times mean service time, 0
    or more. They are broadcast.
    """
    both = np.broadcast_arrays(np.asarray(servers), np.asarray(offered, dtype=np.float64))
    whole, load = (np.array(each, order="C") for each in both)
    lost = np.empty(load.shape)
    erlang_b(whole.ravel(), load.ravel(), lost.ravel())
    return lost


def delayed(servers: ArrayLike, offered: ArrayLike) -> Floats:
    """Share of arrivals that have to wait when all do (Erlang C); 1 where the load is too high."""
    lost = blocking(servers, offered)
    load = np.asarray(offered, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        used = load / np.asarray(servers, dtype=np.float64)
        share = lost / (1.0 - used * (1.0 - lost))
    return np.where(used < 1.0, share, 1.0)


def with_patience(
    arrivals: ArrayLike,
    services: ArrayLike,
    servers: ArrayLike,
    threshold_seconds: ArrayLike,
    joining: ArrayLike = 1.0,
) -> ImpatientQueue:
    """The queue that an arrival joins only if its wait stays within a threshold.

    Jobs that leave while waiting and that never join are the same, so both are this queue. The
    load may exceed what the servers can do.

    Parameters
    ----------
    arrivals, services
        Arrivals per second; services per second and server.
    servers
        Whole numbers.
    threshold_seconds
        Longest wait; 0 to infinity.
    joining
        Share of those that would wait no longer, and do join.

    All are broadcast against each other.
    """
    rate, service, patience, joined = (
        np.asarray(each, dtype=np.float64)
        for each in (arrivals, services, threshold_seconds, joining)
    )
    whole = np.asarray(servers)
    lost = blocking(whole, rate / service)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        capacity = whole * service
        beta = capacity * lost / (1.0 - lost)
        delta = capacity - joined * rate
        x = np.where(delta == 0.0, 0.0, delta * patience)
        # Everything is divided by e^-min(x, 0), so that nothing overflows in overload.
        scale = np.exp(np.minimum(x, 0.0))
        at_threshold = np.exp(-np.maximum(x, 0.0))
        small = np.abs(x) < _SERIES_BELOW
        mass = np.where(
            small,
            patience * (1.0 - x / 2.0 + x * x / 6.0) * scale,
            np.where(x > 0.0, -np.expm1(-np.maximum(x, 0.0)), np.expm1(np.minimum(x, 0.0))) / delta,
        )
        times = np.where(np.isinf(x), 0.0, x) * at_threshold
        moment = np.where(
            small,
            patience**2 * (0.5 - x / 3.0 + x * x / 8.0) * scale,
            np.where(x > 0.0, 1.0 - at_threshold - times, scale - 1.0 - x) / delta**2,
        )
        density = beta / (scale + beta * (mass + at_threshold / capacity))
        too_long = density * at_threshold / capacity
        # As many arrive as can be served, and none leaves: waits grow without end.
        endless = np.isinf(mass)
        waiting = np.where(endless, 1.0, density * mass)
        leaving = too_long + (1.0 - joined) * waiting
        wait = joined * np.where(endless, np.inf, density * moment)
    none = whole == 0
    return ImpatientQueue(np.where(none, 1.0, leaving), np.where(none, 0.0, wait))


def lost_time(share: ArrayLike, seconds: ArrayLike) -> Floats:
    """Mean of ``seconds`` that only a share waits: 0 where none does, however long it were."""
    part = np.asarray(share, dtype=np.float64)
    with np.errstate(invalid="ignore"):  # 0 times infinity
        return np.where(part > 0.0, part * np.asarray(seconds, dtype=np.float64), 0.0)


@dataclass(frozen=True, slots=True)
class Load:
    """Arrivals, and the price of owning."""

    arrivals_per_second: float
    services_per_second: float
    """Rates; the mean runtime is one by the second."""
    fixed_price: float = 0.4
    """Price of a fixed server relative to the same on demand."""

    def __post_init__(self) -> None:
        require_positive(self, "arrivals_per_second", "services_per_second")
        require(self.fixed_price >= 0.0, self, "fixed_price", "0 or more")

    @property
    def offered(self) -> float:
        """Servers that would be busy on average if no job waited and none were missing."""
        return self.arrivals_per_second / self.services_per_second


class LongRunOutcome(NamedTuple):
    """Result of a policy in the long run; arrays of one shape."""

    wait_seconds: Floats
    """Mean wait over all jobs; infinite where the queue only grows."""
    price: Floats
    """Mean price of a unit of work; 1 is the on-demand price."""
    rented_jobs: Floats
    rented_work: Floats
    """Shares of jobs and of work that run on rented servers."""

    @property
    def opportunity_cost(self) -> Floats:
        """Price times wait: what is saved in waiting is paid, and the other way round."""
        return self.price * self.wait_seconds


def all_jobs_wait(load: Load, servers: ArrayLike) -> LongRunOutcome:
    """AJW: every job waits for a fixed server (equations 6.1 and 6.2)."""
    whole = np.asarray(servers)
    wait = _queue_wait(whole, load.arrivals_per_second, load.services_per_second)
    return long_run(load, whole, wait, 0.0, 0.0)


def no_jobs_wait(load: Load, servers: ArrayLike) -> LongRunOutcome:
    """NJW: a job that finds no free fixed server is rented one (equations 6.3 and 6.4)."""
    whole = np.asarray(servers)
    lost = blocking(whole, load.offered)
    return long_run(load, whole, 0.0, lost, lost)


def all_jobs_wait_up_to(
    load: Load, servers: ArrayLike, waiting_seconds: ArrayLike
) -> LongRunOutcome:
    """AJW-T: every job waits, and one that has waited for so long is rented a server (6.5-6.11)."""
    whole = np.asarray(servers)
    queue = with_patience(
        load.arrivals_per_second, load.services_per_second, whole, waiting_seconds
    )
    wasted = lost_time(queue.leaving, waiting_seconds)
    return long_run(load, whole, queue.wait_seconds + wasted, queue.leaving, queue.leaving)


def short_waits_wait(
    load: Load,
    servers: ArrayLike,
    waiting_seconds: ArrayLike,
    over: ArrayLike = 0.0,
    under: ArrayLike = 0.0,
) -> LongRunOutcome:
    """SWW: only what will wait no longer than that does wait (6.12), with wrong predictions.

    Parameters
    ----------
    load, servers, waiting_seconds
        As for AJW-T.
    over
        Share of all jobs whose wait is predicted too long: rented at once, even if a fixed server
        is free (6.13, corrected).
    under
        Share of those that would wait too long, and are not predicted to: their wait times out.
    """
    whole = np.asarray(servers)
    wrong, blind = (np.asarray(each, dtype=np.float64) for each in (over, under))
    queue = with_patience(
        (1.0 - wrong) * load.arrivals_per_second, load.services_per_second, whole, waiting_seconds
    )
    vain = lost_time(blind * queue.leaving, waiting_seconds)
    rented = wrong + (1.0 - wrong) * queue.leaving
    return long_run(load, whole, (1.0 - wrong) * (queue.wait_seconds + vain), rented, rented)


def long_jobs_wait(
    load: Load,
    servers: ArrayLike,
    short_seconds: ArrayLike,
    over: ArrayLike = 0.0,
    under: ArrayLike = 0.0,
) -> LongRunOutcome:
    """LJW: shorter jobs are always rented, the others wait (6.14-6.22), with wrong predictions.

    Parameters
    ----------
    load, servers
        As for AJW.
    short_seconds
        A job that runs for less is short.
    over
        Share of short jobs that are taken for long ones.
    under
        Share of long jobs that are taken for short ones.
    """
    whole = np.asarray(servers)
    kinds = _split(load, short_seconds)
    wrong_short, wrong_long = (np.asarray(each, dtype=np.float64) for each in (over, under))
    short_fixed = kinds.short * wrong_short
    long_fixed = (1.0 - kinds.short) * (1.0 - wrong_long)
    fixed = short_fixed + long_fixed
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (short_fixed * kinds.short_seconds + long_fixed * kinds.long_seconds) / fixed
        square = (short_fixed * kinds.short_square + long_fixed * kinds.long_square) / fixed
        variability = square / mean**2 - 1.0
        wait = (
            (variability + 1.0)
            / 2.0
            * _queue_wait(whole, fixed * load.arrivals_per_second, 1.0 / mean)
        )
        waited = lost_time(fixed, wait)
    rented_short = kinds.short * (1.0 - wrong_short)
    rented_long = (1.0 - kinds.short) * wrong_long
    work = load.services_per_second * (
        rented_short * kinds.short_seconds + rented_long * kinds.long_seconds
    )
    return long_run(load, whole, waited, rented_short + rented_long, work)


def compound(
    load: Load, servers: ArrayLike, short_seconds: ArrayLike, waiting_seconds: ArrayLike
) -> LongRunOutcome:
    """LJW first, then SWW on the long jobs (6.23-6.25).

    The waits are those of exponential jobs with as high a load, threshold and wait scaled to long
    jobs' lower variability: near to simulation, which the printed form is not.
    """
    whole = np.asarray(servers)
    threshold = np.asarray(waiting_seconds, dtype=np.float64)
    kinds = _split(load, short_seconds)
    share = 1.0 - kinds.short
    factor = (kinds.long_square / kinds.long_seconds**2) / 2.0
    queue = with_patience(
        share * load.arrivals_per_second, 1.0 / kinds.long_seconds, whole, threshold / factor
    )
    wait = factor * queue.wait_seconds * share
    mu = load.services_per_second
    work = mu * (kinds.short * kinds.short_seconds + share * queue.leaving * kinds.long_seconds)
    return long_run(load, whole, wait, kinds.short + share * queue.leaving, work)


FORMULAS: Final[Mapping[str, tuple[Callable[..., LongRunOutcome], tuple[str, ...]]]] = {
    "all-jobs-wait": (all_jobs_wait, ()),
    "no-jobs-wait": (no_jobs_wait, ()),
    "all-jobs-wait-threshold": (all_jobs_wait_up_to, ("waiting_seconds",)),
    "short-waits-wait": (short_waits_wait, ("waiting_seconds", "over", "under")),
    "long-jobs-wait": (long_jobs_wait, ("short_seconds", "over", "under")),
    "compound": (compound, ("short_seconds", "waiting_seconds")),
}
"""The formula of each policy, and what it takes beside load and servers."""
POLICIES: Final = tuple(FORMULAS)


def full_name(policy: str) -> str:
    """The long name of a policy that has a formula.

    Raises ``UnknownNameError`` if there is no such policy.
    """
    name = todays_name("waiting policy", policy)
    if name not in FORMULAS:
        raise UnknownNameError("waiting policy", policy, POLICIES)
    return name


def expected(
    policy: str,
    load: Load,
    servers: ArrayLike,
    waiting_seconds: ArrayLike = np.inf,
    short_seconds: ArrayLike = 0.0,
    over: float = 0.0,
    under: float = 0.0,
) -> LongRunOutcome:
    """Result of the policy of this name.

    ``over`` and ``under`` are shares of wrong predictions, of waits for SWW and of runtimes for
    LJW; the other policies predict nothing, or have no formula for it.

    Raises ``UnknownNameError`` if there is no such policy; ``InputError`` if predictions of the
    compound are to be wrong.
    """
    name = full_name(policy)
    formula, takes = FORMULAS[name]
    if name == "compound" and (over or under):
        raise InputError(
            "there is no formula for wrong predictions",
            value=name,
            expected="short-waits-wait or long-jobs-wait",
        )
    given = {
        "waiting_seconds": waiting_seconds,
        "short_seconds": short_seconds,
        "over": over,
        "under": under,
    }
    return formula(load, servers, **{each: given[each] for each in takes})


def marginal_use(policy: str, load: Load, servers: ArrayLike, **limits: float) -> Floats:
    """Rented work that the last of so many fixed servers takes over, as a share of its time.

    It falls with the number of servers; a server is worth owning while this is at least its fixed
    price (section 6.4's "utilisation of the s-th server"). ``limits`` are as for ``expected``.
    """
    with_it, without = (
        expected(policy, load, count, **limits).rented_work
        for count in (servers, np.maximum(np.asarray(servers) - 1, 0))
    )
    return load.offered * (without - with_it)


def cheapest_servers(policy: str, load: Load, **limits: float) -> int:
    """The number of fixed servers with the lowest price, among those with finite waits.

    By bisection: the rented work is convex in the number of servers. Where nothing but short jobs
    is rented whatever the servers (AJW, LJW), it is the fewest that can do the rest. ``limits`` are
    as for ``expected``.

    Raises ``InputError`` if a fixed server costs nothing: then more are never too many.
    """
    require(load.fixed_price > 0.0, load, "fixed_price", "above 0")

    def is_worth_it(servers: int) -> bool:
        use = marginal_use(policy, load, servers, **limits)
        waits = expected(policy, load, servers - 1, **limits).wait_seconds
        return bool(use >= load.fixed_price or not np.isfinite(waits))

    above = 1
    while is_worth_it(above):
        above *= 2
    low = above // 2
    while above - low > 1:
        middle = (low + above) // 2
        if is_worth_it(middle):
            low = middle
        else:
            above = middle
    return low


class _Kinds(NamedTuple):
    """Short and long jobs among exponential ones: share, means (s) and mean squares (s2)."""

    short: Floats
    short_seconds: Floats
    short_square: Floats
    long_seconds: Floats
    long_square: Floats


def _split(load: Load, short_seconds: ArrayLike) -> _Kinds:
    limit = np.asarray(short_seconds, dtype=np.float64)
    mean = 1.0 / load.services_per_second
    short = -np.expm1(-limit / mean)
    long_seconds = limit + mean
    long_square = limit**2 + 2.0 * limit * mean + 2.0 * mean**2
    some = np.where(short > 0.0, short, 1.0)
    short_mean = np.where(short > 0.0, (mean - (1.0 - short) * long_seconds) / some, 0.0)
    short_square = np.where(short > 0.0, (2.0 * mean**2 - (1.0 - short) * long_square) / some, 0.0)
    return _Kinds(short, short_mean, short_square, long_seconds, long_square)


def _queue_wait(servers: ArrayLike, arrivals: ArrayLike, services: ArrayLike) -> Floats:
    """Mean wait of exponential jobs that all wait; infinite where the load is too high."""
    rate = np.asarray(arrivals, dtype=np.float64)
    service = np.asarray(services, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        offered = np.where(rate > 0.0, rate / service, 0.0)
        spare = np.asarray(servers) * service - rate
        wait = delayed(servers, offered) / spare
    return np.where(offered < np.asarray(servers), wait, np.where(rate > 0.0, np.inf, 0.0))


def long_run(
    load: Load,
    servers: ArrayLike,
    wait_seconds: ArrayLike,
    rented_jobs: ArrayLike,
    rented_work: ArrayLike,
) -> LongRunOutcome:
    """Result of so many servers, a mean wait, and shares of jobs and work that are rented."""
    owned = load.fixed_price * np.asarray(servers, dtype=np.float64) / load.offered
    price = owned + np.asarray(rented_work, dtype=np.float64)
    parts = np.broadcast_arrays(wait_seconds, price, rented_jobs, rented_work)
    return LongRunOutcome(*(np.array(part, dtype=np.float64) for part in parts))
