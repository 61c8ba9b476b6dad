"""A predictor made of other predictors: their states as blocks of its own, their steps by address.

The model begins with how many members there are and, per member, the addresses of its steps and
where its blocks lie; then come numbers of the composite's own, then the members' models. The
matrices of users and jobs are blocks one behind the other, each a matrix with the same rows: first
the composite's own columns, then each member's.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.calling import call_belief_step, call_predictor_step
from foresail.kernels.columns import BELIEF_COLUMNS, BELIEF_LEVELS
from foresail.kernels.compile import kernel, step
from foresail.kernels.signatures import BELIEF_STEP, PREDICTOR_STEP

MEMBERS: Final = 0
OWN_USER_COLUMNS: Final = 1
OWN_JOB_COLUMNS: Final = 2
FIRST_MEMBER: Final = 3

PREDICT: Final = 0
STARTED: Final = 1
OBSERVE: Final = 2
BELIEF: Final = 3
REFRESH: Final = 4
MODEL: Final = 5
MODEL_SIZE: Final = 6
USERS: Final = 7
USER_COLUMNS: Final = 8
JOBS: Final = 9
JOB_COLUMNS: Final = 10
MEMBER_COLUMNS: Final = 11
"""What the model says of a member: addresses of its steps (``REFRESH``: 0 for none), the place and
size of its model, the first of its columns and how many, among those of users and those of jobs."""

ANCHORS: Final = (2, 4, 5, 8, 13, 18, 21, 22, 24)
"""Places in ``BELIEF_LEVELS`` of the levels at which composites learn; between them they
interpolate, beyond them they go on as at the last."""
ANCHOR_COUNT: Final = len(ANCHORS)


def first_own_number(members: int) -> int:
    """Where in the model the composite's own numbers begin."""
    return FIRST_MEMBER + members * MEMBER_COLUMNS


@kernel
def block(matrix: NDArray[np.float64], first: int, columns: int) -> NDArray[np.float64]:
    """The columns from ``first`` on, which lie together as a matrix of their own."""
    rows = matrix.shape[0]
    flat = matrix.reshape(matrix.size)
    return flat[first * rows : (first + columns) * rows].reshape((rows, columns))


@kernel
def take_step(
    which: int,
    member: int,
    slot: int,
    now: float,
    runtime: float,
    specs: NDArray[np.float64],
    model: NDArray[np.float64],
    users: NDArray[np.float64],
    jobs: NDArray[np.float64],
    summaries: NDArray[np.float64],
) -> None:
    """Let a member take one of its steps; its summary goes to ``summaries``."""
    at = FIRST_MEMBER + member * MEMBER_COLUMNS
    place = int(model[at + MODEL])
    call_predictor_step(
        model[at + which],
        slot,
        now,
        runtime,
        specs,
        model[place : place + int(model[at + MODEL_SIZE])],
        block(users, int(model[at + USERS]), int(model[at + USER_COLUMNS])),
        block(jobs, int(model[at + JOBS]), int(model[at + JOB_COLUMNS])),
        summaries,
    )


@kernel
def read_belief(
    member: int,
    slot: int,
    specs: NDArray[np.float64],
    model: NDArray[np.float64],
    users: NDArray[np.float64],
    jobs: NDArray[np.float64],
    summary: NDArray[np.float64],
    belief: NDArray[np.float64],
) -> None:
    """Fill ``belief`` with a member's belief; ``summary`` is the row its prediction filled."""
    at = FIRST_MEMBER + member * MEMBER_COLUMNS
    place = int(model[at + MODEL])
    call_belief_step(
        model[at + BELIEF],
        slot,
        specs,
        model[place : place + int(model[at + MODEL_SIZE])],
        block(users, int(model[at + USERS]), int(model[at + USER_COLUMNS])),
        block(jobs, int(model[at + JOBS]), int(model[at + JOB_COLUMNS])),
        summary,
        belief,
    )


@kernel
def interpolated(anchored: NDArray[np.float64], values: NDArray[np.float64]) -> None:
    """Spread numbers given at the anchors over all belief levels."""
    for i in range(ANCHORS[0]):
        values[i] = anchored[0]
    for a in range(ANCHOR_COUNT - 1):
        first, last = ANCHORS[a], ANCHORS[a + 1]
        low, high = BELIEF_LEVELS[first], BELIEF_LEVELS[last]
        for i in range(first, last):
            share = (BELIEF_LEVELS[i] - low) / (high - low)
            values[i] = (1.0 - share) * anchored[a] + share * anchored[a + 1]
    for i in range(ANCHORS[ANCHOR_COUNT - 1], BELIEF_COLUMNS):
        values[i] = anchored[ANCHOR_COUNT - 1]


@kernel
def cut_and_sort(belief: NDArray[np.float64], limit: float) -> None:
    """Bring a row of quantiles between 0 and the limit, and into order."""
    for i in range(BELIEF_COLUMNS):
        value = belief[i]
        belief[i] = 0.0 if math.isnan(value) else min(max(value, 0.0), limit)
    belief.sort()


@step(PREDICTOR_STEP)
def started(
    slot: int,
    now: float,
    runtime: float,
    specs: NDArray[np.float64],
    model: NDArray[np.float64],
    users: NDArray[np.float64],
    jobs: NDArray[np.float64],
    summaries: NDArray[np.float64],
) -> None:
    """A composite's reaction to a start: tell the members."""
    for k in range(int(model[MEMBERS])):
        take_step(STARTED, k, slot, now, runtime, specs, model, users, jobs, summaries)


@step(BELIEF_STEP)
def belief(
    slot: int,
    specs: NDArray[np.float64],
    model: NDArray[np.float64],
    users: NDArray[np.float64],
    jobs: NDArray[np.float64],
    summary: NDArray[np.float64],
    row: NDArray[np.float64],
) -> None:
    """A composite's belief: its own columns of the job begin with it."""
    job = block(jobs, 0, int(model[OWN_JOB_COLUMNS]))[slot]
    row[:] = job[:BELIEF_COLUMNS]
