"""Which waiting job starts, as ``foresail cloud waiting`` was asked: order or scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import typer

from foresail.model.errors import InputError

if TYPE_CHECKING:
    from foresail.cloud.waiting.policies import Queue
    from foresail.cloud.waiting.settings import Ranking, Scheduling
    from foresail.control.policy import Policy
    from foresail.model.arrays import Floats
    from foresail.traces.workload import Workload

_JOBS_A_SECOND: Final = 2_500
_LONG_SECONDS: Final = 60.0


@dataclass(frozen=True)
class QueueChoice:
    """Which waiting job starts: an order, or a policy of the replay."""

    order: str
    scheduler: Policy | None

    def __str__(self) -> str:
        if self.scheduler is None:
            return f"waiting jobs go in the order {self.order}"
        return f"the fixed machines are under {self.scheduler.label}"


def line_of(order: str | None, scheduler: str | None) -> QueueChoice:
    """Checked, before a long log is read."""
    from foresail.cloud.waiting.policies import QUEUES
    from foresail.control.policy import parse_policy
    from foresail.evaluation.renting import static_order

    if order is not None and scheduler is not None:
        raise InputError(
            "an order and a scheduler, which has one of its own",
            field="--order",
            value=order,
            expected="--order or --scheduler",
        )
    if order is not None and order not in QUEUES:
        static_order(order)
    if scheduler is None:
        return QueueChoice(order or "fcfs", None)
    policy = parse_policy(scheduler)
    policy.build()
    return QueueChoice("", policy)


def queue_of(
    line: QueueChoice, workload: Workload, believed: Floats
) -> Queue | Ranking | Scheduling:
    """The same for simulations of a log."""
    from foresail.cloud.waiting.policies import QUEUES
    from foresail.evaluation.renting import ReplayScheduling, ranking

    if line.scheduler is not None:
        return ReplayScheduling(workload, line.scheduler)
    for name in QUEUES:
        if name == line.order:
            return name
    return ranking(workload, line.order, believed)


def warn_of_time(scheduler: Policy, jobs: int, settings: int) -> None:
    """A scheduler is asked at every event, in every simulation: say what that comes to."""
    seconds = jobs * settings / _JOBS_A_SECOND
    if seconds < _LONG_SECONDS:
        return
    from foresail.model.words import count, duration

    typer.echo(
        f"{count(settings, 'setting')} of {count(jobs, 'job')} under {scheduler.label}, event by "
        f"event: at {_JOBS_A_SECOND:,} jobs a second (easy; planning ahead is much slower) some "
        f"{duration(seconds)} of processor time; fewer --fixed, --policy and jobs are quicker",
        err=True,
    )
