"""Shortest likely first with a bound on every wait: bold where it can be, careful where it must.

Beyond paper 004: the whole queue is ordered by the likely runtime instead of the backfill phase
alone; a job that would tell about many alike ones goes early (``probe``); requests, not
predictions, guard the oldest jobs. ``docs/decisions/0005-recommendation.md`` has the reasons.
"""

from __future__ import annotations

from dataclasses import dataclass

from foresail.model.errors import InputError
from foresail.model.registry import register
from foresail.schedulers._queueing import Orders, QueueScheduler
from foresail.schedulers.kernels.guarded import GUARD_COLUMNS, guarded_pass

_DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class GuardedParameters:
    """Parameters of ``guarded_backfilling``.

    Parameters
    ----------
    queue
        Order of the queue: a named order or an expression over job fields.
    likely
        Runtime that a backfill candidate is tried with.
    plan
        Runtime that running jobs and guarantees are planned with.
    oldest_limit_seconds
        The oldest waiting job goes first once it has waited this long.
    age_limit_seconds
        Every job that has waited this long goes first, in order of arrival.
    wait_bound_seconds
        No start may, by planned runtimes, make a protected job wait longer than this (unless it
        must anyway).
    protected
        How many of the oldest waiting jobs are protected so.
    """

    queue: str = "max(q50, 10) / probe"
    likely: str = "q50"
    plan: str = "requested if requested < 1e12 else 2 * q90"
    oldest_limit_seconds: float = 1.5 * _DAY_SECONDS
    age_limit_seconds: float = 2.5 * _DAY_SECONDS
    wait_bound_seconds: float = 3.0 * _DAY_SECONDS
    protected: int = 2


@register("scheduler", "guarded_backfilling", parameters=GuardedParameters)
class Guarded(QueueScheduler):
    """Shortest likely first, alike jobs after a probe, and requests that guard the oldest."""

    def __init__(self, parameters: GuardedParameters) -> None:
        if parameters.protected < 1:
            raise InputError(
                "parameter out of range",
                field="protected",
                value=parameters.protected,
                expected="1 or more",
            )
        orders = Orders(
            queue=parameters.queue,
            plan=parameters.plan,
            likely=parameters.likely,
            age_limit_seconds=parameters.age_limit_seconds,
            oldest_limit_seconds=parameters.oldest_limit_seconds,
        )
        super().__init__(
            guarded_pass,
            orders,
            parameters.wait_bound_seconds,
            parameters.protected,
            parameters.age_limit_seconds,
            parameters.oldest_limit_seconds,
            *[0.0] * (GUARD_COLUMNS * parameters.protected),
            most_reserved=1,
        )
