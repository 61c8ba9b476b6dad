"""Parameters of planning ahead, and expected worth of a start in a slot.

Our own values decay in a straight line from full to nothing (or at once, at a deadline), so that
their expectation needs no integral but the limited mean of the runtime. Those of users may have any
shape and are averaged over the runtime's quantiles. 3Sigma equation 4.1.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike

from foresail.distributions.basic import Point
from foresail.distributions.log_normal import LogNormal
from foresail.distributions.packed import PackedDistributions
from foresail.distributions.quantiles import Quantiles
from foresail.distributions.truncated_normal import TruncatedNormal
from foresail.model.distribution import Distribution, Floats
from foresail.model.errors import InputError, require, require_at_least, require_positive
from foresail.model.job import DeadlineValue, DecayingValue, ValueFunction
from foresail.model.view import PendingJob, Rejection, RunningJob

OverEstimates = Literal["off", "on", "adaptive"]
HopelessJobs = Literal["run_on_leftovers", "drop"]


@dataclass(frozen=True, slots=True)
class PlanAheadParameters:
    """Parameters of the schedulers that plan ahead."""

    window_slots: int = 24
    slot_seconds: float = 60.0
    """Number of starts that a plan considers, the first now, and time between two. One slot
    means no planning ahead."""
    distribution: bool = True
    """Plan with the whole belief about a runtime; otherwise with its mean alone."""
    over_estimates: OverEstimates = "adaptive"
    """Worth of a job with a deadline after it: nothing (``off``), less and less (``on``), or less
    and less if the probability to run no longer than from submission to deadline is below 0.05
    (``adaptive``)."""
    preemption: bool = True
    """Jobs without a deadline (or past it) may be stopped for others."""
    back_off_seconds: float = 0.0
    """A job that was stopped runs at least so long before it is stopped again, twice as long after
    each further stop. 0: it may be stopped at any moment, as published."""
    soft_constraints: bool = True
    """Know where a job runs best; otherwise every job is planned as if it ran elsewhere."""
    placing: Literal["globally", "in_order"] = "globally"
    """``globally``: all jobs at once. ``in_order``: one after the other by arrival, those with a
    deadline first, of these the ones whose reservation was rejected last."""
    reservations: Literal["off", "latest", "earliest"] = "off"
    """Reservation that a job with a deadline asks for at its submission: none, as late as its
    deadline allows, or as early as nodes can be promised."""
    slo_value: float = 1000.0
    best_effort_value: float = 1.0
    """Worth of a job with a deadline until then, but for 25 if its request for a reservation was
    rejected; of one without a deadline at its submission."""
    best_effort_horizon_seconds: float = 18_000.0
    """Time after its submission from which a job without a deadline is worth nothing."""
    hopeless_jobs: HopelessJobs = "run_on_leftovers"
    """Treatment of a job that can gain nothing any more, its deadline being out of reach or its own
    value spent: it runs on nodes that no other job wants (``run_on_leftovers``), or it is withdrawn
    and never starts (``drop``), as in the published systems."""
    cycle_seconds: float = 2.0
    solver_share: float = 0.25
    """Time between two decisions, and the share of it in which the scheduler may plan: as much work
    as a usual machine does in that time."""
    relative_gap: float = 0.02
    """Share of its value by which the best plan may be better than one that is good enough."""
    solver: str = "highs"
    """Name of the solver."""
    end_to_end: bool = False
    """A job that others wait for is also worth what these are worth, if it lets them be in time."""
    fair_share: float = 0.0
    """Weight of fair shares: a user's jobs are worth less the more of the cluster the user has had
    lately; their worth is divided by one plus this times what the user has had, as a multiple of an
    equal share. 0: not at all."""
    share_half_life_seconds: float = 86_400.0
    """Age at which what a user has had counts for half."""

    def __post_init__(self) -> None:
        require(1 <= self.window_slots <= 1000, self, "window_slots", "from 1 to 1000")
        require_positive(self, "slot_seconds", "cycle_seconds", "share_half_life_seconds")
        require_positive(self, "slo_value", "best_effort_value")
        require_positive(self, "best_effort_horizon_seconds")
        require_at_least(self, 0, "relative_gap", "fair_share", "back_off_seconds")
        require(0.0 < self.solver_share <= 1.0, self, "solver_share", "above 0, at most 1")

    @property
    def work_seconds(self) -> float:
        """Return how much work a cycle may take."""
        return self.cycle_seconds * self.solver_share


_LEVELS: Final = np.concatenate((np.linspace(0.0, 0.98, 50), [0.99, 0.995, 0.999, 1.0]))
_NEARLY_ONE: Final = 0.9999
_GRACE_SECONDS: Final = 1e-6


def longest_seconds(belief: Distribution) -> float:
    """The longest runtime that is believed possible; of an endless belief, that of nearly all."""
    longest = belief.quantile(1.0)
    return longest if np.isfinite(longest) else belief.quantile(_NEARLY_ONE)


def in_pieces(belief: Distribution) -> Distribution:
    """The belief itself, or a smooth one as straight pieces between some fifty quantiles."""
    match belief:
        case LogNormal() | TruncatedNormal():
            values = [belief.quantile(float(level)) for level in _LEVELS[:-1]]
            return Quantiles(_LEVELS, [*values, max(longest_seconds(belief), values[-1])])
        case _:
            return belief


class RuntimeBeliefs:
    """The beliefs of some jobs, each about the runtime on the nodes it likes best."""

    def __init__(self, beliefs: Sequence[Distribution]) -> None:
        self._packed = PackedDistributions.pack(list(beliefs))
        pieces = [in_pieces(belief) for belief in beliefs]
        unchanged = all(map(operator.is_, pieces, beliefs))
        self._pieces = self._packed if unchanged else PackedDistributions.pack(pieces)

    def still_running(self, slowdown: float, offsets: Floats, elapsed: ArrayLike = 0.0) -> Floats:
        """Probability to run on so many seconds after the elapsed ones; shape (jobs, offsets).

        Zeros where nothing is left beyond the elapsed time.
        """
        since = np.broadcast_to(np.asarray(elapsed, np.float64), len(self._packed)) / slowdown
        return self._packed.survival_grid(since, offsets / slowdown)

    def done_by(self, slowdown: float, seconds: Floats, step: float, slots: int) -> Floats:
        """Probability of each to be done by a moment if it starts so many steps from now.

        The jobs run ``slowdown`` times longer; ``seconds`` are those from now to each job's moment,
        shape (jobs,), of which a millionth of a second is given. There are so many ``slots``, a
        ``step`` (seconds) apart; the shape is (jobs, slots).
        """
        left = seconds + _GRACE_SECONDS
        last = np.clip(np.floor(left / step), -1, slots - 1).astype(np.int64)  # start in time
        shortest = np.maximum(left - last * step, 0.0) / slowdown
        offsets = np.arange(slots) * (step / slowdown)
        running = self._packed.survival_grid(shortest, offsets)
        running *= self._packed.left(shortest)[:, np.newaxis]
        place = last[:, np.newaxis] - np.arange(slots)
        late = np.take_along_axis(running, np.maximum(place, 0), axis=1)
        return np.where(place >= 0, 1.0 - late, 0.0)

    def limited_means(self, slowdown: float, bounds: Floats) -> Floats:
        """E[min(runtime, bound)] for each job's own bounds (seconds); shapes (jobs, n)."""
        return self._pieces.limited_means(bounds / slowdown) * slowdown

    def quantiles(self, levels: Floats) -> Floats:
        """Each job's quantiles at its own levels; shapes (jobs, n)."""
        return self._pieces.quantiles(levels)


