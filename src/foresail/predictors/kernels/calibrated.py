"""Stated probabilities that hold: another predictor's quantiles, asked for at other levels.

First the probability at the limit is spread over how far such jobs run past it
(``foresail.predictors.kernels.overruns``). Then the quantile stated at a level is the one that the
belief has at

    logit(level) + shift,

times e^(slope x shift), for beyond its last quantile a belief says nothing (a point says nothing of
any other level, and is moved by its shift alone). A shift is the sum of three: that of beliefs of
like width and like median, that of a crowd as large as the one the job was submitted in (jobs of
the user that were predicted and have not ended), and that of the user. Whenever a job ends, each of
the three takes a step at every level by what is stated less what happened:

    shift <- shift + step x (level - [runtime <= quantile that was stated])

This is online gradient descent on the pinball loss; as no shift runs away, what is stated comes to
hold for each width and median, each size of crowd and each user within O(1 / (step x jobs)) (Gibbs
and Candes 2021, "Adaptive conformal inference under distribution shift"; for several classes at
once Angelopoulos, Jordan and Tibshirani 2025, "Gradient equilibrium in online learning"). It is
asked of what was stated, not of what would be now: a crowd predicted with the same knowledge is
right or wrong as one. So that it does not push its shifts further than one job would, steps shrink
with the jobs that have ended and with how many were ahead of them unknown (McMahan and Streeter
2014, "Delay-tolerant algorithms for asynchronous distributed online learning"), down to
``SMALLEST_STEP``, so that a workload that changes is followed. No quantile is moved beyond
``STRETCH`` times the longest runtime seen.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.borrowed import block, room
from foresail.kernels.calling import call_belief_step, call_predictor_step
from foresail.kernels.columns import BELIEF_COLUMNS, BELIEF_LEVELS, QUEUE, REQUESTED
from foresail.kernels.compile import bare_step, part
from foresail.kernels.signatures import PREDICTOR_STEP, PredictorInputs
from foresail.predictors.kernels.belief import summarise_belief
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
)
from foresail.predictors.kernels.overruns import (
    OVERRUN_BINS,
    count_overrun,
    overrun_shares,
    reach_past,
)
from foresail.predictors.kernels.request import user_row

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
"""Where groups part: the logarithm of the ratio of the upper to the lower quartile."""
_MEDIANS: Final = (60.0, 600.0, 3600.0, 14_400.0, 43_200.0, 86_400.0)
"""Where groups part: seconds."""
_GROUPS: Final = (len(_WIDTHS) + 1) * (len(_MEDIANS) + 1)
_CROWDS: Final = 8
_CROWD_GROWTH: Final = math.log(2.0) * 1.5
"""By how much (logarithm) crowds of one class are larger than those of the one before."""
_QUEUES: Final = 64
"""Classes of queues: by code, the first for jobs without one."""

FIRST_STEP: Final = 0
SMALLEST_STEP: Final = 1
LONGEST: Final = 2
_OVERRUNS: Final = 3
_QUEUE_OVERRUNS: Final = _OVERRUNS + OVERRUN_BINS
_GROUP_RECORDS: Final = _QUEUE_OVERRUNS + _QUEUES * OVERRUN_BINS
_CROWD_RECORDS: Final = _GROUP_RECORDS + _GROUPS * _RECORD
OWN_SIZE: Final = _CROWD_RECORDS + _CROWDS * _RECORD
"""The composite's own numbers: the first step and the smallest, the longest runtime seen, how far
jobs run past their limits (all, and by queue), and the records of groups and of crowds."""

_UNDER_WAY: Final = _RECORD
_USER_OVERRUNS: Final = _UNDER_WAY + 1
USER_COLUMNS: Final = _USER_OVERRUNS + OVERRUN_BINS
"""A user's own columns: the record, how many jobs were predicted and have not ended, and how far
the user's jobs run past their limits."""

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
"""For how many ended jobs one counts that was ahead."""

_MEMBER: Final[Any] = np.int64(0)
"""No literal: Numba compiles a function anew for every literal int that it is called with."""

