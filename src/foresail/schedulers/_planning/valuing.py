"""What a start in a slot is worth in expectation: before its deadline, after it, and without one.

Our own values fall in a straight line from full to nothing (or at once, at a deadline), so that
their expectation needs no integral but the limited mean of the runtime. Those of users may have any
shape and are averaged over the runtime's quantiles. 3Sigma equation 4.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from foresail.model.arrays import Floats
from foresail.model.distribution import Distribution
from foresail.model.errors import InputError
from foresail.model.reservation import Rejection
from foresail.model.value import DeadlineValue, DecayingValue, ValueFunction
from foresail.model.view import PendingJob, RunningJob
from foresail.schedulers._planning.beliefs import RuntimeBeliefs, longest_seconds
from foresail.schedulers._planning.parameters import PlanAheadParameters

_LATER: Final = 1e-6
"""By what share of its worth a start is worth less for every slot that it is later (T-5)."""


_LEFTOVER: Final = 0.001
"""What a start is worth that gains nothing, as a share of a job without a deadline."""

_NEVER_SECONDS: Final = 1e18
"""When the worth of a job ends whose options name no end."""

_QUANTILES: Final = 50
"""Over how many equally likely runtimes a user's own value function is averaged."""

_WORTHLESS: Final = 1e-6
"""A share of the full worth that is as good as nothing: such starts are left out."""


@dataclass(frozen=True, slots=True)
class Fall:
    """Worth ``full`` until ``begin_seconds``, nothing from ``end_seconds`` on, straight between."""

    full: float
    begin_seconds: float
    end_seconds: float

    def times(self, factor: float) -> Fall:
        """The same, worth so much more or less."""
        return self if factor == 1.0 else replace(self, full=self.full * factor)


@dataclass(frozen=True, slots=True)
class StandInValue(Fall):
    """Any other value function, beside the fall that stands for it where only falls will do."""

    job_id: str
    value: ValueFunction
    factor: float

    def times(self, factor: float) -> StandInValue:
        """The same, worth so much more or less."""
        return replace(self, full=self.full * factor, factor=self.factor * factor)

    def at(self, completion_seconds: float) -> float:
        """What the function says of a moment.

        Raises
        ------
        InputError
            If that is negative or no finite number.
        """
        worth = self.value.at(completion_seconds)
        if not 0.0 <= worth < math.inf:
            raise InputError(
                f"the value function of job {self.job_id} cannot be planned with",
                field=f"value at {completion_seconds:g} s",
                value=worth,
                expected="a finite number, 0 or above",
            )
        return worth * self.factor


def fall_of(asking: PendingJob | RunningJob, parameters: PlanAheadParameters) -> Fall:
    """How a job's worth falls, seen from its submission."""
    job, value = asking.job, asking.job.value
    if job.options:  # what its starts are worth is told, and by when it has to end may be
        deadline = job.deadline_seconds
        end = _NEVER_SECONDS if deadline is None else deadline
        return Fall(max(option.value for option in job.options), end, end)
    match value:
        case DeadlineValue(deadline, full):
            rejected = isinstance(asking.reservation, Rejection)
            worth = full * (parameters.unreserved_value if rejected else parameters.slo_value)
            allowed = deadline - job.submit_seconds
            if not _counts_late(asking.prediction, allowed, parameters):
                return Fall(worth, deadline, deadline)
            slowdown = 1.0 if job.preference is None else job.preference.slowdown
            window = parameters.window_slots * parameters.slot_seconds
            longest = longest_seconds(asking.prediction) * slowdown
            return Fall(worth, deadline, deadline + max(allowed, window + longest))
        case DecayingValue(start, zero, full):
            return Fall(parameters.best_effort_value * full, start, zero)
    begin, worth = job.submit_seconds, parameters.best_effort_value
    end = begin + parameters.best_effort_horizon_seconds
    if value is None:
        return Fall(worth, begin, end)
    told = StandInValue(worth, begin, end, job.job_id, value, worth)
    return replace(told, full=told.at(begin))


def _counts_late(belief: Distribution, allowed: float, parameters: PlanAheadParameters) -> bool:
    """Whether a job is worth something after its deadline: it may always have been hopeless."""
    if parameters.over_estimates != "adaptive":
        return parameters.over_estimates == "on"
    in_time = float(belief.cumulative(max(allowed, 0.0)))
    return in_time < parameters.hopeless_below