def as_point(belief: Distribution) -> Point:
    """The mean as if it were certain."""
    return Point(belief.mean())


_LATER: Final = 1e-6
"""Share of its worth that a start loses for every slot that it is later (T-5)."""


_LEFTOVER: Final = 0.001
"""Worth of a start that gains nothing, as a share of a job without a deadline."""

_UNRESERVED_VALUE: Final = 25.0
"""Worth of a job until its deadline whose request for a reservation was rejected."""

_HOPELESS_BELOW: Final = 0.05
"""Chance of being in time below which a job counts as hopeless from the beginning."""

_PREEMPTION_COST: Final = 10.0
"""Cost of stopping a job at least, in jobs without a deadline: what is gained by it has to be worth
that much. If that is little, jobs are stopped for a thousandth of a chance."""

_NEVER_SECONDS: Final = 1e18
"""End of the worth of a job whose options name no end."""

_QUANTILES: Final = 50
"""Over how many equally likely runtimes a user's own value function is averaged."""

_WORTHLESS: Final = 1e-6
"""A share of the full worth that is as good as nothing: such starts are left out."""


@dataclass(frozen=True, slots=True)
class UtilityDecay:
    """Worth ``full`` until ``begin_seconds``, nothing from ``end_seconds`` on, straight between."""

    full: float
    begin_seconds: float
    end_seconds: float

    def times(self, factor: float) -> UtilityDecay:
        """Scale the worth by a factor."""
        return self if factor == 1.0 else replace(self, full=self.full * factor)


