"""Another predictor's belief, moved so that a stated interval holds what it states."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from foresail.kernels.borrowed import block, room
from foresail.kernels.columns import BELIEF_COLUMNS, BELIEF_LEVELS, QUEUE, REQUESTED
from foresail.kernels.compile import bare_step, part
from foresail.kernels.steps import (
    PREDICTOR_STEP,
    PredictorInputs,
    PredictorSteps,
    call_belief_step,
    call_predictor_step,
)
from foresail.model.distribution import Floats
from foresail.model.registry import register
from foresail.predictors._composite import CompositePredictor, Own, member
from foresail.predictors.kernels import members
from foresail.predictors.kernels.members import (
    BELIEF,
    FIRST_MEMBER,
    MEMBER_COLUMNS,
    OBSERVE,
    OWN_JOB_COLUMNS,
    OWN_USER_COLUMNS,
    PREDICT,
    REFRESH,
    cut_and_sort,
    inputs_of,
    interpolated,
    summarise_belief,
)
from foresail.predictors.kernels.request import user_row
from foresail.predictors.stepped import RefreshingPredictor

_EDGES: Final = (
    *(0.0, 1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 60.0, 80.0),
    *(120.0, 240.0, 600.0, 1800.0, 3600.0, 7200.0, 14_400.0, 36_000.0, 86_400.0, 2e5, 5e5),
)
OVERRUN_BINS: Final = len(_EDGES)
"""Bins of seconds past the limit: at most none, at most one, and so on; the last takes the rest."""

_AT_LIMIT: Final = 0.97
"""Share of the limit that counts as having come to it."""

_TRUST: Final = 5.0
"""Number of jobs at their limit after which a user's or a queue's own counts count half."""

_FURTHEST: Final = 0.995


@part
def count_overrun(runtime: float, limit: float, counts: Floats) -> None:
    """Count a job that ended, if it came to its limit."""
    if not (math.isfinite(limit) and runtime >= _AT_LIMIT * limit):
        return
    place = 0
    while place < OVERRUN_BINS - 1 and runtime - limit > _EDGES[place]:
        place += 1
    counts[place] += 1.0


@part
def _narrow(known: Floats, shares: Floats) -> None:
    """Bring shares of a wider class (summing to 1) towards the counts of a narrower one."""
    total = 0.0
    for k in range(OVERRUN_BINS):
        total += known[k]
    for k in range(OVERRUN_BINS):
        shares[k] = (known[k] + _TRUST * shares[k]) / (total + _TRUST)


@part
def _overrun(shares: Floats, level: float) -> float:
    """Quantile of the seconds past the limit."""
    below = 0.0
    for k in range(OVERRUN_BINS):
        if below + shares[k] >= level and shares[k] > 0.0:
            first = _EDGES[max(k - 1, 0)]
            seconds: float = first + (_EDGES[k] - first) * (level - below) / shares[k]
            return seconds
        below += shares[k]
    return _EDGES[OVERRUN_BINS - 1]


@part
def reach_past(limit: float, shares: Floats, belief: Floats) -> float:
    """Spread a belief's probability at the limit over the seconds past it.

    Returns
    -------
    float
        Seconds: as far as any belief should go.
    """
    if not math.isfinite(limit):
        return limit
    begin = 0
    while begin < BELIEF_COLUMNS and belief[begin] < _AT_LIMIT * limit:
        begin += 1
    if begin < BELIEF_COLUMNS:
        below = 0.0
        if begin > 0:
            below = 0.5 * (BELIEF_LEVELS[begin - 1] + BELIEF_LEVELS[begin])
        for i in range(begin, BELIEF_COLUMNS):
            level = (BELIEF_LEVELS[i] - below) / (1.0 - below)
            belief[i] = max(belief[i], limit) + _overrun(shares, max(level, 0.0))
    return limit + _overrun(shares, _FURTHEST)


@part
def overrun_shares(everyone: Floats, queue: Floats, user: Floats, shares: Floats) -> None:
    """Fill shares of the bins for a user's jobs of a queue, from the counts of each class."""
    for k in range(OVERRUN_BINS):
        shares[k] = 0.0
    shares[0] = 1.0
    _narrow(everyone, shares)
    _narrow(queue, shares)
    _narrow(user, shares)


