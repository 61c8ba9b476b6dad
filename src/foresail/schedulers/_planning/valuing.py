"""What a start in a slot is worth in expectation: before its deadline, after it, and without one.

Every value falls in a straight line from full to nothing (or at once, at a deadline), so that its
expectation needs no integral but the limited mean of the runtime. 3Sigma equation 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.model.value import DeadlineValue, DecayingValue
from foresail.model.view import PendingJob, RunningJob
from foresail.schedulers._planning.beliefs import Beliefs, longest_seconds
from foresail.schedulers._planning.parameters import PlanAheadParameters

Floats = NDArray[np.float64]

_LATER: Final = 1e-6
"""By what share of its worth a start is worth less for every slot that it is later (T-5)."""


_WORTHLESS: Final = 1e-6
"""A share of the full worth that is as good as nothing: such starts are left out."""


@dataclass(frozen=True, slots=True)
class Fall:
    """Worth ``full`` until ``begin_seconds``, nothing from ``end_seconds`` on, straight between."""

    full: float
    begin_seconds: float
    end_seconds: float


def fall_of(pending: PendingJob, parameters: PlanAheadParameters) -> Fall:
    """How a pending job's worth falls, seen from its submission."""
    job, value = pending.job, pending.job.value
    match value:
        case DeadlineValue(deadline, full):
            worth = parameters.slo_value * full
            allowed = deadline - job.submit_seconds
            if not _counts_late(pending, allowed, parameters):
                return Fall(worth, deadline, deadline)
            slowdown = 1.0 if job.preference is None else job.preference.slowdown
            window = parameters.window_slots * parameters.slot_seconds
            longest = longest_seconds(pending.prediction) * slowdown
            return Fall(worth, deadline, deadline + max(allowed, window + longest))
        case DecayingValue(start, zero, full):
            return Fall(parameters.best_effort_value * full, start, zero)
        case _:
            begin = job.submit_seconds
            end = begin + parameters.best_effort_horizon_seconds
            return Fall(parameters.best_effort_value, begin, end)


def _counts_late(pending: PendingJob, allowed: float, parameters: PlanAheadParameters) -> bool:
    """Whether a job is worth something after its deadline: it may always have been hopeless."""
    if parameters.over_estimates != "adaptive":
        return parameters.over_estimates == "on"
    in_time = float(pending.prediction.cumulative(max(allowed, 0.0)))
    return in_time < parameters.hopeless_below


def expected_worth(
    beliefs: Beliefs,
    falls: Sequence[Fall],
    slowdown: float,
    now: float,
    parameters: PlanAheadParameters,
) -> Floats:
    """Expected worth of every job if it starts in a slot, where it runs so much longer.

    Returns
    -------
    numpy.ndarray
        Shape (jobs, slots); 0 where a start is worth nothing.
    """
    step, slots = parameters.slot_seconds, parameters.window_slots
    full = np.array([fall.full for fall in falls])
    begin = np.array([fall.begin_seconds - now for fall in falls])
    width = np.array([fall.end_seconds - fall.begin_seconds for fall in falls])
    worth = beliefs.done_by(slowdown, begin, step, slots)
    straight = np.flatnonzero(width > 0.0)
    if straight.size:
        starts = np.arange(slots) * step
        until = begin[:, np.newaxis] - starts  # negative: the fall has begun before the start
        ends = until + width[:, np.newaxis]
        lost = beliefs.limited_means(slowdown, ends) - beliefs.limited_means(slowdown, until)
        worth[straight] = 1.0 - lost[straight] / width[straight, np.newaxis]
    worth = full[:, np.newaxis] * np.maximum(worth, 0.0)
    worth = np.where(worth < _WORTHLESS * full[:, np.newaxis], 0.0, worth)
    leftover = parameters.leftover_value * parameters.best_effort_value
    later: Floats = 1.0 - _LATER * np.arange(slots, dtype=np.float64)
    at_least: Floats = np.maximum(worth, leftover)
    return at_least * later


def stopping_cost(
    victims: Sequence[RunningJob], now: float, parameters: PlanAheadParameters
) -> Floats:
    """What stopping each running job costs: the worth of the work that is lost, and something more.

    The source leaves it open. Here: by how much more a job is worth that goes on than one that
    starts again now, and the least that a stop costs (spec section 5.7).
    """
    least = parameters.preemption_cost * parameters.best_effort_value
    per_second = parameters.best_effort_value / parameters.best_effort_horizon_seconds
    elapsed = np.array([victim.elapsed_seconds(now) for victim in victims])
    return least + per_second * elapsed


def may_be_stopped(running: RunningJob, now: float) -> bool:
    """Whether a running job has no deadline, or has missed it; not in the instant it starts."""
    value = running.job.value
    if running.start_seconds >= now:
        return False
    return not isinstance(value, DeadlineValue) or value.deadline_seconds < now