_OWN: Final = FIRST_MEMBER + MEMBER_COLUMNS
_LOWER: Final = BELIEF_LEVELS.index(0.25)
_MIDDLE: Final = BELIEF_LEVELS.index(0.5)
_UPPER: Final = BELIEF_LEVELS.index(0.75)


@part
def _class_of(value: float, edges: tuple[float, ...]) -> int:
    """How many of the edges a value has reached."""
    for i in range(len(edges)):
        if value < edges[i]:
            return i
    return len(edges)


@part
def _queue_overruns(inputs: PredictorInputs) -> int:
    """Where among the own numbers it is counted how far jobs of this queue run past limits."""
    code = int(inputs.specs[inputs.slot, QUEUE])
    return _QUEUE_OVERRUNS + (0 if code < 0 else 1 + code % (_QUEUES - 1)) * OVERRUN_BINS


@part
def _asked_at(logarithms: NDArray[np.float64], logit: float) -> float:
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
def _classify(belief: NDArray[np.float64], ahead: float, job: NDArray[np.float64]) -> float:
    """Write down which records the job belongs to; returns the slope of its belief."""
    width = _class_of(math.log((belief[_UPPER] + 1.0) / (belief[_LOWER] + 1.0)), _WIDTHS)
    group = width * (len(_MEDIANS) + 1) + _class_of(belief[_MIDDLE], _MEDIANS)
    crowd = min(int(math.log(ahead + 1.0) / _CROWD_GROWTH), _CROWDS - 1)
    job[_GROUP] = _GROUP_RECORDS + group * _RECORD
    job[_CROWD] = _CROWD_RECORDS + crowd * _RECORD
    return _SLOPE_OF_POINTS if width == 0 else _SLOPE


@part
def _move(inputs: PredictorInputs, job: NDArray[np.float64], user: NDArray[np.float64]) -> None:
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
    for i in range(BELIEF_COLUMNS):
        logarithms[i] = math.log(belief[i] + 1.0)
    longest = STRETCH * own[LONGEST]
    for i in range(BELIEF_COLUMNS):
        asked = _asked_at(logarithms, _LOGITS[i] + shifts[i])
        moved = math.exp(asked + slope * shifts[i]) - 1.0
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
def _learn(
    inputs: PredictorInputs, step: float, job: NDArray[np.float64], record: NDArray[np.float64]
) -> None:
    """Move the shifts of a record by what the job's stated quantiles covered."""
    ahead = job[_JOB_AHEAD]
    record[_ENDED] += 1.0
    record[_AHEAD] += ahead
    length = max(
        step / math.sqrt(record[_ENDED] + _DELAY * record[_AHEAD]),
        inputs.model[_OWN + SMALLEST_STEP] / (1.0 + _DELAY * ahead),
    )
    for a in range(_LEVELS):
        covered = 1.0 if inputs.runtime <= job[_STATED + a] else 0.0
        record[_SHIFTS + a] += length * (BELIEF_LEVELS[_PLACES[a]] - covered)


@bare_step(PREDICTOR_STEP)
def observe(inputs: PredictorInputs) -> None:
    """Tell the member, and move the shifts by what was covered."""
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
    limit = inputs.specs[inputs.slot, REQUESTED]
    count_overrun(runtime, limit, own[_OVERRUNS : _OVERRUNS + OVERRUN_BINS])
    queue = _queue_overruns(inputs)
    count_overrun(runtime, limit, own[queue : queue + OVERRUN_BINS])
    count_overrun(runtime, limit, user[_USER_OVERRUNS : _USER_OVERRUNS + OVERRUN_BINS])
    first = own[FIRST_STEP]
    group, crowd = int(job[_GROUP]), int(job[_CROWD])
    _learn(inputs, _SHARED * first, job, own[group : group + _RECORD])
    _learn(inputs, _SHARED * first, job, own[crowd : crowd + _RECORD])
    _learn(inputs, first, job, user[:_RECORD])
