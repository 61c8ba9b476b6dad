"""Several predictors as one: quantiles averaged with weights learned by level and by class.

A job's quantile at a level is the weighted mean of the members' quantiles on the scale of the
square root of seconds, where a job of a day does not outweigh all others. The weights come from
exponentially weighted averaging with second-order learning rates (Wintenberger 2017, "Optimal
learning with Bernstein online aggregation", here per level as in Berrisch and Ziel 2021, "CRPS
learning"): with the regret r of following the combination instead of a member, linearised at the
pinball loss,

    w ~ prior x exp(rate x sum r),   rate = EAGERNESS x min(1 / (2 max |r|), sqrt(ln K / sum r^2))

No member's quantile counts for more than ``STRETCH`` times the longest runtime seen: one absurd
number would otherwise set the largest regret, and with it the rate, for good.

Each user has weights of their own, begun from those of all jobs; a user's own count the more, the
more of the user's jobs have ended: n / (n + ``PATIENCE``).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.columns import (
    BELIEF_COLUMNS,
    BELIEF_LEVELS,
    REQUESTED,
)
from foresail.kernels.compile import kernel, step
from foresail.kernels.members import (
    ANCHOR_COUNT,
    ANCHORS,
    FIRST_MEMBER,
    MEMBER_COLUMNS,
    MEMBERS,
    OBSERVE,
    OWN_JOB_COLUMNS,
    OWN_USER_COLUMNS,
    PREDICT,
    REFRESH,
    block,
    cut_and_sort,
    interpolated,
    read_belief,
    take_step,
)
from foresail.kernels.request import user_row
from foresail.kernels.signatures import PREDICTOR_STEP
from foresail.kernels.summary import summarise_piecewise

EAGERNESS: Final = 0
PATIENCE: Final = 1
LONGEST: Final = 2
PRIORS: Final = 3
"""The composite's own numbers: how fast weights follow regrets, after how many ended jobs a user's
own weights count half, the longest runtime seen, and a prior weight per member; then the record of
all jobs."""

STRETCH: Final = 1.5

_LEVELS = np.array(BELIEF_LEVELS)
_SMALLEST_WEIGHT: Final = 1e-3


def record_size(members: int) -> int:
    """Length of a record of regrets.

    Jobs ended; then per anchor the largest regret, and per member the sum of regrets and of their
    squares.
    """
    return 1 + ANCHOR_COUNT * (1 + 2 * members)


def own_size(members: int) -> int:
    """How many numbers of its own the model has."""
    return PRIORS + members + record_size(members)


def job_columns(members: int) -> int:
    """How many columns of its own a job has.

    The combined belief, then at the anchors the combination's and every member's quantile (roots of
    seconds) that the regrets will be measured by.
    """
    return BELIEF_COLUMNS + ANCHOR_COUNT * (1 + members)


@kernel
def _write_weights(
    anchor: int,
    record: NDArray[np.float64],
    prior: NDArray[np.float64],
    eagerness: float,
    weights: NDArray[np.float64],
) -> None:
    """Fill ``weights`` (summing to 1) at an anchor, from a record of regrets and prior weights."""
    members = weights.size
    at = 1 + anchor * (1 + 2 * members)
    largest = record[at]
    top = -math.inf
    for k in range(members):
        squares = record[at + 1 + 2 * k + 1]
        rate = 0.0
        if squares > 0.0:
            rate = eagerness * min(0.5 / largest, math.sqrt(math.log(members) / squares))
        weights[k] = math.log(prior[k]) + rate * record[at + 1 + 2 * k]
        top = max(top, weights[k])
    total = 0.0
    for k in range(members):
        weights[k] = math.exp(weights[k] - top)
        total += weights[k]
    for k in range(members):
        weights[k] /= total


@kernel
def _combine(
    slot: int,
    specs: NDArray[np.float64],
    own: NDArray[np.float64],
    user: NDArray[np.float64],
    beliefs: NDArray[np.float64],
    job: NDArray[np.float64],
) -> None:
    """Fill the job's own columns from the members' beliefs (a row each)."""
    members = beliefs.shape[0]
    record = own[PRIORS + members :]
    patience = own[PATIENCE]
    trust = user[0] / (user[0] + patience) if user[0] > 0.0 else 0.0
    general = np.empty(members)
    personal = np.empty(members)
    anchored = np.empty((members, ANCHOR_COUNT))
    for a in range(ANCHOR_COUNT):
        _write_weights(a, record, own[PRIORS : PRIORS + members], own[EAGERNESS], general)
        for k in range(members):
            general[k] = max(general[k], _SMALLEST_WEIGHT / members)
        _write_weights(a, user, general, own[EAGERNESS], personal)
        for k in range(members):
            anchored[k, a] = (1.0 - trust) * general[k] + trust * personal[k]
    belief = job[:BELIEF_COLUMNS]
    belief[:] = 0.0
    weights = np.empty(BELIEF_COLUMNS)
    for k in range(members):
        interpolated(anchored[k], weights)
        for i in range(BELIEF_COLUMNS):
            belief[i] += weights[i] * math.sqrt(max(beliefs[k, i], 0.0))
    for i in range(BELIEF_COLUMNS):
        belief[i] *= belief[i]
    cut_and_sort(belief, specs[slot, REQUESTED])
    for a in range(ANCHOR_COUNT):
        at = BELIEF_COLUMNS + a * (1 + members)
        job[at] = math.sqrt(belief[ANCHORS[a]])
        for k in range(members):
            job[at + 1 + k] = math.sqrt(max(beliefs[k, ANCHORS[a]], 0.0))


@kernel
def _bound(belief: NDArray[np.float64], longest: float) -> None:
    """Bring quantiles down to ``longest``, if anything has been seen yet."""
    if longest > 0.0:
        for i in range(BELIEF_COLUMNS):
            belief[i] = min(belief[i], longest)


@kernel
def _recall(
    member: int, members: int, job: NDArray[np.float64], belief: NDArray[np.float64]
) -> None:
    """A member's belief as far as the job's row keeps it: at the anchors."""
    roots = np.empty(ANCHOR_COUNT)
    for a in range(ANCHOR_COUNT):
        roots[a] = job[BELIEF_COLUMNS + a * (1 + members) + 1 + member]
    interpolated(roots, belief)
    for i in range(BELIEF_COLUMNS):
        belief[i] *= belief[i]


@kernel
def _believe(
    which: int,
    slot: int,
    now: float,
    specs: NDArray[np.float64],
    model: NDArray[np.float64],
    users: NDArray[np.float64],
    jobs: NDArray[np.float64],
    summaries: NDArray[np.float64],
) -> None:
    """Let the members predict (or refresh, those that do) and combine what they believe."""
    members = int(model[MEMBERS])
    beliefs = np.empty((members, BELIEF_COLUMNS))
    first = FIRST_MEMBER + members * MEMBER_COLUMNS
    job = block(jobs, 0, int(model[OWN_JOB_COLUMNS]))[slot]
    for k in range(members):
        if which == PREDICT or model[FIRST_MEMBER + k * MEMBER_COLUMNS + REFRESH] != 0.0:
            take_step(which, k, slot, now, math.nan, specs, model, users, jobs, summaries)
            read_belief(k, slot, specs, model, users, jobs, summaries[slot], beliefs[k])
            _bound(beliefs[k], STRETCH * model[first + LONGEST])
        else:
            _recall(k, members, job, beliefs[k])
    user = block(users, 0, int(model[OWN_USER_COLUMNS]))[user_row(specs, slot)]
    _combine(slot, specs, model[first:], user, beliefs, job)
    summarise_piecewise(_LEVELS, job[:BELIEF_COLUMNS], summaries[slot])


@kernel
def _regret(
    runtime: float, members: int, job: NDArray[np.float64], record: NDArray[np.float64]
) -> None:
    """Add to a record how much better than the combination each member was at each anchor."""
    truth = math.sqrt(runtime)
    record[0] += 1.0
    for a in range(ANCHOR_COUNT):
        level = BELIEF_LEVELS[ANCHORS[a]]
        at = BELIEF_COLUMNS + a * (1 + members)
        slope = 1.0 - level if truth < job[at] else -level
        into = 1 + a * (1 + 2 * members)
        for k in range(members):
            regret = slope * (job[at] - job[at + 1 + k])
            record[into] = max(record[into], abs(regret))
            record[into + 1 + 2 * k] += regret
            record[into + 1 + 2 * k + 1] += regret * regret


@step(PREDICTOR_STEP)
def predict(
    slot: int,
    now: float,
    runtime: float,
    specs: NDArray[np.float64],
    model: NDArray[np.float64],
    users: NDArray[np.float64],
    jobs: NDArray[np.float64],
    summaries: NDArray[np.float64],
) -> None:
    """Combine what the members predict."""
    _believe(PREDICT, slot, now, specs, model, users, jobs, summaries)


@step(PREDICTOR_STEP)
def refresh(
    slot: int,
    now: float,
    runtime: float,
    specs: NDArray[np.float64],
    model: NDArray[np.float64],
    users: NDArray[np.float64],
    jobs: NDArray[np.float64],
    summaries: NDArray[np.float64],
) -> None:
    """Combine anew, with the members that refresh; the others stay with what they predicted."""
    _believe(REFRESH, slot, now, specs, model, users, jobs, summaries)


@step(PREDICTOR_STEP)
def observe(
    slot: int,
    now: float,
    runtime: float,
    specs: NDArray[np.float64],
    model: NDArray[np.float64],
    users: NDArray[np.float64],
    jobs: NDArray[np.float64],
    summaries: NDArray[np.float64],
) -> None:
    """Tell the members, and learn how good they were."""
    members = int(model[MEMBERS])
    for k in range(members):
        take_step(OBSERVE, k, slot, now, runtime, specs, model, users, jobs, summaries)
    if math.isnan(runtime) or runtime < 0.0:
        return
    job = block(jobs, 0, int(model[OWN_JOB_COLUMNS]))[slot]
    user = block(users, 0, int(model[OWN_USER_COLUMNS]))[user_row(specs, slot)]
    own = FIRST_MEMBER + members * MEMBER_COLUMNS
    model[own + LONGEST] = max(model[own + LONGEST], runtime)
    general = own + PRIORS + members
    _regret(runtime, members, job, model[general : general + user.size])
    _regret(runtime, members, job, user)