_LEARNED: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.99)
_PLACES: Final = tuple(BELIEF_LEVELS.index(level) for level in _LEARNED)
_LEVELS: Final = len(_LEARNED)
"""The levels that shifts are learned at, and their places in a belief."""

_SMALLEST_LEVEL: Final = 0.0025
_LOGITS: Final = tuple(
    math.log(level / (1.0 - level))
    for level in (min(max(each, _SMALLEST_LEVEL), 1.0 - _SMALLEST_LEVEL) for each in BELIEF_LEVELS)
)

_ENDED: Final = 0
_AHEAD: Final = 1
_SHIFTS: Final = 2
_RECORD: Final = _SHIFTS + _LEVELS
"""A record of shifts: the jobs that have ended, how many were ahead of them, a shift per level."""

_WIDTHS: Final = (0.01, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Limits of groups: the logarithm of the ratio of the upper to the lower quartile."""
_MEDIANS: Final = (60.0, 600.0, 3600.0, 14_400.0, 43_200.0, 86_400.0)
"""Limits of groups: seconds."""
_GROUPS: Final = (len(_WIDTHS) + 1) * (len(_MEDIANS) + 1)
_CROWDS: Final = 8
_CROWD_GROWTH: Final = math.log(2.0) * 1.5
"""Factor (logarithm) by which crowds of one class are larger than those of the one before."""
_QUEUES: Final = 64
"""Classes of queues: by code, the first for jobs without one."""

LONGEST: Final = 0
_OVERRUNS: Final = 1
_QUEUE_OVERRUNS: Final = _OVERRUNS + OVERRUN_BINS
_GROUP_RECORDS: Final = _QUEUE_OVERRUNS + _QUEUES * OVERRUN_BINS
_CROWD_RECORDS: Final = _GROUP_RECORDS + _GROUPS * _RECORD
OWN_SIZE: Final = _CROWD_RECORDS + _CROWDS * _RECORD
"""The composite's own numbers: the longest runtime seen, how far jobs run past their limits (all,
and by queue), and the records of groups and of crowds."""

_FIRST_STEP: Final = 1.0
_SMALLEST_STEP: Final = 0.005
"""Smallest step of levels, and the step when a user's first job ends, on the scale of logits."""

_UNDER_WAY: Final = _RECORD
_USER_OVERRUNS: Final = _UNDER_WAY + 1
_SHORTEST: Final = _USER_OVERRUNS + OVERRUN_BINS
USER_COLUMNS: Final = _SHORTEST + 1
"""A user's own columns: the record, how many jobs were predicted and have not ended, how far
the user's jobs run past their limits, and the shortest runtime seen (once a job has ended)."""

_COUNTED: Final = BELIEF_COLUMNS
_GROUP: Final = BELIEF_COLUMNS + 1
_CROWD: Final = BELIEF_COLUMNS + 2
_JOB_AHEAD: Final = BELIEF_COLUMNS + 3
_STATED: Final = BELIEF_COLUMNS + 4
JOB_COLUMNS: Final = _STATED + _LEVELS
"""A job's own columns: the moved belief, whether it is counted as under way, the records of its
group and its crowd (places among the own numbers), how many were ahead, the stated quantiles."""

STRETCH: Final = 1.5
_SLOPE: Final = 0.1
_SLOPE_OF_POINTS: Final = 1.0
_SHARED: Final = 0.5
"""The step of what many users share, over that of a user."""
_DELAY: Final = 0.1
"""Ended jobs that one which was ahead counts for."""

_MEMBER: Final[Any] = np.int64(0)
"""No literal: Numba compiles a function anew for every literal int that it is called with."""

_OWN: Final = FIRST_MEMBER + MEMBER_COLUMNS
_LOWER: Final = BELIEF_LEVELS.index(0.25)
_MIDDLE: Final = BELIEF_LEVELS.index(0.5)
_UPPER: Final = BELIEF_LEVELS.index(0.75)


@part
def _class_of(value: float, edges: tuple[float, ...]) -> int:
    """Return how many of the edges a value has reached."""
    for i in range(len(edges)):
        if value < edges[i]:
            return i
    return len(edges)


@part
def _queue_overruns(inputs: PredictorInputs) -> int:
    """Return the index of the own number that counts overruns of this queue's limits."""
    code = int(inputs.specs[inputs.slot, QUEUE])
    return _QUEUE_OVERRUNS + (0 if code < 0 else 1 + code % (_QUEUES - 1)) * OVERRUN_BINS