@dataclass(frozen=True, slots=True)
class StandInValue(UtilityDecay):
    """Any other value function, beside the decay that stands for it where only decays will do."""

    job_id: str
    value: ValueFunction
    factor: float

    def times(self, factor: float) -> StandInValue:
        """Scale the worth by a factor."""
        return replace(self, full=self.full * factor, factor=self.factor * factor)

    def at(self, completion_seconds: float) -> float:
        """Return what the function says of a moment.

        Raises ``InputError`` if that is negative or no finite number.
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


def utility_decay(asking: PendingJob | RunningJob, parameters: PlanAheadParameters) -> UtilityDecay:
    """Return how a job's worth decays, seen from its submission."""
    job, value = asking.job, asking.job.value
    if job.options:  # what its starts are worth is given, and by when it has to end may be
        deadline = job.deadline_seconds
        end = _NEVER_SECONDS if deadline is None else deadline
        return UtilityDecay(max(option.value for option in job.options), end, end)
    match value:
        case DeadlineValue(deadline, full):
            rejected = isinstance(asking.reservation, Rejection)
            worth = full * (_UNRESERVED_VALUE if rejected else parameters.slo_value)
            allowed = deadline - job.submit_seconds
            if not _counts_late(asking.prediction, allowed, parameters):
                return UtilityDecay(worth, deadline, deadline)
            slowdown = 1.0 if job.preference is None else job.preference.slowdown
            window = parameters.window_slots * parameters.slot_seconds
            longest = longest_seconds(asking.prediction) * slowdown
            return UtilityDecay(worth, deadline, deadline + max(allowed, window + longest))
        case DecayingValue(start, zero, full):
            return UtilityDecay(parameters.best_effort_value * full, start, zero)
    begin, worth = job.submit_seconds, parameters.best_effort_value
    end = begin + parameters.best_effort_horizon_seconds
    if value is None:
        return UtilityDecay(worth, begin, end)
    stand_ins = StandInValue(worth, begin, end, job.job_id, value, worth)
    return replace(stand_ins, full=stand_ins.at(begin))


def _counts_late(belief: Distribution, allowed: float, parameters: PlanAheadParameters) -> bool:
    """Return whether a job is worth something late: it may always have been hopeless."""
    if parameters.over_estimates != "adaptive":
        return parameters.over_estimates == "on"
    in_time = float(belief.cumulative(max(allowed, 0.0)))
    return in_time < _HOPELESS_BELOW


def least_worth(pending: PendingJob, decay: UtilityDecay, parameters: PlanAheadParameters) -> float:
    """Return what any start of a job is worth, however late: nothing if it is to be dropped then.

    Only jobs whose worth can end for good are dropped: those with a deadline, or a value that falls
    to nothing.
    """
    ends = isinstance(pending.job.value, DeadlineValue | DecayingValue)
    may_be_hopeless = ends and decay.full > 0.0
    if parameters.hopeless_jobs == "drop" and may_be_hopeless:
        return 0.0
    if pending.job.options:
        return _LEFTOVER * decay.full
    return _LEFTOVER * parameters.best_effort_value


def expected_worth(
    beliefs: RuntimeBeliefs,
    decays: Sequence[UtilityDecay],
    least: Floats,
    slowdown: float,
    now: float,
    parameters: PlanAheadParameters,
) -> Floats:
    """Expected worth of every job if it starts in a slot, where it runs so much longer.

    ``least`` is what ``least_worth`` says of every job; the worth has the shape (jobs, slots), and
    is 0 where a start is worth nothing.
    """
    worth = decaying_worth(beliefs, decays, slowdown, now, parameters)
    at_least: Floats = np.maximum(worth, least[:, np.newaxis])
    return at_least * rather_earlier(parameters)


