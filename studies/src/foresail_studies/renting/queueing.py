"""Queues of identical servers with Poisson arrivals and exponential service times."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foresail.kernels.compile import bare_kernel
from foresail.model.arrays import Floats
from foresail.model.errors import InputError


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
    whole = checked_servers(servers)
    load = checked_amount("offered load", offered)
    whole, load = (np.array(each, order="C") for each in np.broadcast_arrays(whole, load))
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
    """The queue that an arrival joins only if its wait stays within a threshold (spec section 5).

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
    rate = checked_amount("arrivals per second", arrivals)
    service = checked_amount("services per second", services)
    whole = checked_servers(servers)
    patience = checked_amount("waiting threshold", threshold_seconds)
    joined = checked_share("joining", joining)
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


def checked_servers(servers: ArrayLike) -> NDArray[np.int64]:
    """Whole numbers of servers."""
    given = np.asarray(servers)
    whole = given.astype(np.int64)
    _refuse(given, (whole != given) | (whole < 0), "servers", "whole numbers, 0 or more")
    return whole


def checked_amount(name: str, values: ArrayLike) -> Floats:
    """Numbers of 0 or more."""
    given = np.asarray(values, dtype=np.float64)
    _refuse(given, ~(given >= 0.0), name, "0 or more")
    return given


def checked_share(name: str, values: ArrayLike) -> Floats:
    """Numbers from 0 to 1."""
    given = np.asarray(values, dtype=np.float64)
    _refuse(given, ~((given >= 0.0) & (given <= 1.0)), name, "a share from 0 to 1")
    return given


def _refuse(given: NDArray[np.generic], wrong: NDArray[np.bool_], name: str, expected: str) -> None:
    if np.any(wrong):
        first = given.ravel()[int(np.argmax(wrong.ravel()))]
        raise InputError("out of range", field=name, value=first.item(), expected=expected)