@part
def _asked_at(logarithms: Floats, logit: float) -> float:
    """The logarithm that a belief, given as logarithms of its quantiles, has at another level."""
    last = BELIEF_COLUMNS - 1
    logit = min(max(logit, _LOGITS[0]), _LOGITS[last])
    i = 1
    while _LOGITS[i] < logit:
        i += 1
    share = (logit - _LOGITS[i - 1]) / (_LOGITS[i] - _LOGITS[i - 1])
    asked: float = (1.0 - share) * logarithms[i - 1] + share * logarithms[i]
    return asked


@part
def _classify(belief: Floats, ahead: float, job: Floats) -> float:
    """Write down which records the job belongs to; returns the slope of its belief."""
    width = _class_of(math.log((belief[_UPPER] + 1.0) / (belief[_LOWER] + 1.0)), _WIDTHS)
    group = width * (len(_MEDIANS) + 1) + _class_of(belief[_MIDDLE], _MEDIANS)
    crowd = min(int(math.log(ahead + 1.0) / _CROWD_GROWTH), _CROWDS - 1)
    job[_GROUP] = _GROUP_RECORDS + group * _RECORD
    job[_CROWD] = _CROWD_RECORDS + crowd * _RECORD
    return _SLOPE_OF_POINTS if width == 0 else _SLOPE


@part
def _move(inputs: PredictorInputs, job: Floats, user: Floats) -> None:
    """Move what the member believes by now."""
    model, slot = inputs.model, inputs.slot
    own = model[_OWN : _OWN + OWN_SIZE]
    belief = job[:BELIEF_COLUMNS]
    call_belief_step(model[FIRST_MEMBER + BELIEF], inputs_of(_MEMBER, inputs), belief)
    queue = _queue_overruns(inputs)
    overruns = room(OVERRUN_BINS)
    overrun_shares(
        own[_OVERRUNS : _OVERRUNS + OVERRUN_BINS],
        own[queue : queue + OVERRUN_BINS],
        user[_USER_OVERRUNS : _USER_OVERRUNS + OVERRUN_BINS],
        overruns,
    )
    furthest = reach_past(inputs.specs[slot, REQUESTED], overruns, belief)
    slope = _classify(belief, job[_JOB_AHEAD], job)
    learned = room(_LEVELS)
    for a in range(_LEVELS):
        of_group = own[int(job[_GROUP]) + _SHIFTS + a]
        learned[a] = of_group + own[int(job[_CROWD]) + _SHIFTS + a] + user[_SHIFTS + a]
    shifts = room(BELIEF_COLUMNS)
    interpolated(_PLACES, learned, shifts)
    logarithms = room(BELIEF_COLUMNS)
    # Shifts are of logits of levels; beliefs are interpolated in logarithms of seconds.
    for i in range(BELIEF_COLUMNS):
        logarithms[i] = math.log(belief[i] + 1.0)
    longest = STRETCH * own[LONGEST]
    # Many that were submitted before any ended move shifts by the same surprise again and again.
    shortest = user[_SHORTEST] / STRETCH
    for i in range(BELIEF_COLUMNS):
        asked = _asked_at(logarithms, _LOGITS[i] + shifts[i])
        moved = math.exp(asked + slope * shifts[i]) - 1.0
        moved = max(moved, min(shortest, belief[i]))
        belief[i] = min(max(moved, 0.0), max(belief[i], longest), furthest)
    for a in range(_LEVELS):
        job[_STATED + a] = belief[_PLACES[a]]
    cut_and_sort(belief, furthest)
    summarise_belief(belief, inputs.summaries[slot])


@bare_step(PREDICTOR_STEP)
def predict(inputs: PredictorInputs) -> None:
    """Move what the member predicts."""
    call_predictor_step(inputs.model[FIRST_MEMBER + PREDICT], inputs_of(_MEMBER, inputs))
    job = block(inputs.jobs, 0, int(inputs.model[OWN_JOB_COLUMNS]))[inputs.slot]
    users = block(inputs.users, 0, int(inputs.model[OWN_USER_COLUMNS]))
    user = users[user_row(inputs.specs, inputs.slot)]
    if job[_COUNTED] == 0.0:
        job[_COUNTED] = 1.0
        job[_JOB_AHEAD] = user[_UNDER_WAY]
        user[_UNDER_WAY] += 1.0
    _move(inputs, job, user)