def rather_earlier(parameters: PlanAheadParameters) -> Floats:
    """Shares of its worth that a start keeps by slot: of equal starts the earliest is best."""
    later: Floats = 1.0 - _LATER * np.arange(parameters.window_slots, dtype=np.float64)
    return later


def decaying_worth(
    beliefs: RuntimeBeliefs,
    decays: Sequence[UtilityDecay],
    slowdown: float,
    now: float,
    parameters: PlanAheadParameters,
) -> Floats:
    """Expected worth without the least that any start is worth; shape (beliefs, slots)."""
    step, slots = parameters.slot_seconds, parameters.window_slots
    full = np.array([decay.full for decay in decays])
    begin = np.array([decay.begin_seconds - now for decay in decays])
    width = np.array([decay.end_seconds - decay.begin_seconds for decay in decays])
    worth = beliefs.done_by(slowdown, begin, step, slots)
    straight = np.flatnonzero(width > 0.0)
    if straight.size:
        starts = np.arange(slots) * step
        until = begin[:, np.newaxis] - starts  # negative: the decay has begun before the start
        ends = until + width[:, np.newaxis]
        lost = beliefs.limited_means(slowdown, ends) - beliefs.limited_means(slowdown, until)
        worth[straight] = 1.0 - lost[straight] / width[straight, np.newaxis]
    worth = full[:, np.newaxis] * np.maximum(worth, 0.0)
    worth = np.where(worth < _WORTHLESS * full[:, np.newaxis], 0.0, worth)
    stand_ins = [at for at, decay in enumerate(decays) if isinstance(decay, StandInValue)]
    if stand_ins:
        levels = np.tile((np.arange(_QUANTILES) + 0.5) / _QUANTILES, (len(decays), 1))
        runtimes = beliefs.quantiles(levels) * slowdown
        moments: Floats = now + np.arange(slots, dtype=np.float64) * step
        for at in stand_ins:
            worth[at] = _mean_worth(decays[at], runtimes[at], moments)
    return worth


def _mean_worth(decay: UtilityDecay, runtimes: Floats, starts: Floats) -> Floats:
    """Mean of a given value over equally likely runtimes, by start."""
    assert isinstance(decay, StandInValue)
    ends = starts[:, np.newaxis] + runtimes
    different, back = np.unique(ends, return_inverse=True)
    worth = np.array([decay.at(end) for end in different.tolist()])
    mean: Floats = worth[back].reshape(ends.shape).mean(axis=1)
    return mean


def stopping_cost(
    victims: Sequence[RunningJob], now: float, parameters: PlanAheadParameters
) -> Floats:
    """Cost of stopping each running job: the worth of the work that is lost, and something more.

    The source leaves it open. Here: by how much more a job is worth that goes on than one that
    starts again now, and the least that a stop costs. A job past its deadline
    that is still worth something costs all of that, lest such jobs stop each other in turn.
    """
    least = _PREEMPTION_COST * parameters.best_effort_value
    per_second = parameters.best_effort_value / parameters.best_effort_horizon_seconds
    elapsed = np.array([victim.elapsed_seconds(now) for victim in victims])
    late = np.array([_late_worth(victim, now, parameters) for victim in victims])
    cost: Floats = least + per_second * elapsed + late
    return cost


def _late_worth(victim: RunningJob, now: float, parameters: PlanAheadParameters) -> float:
    """Return what a job past its deadline is worth if it ended now; 0 for one that has none."""
    if not isinstance(victim.job.value, DeadlineValue):
        return 0.0
    decay = utility_decay(victim, parameters)
    width = decay.end_seconds - decay.begin_seconds
    return decay.full * max(0.0, (decay.end_seconds - now) / width) if width > 0.0 else 0.0


def may_be_stopped(running: RunningJob, now: float, back_off_seconds: float) -> bool:
    """Return whether a running job has no deadline, or has missed it; not as it starts.

    Nor before it has run on for a while, if it was stopped before.
    """
    value = running.job.value
    if running.start_seconds >= now or running.protected_until(back_off_seconds) > now:
        return False
    return not isinstance(value, DeadlineValue) or value.deadline_seconds < now