def least_worth(pending: PendingJob, fall: Fall, parameters: PlanAheadParameters) -> float:
    """What any start of a job is worth, however late: nothing if it is to be dropped then.

    Only jobs whose worth can end for good are dropped: those with a deadline, or a value that falls
    to nothing; not those that are worth nothing while a budget is spent.
    """
    ends = isinstance(pending.job.value, DeadlineValue | DecayingValue)
    may_be_hopeless = ends and fall.full > 0.0
    if parameters.hopeless_jobs == "drop" and may_be_hopeless:
        return 0.0
    if pending.job.options:
        return _LEFTOVER * fall.full
    return _LEFTOVER * parameters.best_effort_value


def expected_worth(
    beliefs: RuntimeBeliefs,
    falls: Sequence[Fall],
    least: Floats,
    slowdown: float,
    now: float,
    parameters: PlanAheadParameters,
) -> Floats:
    """Expected worth of every job if it starts in a slot, where it runs so much longer.

    Parameters
    ----------
    beliefs, falls, least
        Of every job; ``least`` as ``least_worth`` says, of shape (jobs,).
    slowdown, now, parameters
        How many times longer it runs; as everywhere in a plan.

    Returns
    -------
    numpy.ndarray
        Shape (jobs, slots); 0 where a start is worth nothing.
    """
    worth = worth_of_falls(beliefs, falls, slowdown, now, parameters)
    at_least: Floats = np.maximum(worth, least[:, np.newaxis])
    return at_least * rather_earlier(parameters)


def rather_earlier(parameters: PlanAheadParameters) -> Floats:
    """What of its worth a start keeps by slot, so that of equal starts the earliest is chosen."""
    later: Floats = 1.0 - _LATER * np.arange(parameters.window_slots, dtype=np.float64)
    return later


def worth_of_falls(
    beliefs: RuntimeBeliefs,
    falls: Sequence[Fall],
    slowdown: float,
    now: float,
    parameters: PlanAheadParameters,
) -> Floats:
    """The same without the least that any start is worth; shape (beliefs, slots)."""
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
    told = [at for at, fall in enumerate(falls) if isinstance(fall, StandInValue)]
    if told:
        levels = np.tile((np.arange(_QUANTILES) + 0.5) / _QUANTILES, (len(falls), 1))
        runtimes = beliefs.quantiles(levels) * slowdown
        moments: Floats = now + np.arange(slots, dtype=np.float64) * step
        for at in told:
            worth[at] = _mean_worth(falls[at], runtimes[at], moments)
    return worth


def _mean_worth(fall: Fall, runtimes: Floats, starts: Floats) -> Floats:
    """Mean of a told value over equally likely runtimes, by start."""
    assert isinstance(fall, StandInValue)
    ends = starts[:, np.newaxis] + runtimes
    different, back = np.unique(ends, return_inverse=True)
    worth = np.array([fall.at(end) for end in different.tolist()])
    mean: Floats = worth[back].reshape(ends.shape).mean(axis=1)
    return mean


def stopping_cost(
    victims: Sequence[RunningJob], now: float, parameters: PlanAheadParameters
) -> Floats:
    """What stopping each running job costs: the worth of the work that is lost, and something more.

    The source leaves it open. Here: by how much more a job is worth that goes on than one that
    starts again now, and the least that a stop costs (spec section 5.7). A job past its deadline
    that is still worth something costs all of that, lest such jobs stop each other in turn.
    """
    least = parameters.preemption_cost * parameters.best_effort_value
    per_second = parameters.best_effort_value / parameters.best_effort_horizon_seconds
    elapsed = np.array([victim.elapsed_seconds(now) for victim in victims])
    late = np.array([_late_worth(victim, now, parameters) for victim in victims])
    cost: Floats = least + per_second * elapsed + late
    return cost


def _late_worth(victim: RunningJob, now: float, parameters: PlanAheadParameters) -> float:
    """What a job past its deadline is worth if it ended now; 0 for one that has none."""
    if not isinstance(victim.job.value, DeadlineValue):
        return 0.0
    fall = fall_of(victim, parameters)
    width = fall.end_seconds - fall.begin_seconds
    return fall.full * max(0.0, (fall.end_seconds - now) / width) if width > 0.0 else 0.0


def may_be_stopped(running: RunningJob, now: float) -> bool:
    """Whether a running job has no deadline, or has missed it; not in the instant it starts."""
    value = running.job.value
    if running.start_seconds >= now:
        return False
    return not isinstance(value, DeadlineValue) or value.deadline_seconds < now