@bare_step(PREDICTOR_STEP)
def refresh(inputs: PredictorInputs) -> None:
    """Move what the member believes by now; one that does not refresh leaves all as it was.

    The shifts will be moved by what was stated when the job was predicted: that is kept.
    """
    address = inputs.model[FIRST_MEMBER + REFRESH]
    if address == 0.0:
        return
    call_predictor_step(address, inputs_of(_MEMBER, inputs))
    job = block(inputs.jobs, 0, int(inputs.model[OWN_JOB_COLUMNS]))[inputs.slot]
    users = block(inputs.users, 0, int(inputs.model[OWN_USER_COLUMNS]))
    user = users[user_row(inputs.specs, inputs.slot)]
    apart = room(JOB_COLUMNS)
    apart[_JOB_AHEAD] = job[_JOB_AHEAD]
    _move(inputs, apart, user)
    for i in range(BELIEF_COLUMNS):
        job[i] = apart[i]


@part
def _learn(inputs: PredictorInputs, step: float, job: Floats, record: Floats) -> None:
    """Move the shifts of a record by what the job's stated quantiles covered."""
    ahead = job[_JOB_AHEAD]
    record[_ENDED] += 1.0
    record[_AHEAD] += ahead
    length = max(
        step / math.sqrt(record[_ENDED] + _DELAY * record[_AHEAD]),
        _SMALLEST_STEP / (1.0 + _DELAY * ahead),
    )
    for a in range(_LEVELS):
        covered = 1.0 if inputs.runtime <= job[_STATED + a] else 0.0
        record[_SHIFTS + a] += length * (BELIEF_LEVELS[_PLACES[a]] - covered)


@bare_step(PREDICTOR_STEP)
def observe(inputs: PredictorInputs) -> None:
    """Update the members, and move the shifts by what was covered."""
    model, runtime = inputs.model, inputs.runtime
    call_predictor_step(model[FIRST_MEMBER + OBSERVE], inputs_of(_MEMBER, inputs))
    job = block(inputs.jobs, 0, int(inputs.model[OWN_JOB_COLUMNS]))[inputs.slot]
    users = block(inputs.users, 0, int(inputs.model[OWN_USER_COLUMNS]))
    user = users[user_row(inputs.specs, inputs.slot)]
    user[_UNDER_WAY] -= job[_COUNTED]
    job[_COUNTED] = 0.0
    if math.isnan(runtime) or runtime < 0.0:
        return
    own = model[_OWN : _OWN + OWN_SIZE]
    own[LONGEST] = max(own[LONGEST], runtime)
    if user[_ENDED] == 0.0 or runtime < user[_SHORTEST]:
        user[_SHORTEST] = runtime
    limit = inputs.specs[inputs.slot, REQUESTED]
    count_overrun(runtime, limit, own[_OVERRUNS : _OVERRUNS + OVERRUN_BINS])
    queue = _queue_overruns(inputs)
    count_overrun(runtime, limit, own[queue : queue + OVERRUN_BINS])
    count_overrun(runtime, limit, user[_USER_OVERRUNS : _USER_OVERRUNS + OVERRUN_BINS])
    group, crowd = int(job[_GROUP]), int(job[_CROWD])
    _learn(inputs, _SHARED * _FIRST_STEP, job, own[group : group + _RECORD])
    _learn(inputs, _SHARED * _FIRST_STEP, job, own[crowd : crowd + _RECORD])
    _learn(inputs, _FIRST_STEP, job, user[:_RECORD])


@dataclass(frozen=True, slots=True)
class CalibratedParameters:
    """Parameters of ``calibrated``."""

    of: str = "combined"
    """Predictor whose belief is moved, by name or short form; a point becomes a distribution."""


@register("predictor", "calibrated", parameters=CalibratedParameters)
class Calibrated(CompositePredictor, RefreshingPredictor):
    """Predicts a distribution: another's, moved until shares hold; an end: O(waiting jobs)."""

    def __init__(self, parameters: CalibratedParameters) -> None:
        compiled = PredictorSteps(predict, members.started, observe, refresh, members.belief)
        own = Own(np.zeros(OWN_SIZE), USER_COLUMNS, JOB_COLUMNS)
        super().__init__(compiled, [member(parameters.of, "of")], own)
