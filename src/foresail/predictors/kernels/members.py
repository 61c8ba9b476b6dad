"""A predictor made of other predictors: their states as blocks of its own, their steps by address.

The model begins with how many members there are and, per member, the addresses of its steps and
where its blocks lie; then come numbers of the composite's own, then the members' models. The
matrices of users and jobs are blocks one behind the other, each a matrix with the same rows: first
the composite's own columns, then each member's.
"""

from __future__ import annotations

import math
from typing import Final

from foresail.distributions.kernels.summary import piecewise_quantile, summarise_piecewise
from foresail.kernels.borrowed import block, room
from foresail.kernels.columns import BELIEF_COLUMNS, BELIEF_LEVELS, PREDICTED
from foresail.kernels.compile import Floats, bare_step, part
from foresail.kernels.steps import BELIEF_STEP, PREDICTOR_STEP, PredictorInputs, call_predictor_step
from foresail.kernels.waiting_jobs import sort_ascending


@part
def fill_point_belief(inputs: PredictorInputs, belief: Floats) -> None:
    """Fill a belief row with the predicted mean."""
    predicted = inputs.summaries[inputs.slot, PREDICTED]
    for i in range(BELIEF_COLUMNS):
        belief[i] = predicted


@bare_step(BELIEF_STEP)
def point_belief(inputs: PredictorInputs, belief: Floats) -> None:
    """All probability on the predicted mean."""
    fill_point_belief(inputs, belief)


@part
def fill_piecewise_belief(levels: Floats, values: Floats, belief: Floats) -> None:
    """Fill a belief row for the distribution with the quantile function (levels, values)."""
    for i in range(BELIEF_COLUMNS):
        belief[i] = piecewise_quantile(levels, values, BELIEF_LEVELS[i])


@part
def summarise_belief(belief: Floats, summary: Floats) -> None:
    """Fill a summary row for the distribution of a belief row."""
    levels = room(BELIEF_COLUMNS)
    for i in range(BELIEF_COLUMNS):
        levels[i] = BELIEF_LEVELS[i]
    summarise_piecewise(levels, belief, summary)


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
"""Entries of the model about a member: addresses of its steps (``REFRESH``: 0 for none), place and
size of its model, the first of its columns and how many, among those of users and of jobs."""

ANCHORS: Final = (2, 4, 5, 8, 13, 18, 21, 22, 24)
"""Places in ``BELIEF_LEVELS`` of the levels at which composites learn; between them they
interpolate, beyond them they go on as at the last."""
ANCHOR_COUNT: Final = len(ANCHORS)


def first_own_number(members: int) -> int:
    """Return where in the model the composite's own numbers begin."""
    return FIRST_MEMBER + members * MEMBER_COLUMNS


@part
def member_place(member: int) -> int:
    """Return where in the model a member's steps and blocks are recorded."""
    return FIRST_MEMBER + member * MEMBER_COLUMNS


@part
def inputs_of(member: int, inputs: PredictorInputs) -> PredictorInputs:
    """Return a member's inputs, with its blocks of the composite's arrays."""
    model = inputs.model
    at = member_place(member)
    place = int(model[at + MODEL])
    return PredictorInputs(
        inputs.slot,
        inputs.now,
        inputs.runtime,
        inputs.specs,
        model[place : place + int(model[at + MODEL_SIZE])],
        block(inputs.users, int(model[at + USERS]), int(model[at + USER_COLUMNS])),
        block(inputs.jobs, int(model[at + JOBS]), int(model[at + JOB_COLUMNS])),
        inputs.summaries,
    )


@part
def interpolated(anchors: tuple[int, ...], anchored: Floats, values: Floats) -> None:
    """Spread numbers given at some of the belief levels (their places) over all of them."""
    for i in range(anchors[0]):
        values[i] = anchored[0]
    for a in range(len(anchors) - 1):
        first, last = anchors[a], anchors[a + 1]
        low, high = BELIEF_LEVELS[first], BELIEF_LEVELS[last]
        for i in range(first, last):
            share = (BELIEF_LEVELS[i] - low) / (high - low)
            values[i] = (1.0 - share) * anchored[a] + share * anchored[a + 1]
    for i in range(anchors[-1], BELIEF_COLUMNS):
        values[i] = anchored[len(anchors) - 1]


@part
def cut_and_sort(belief: Floats, limit: float) -> None:
    """Bring a row of quantiles between 0 and the limit, and into order."""
    for i in range(BELIEF_COLUMNS):
        value = belief[i]
        belief[i] = 0.0 if math.isnan(value) else min(max(value, 0.0), limit)
    sort_ascending(belief)


@bare_step(PREDICTOR_STEP)
def started(inputs: PredictorInputs) -> None:
    """A composite's reaction to a start: report it to the members."""
    for k in range(int(inputs.model[MEMBERS])):
        call_predictor_step(inputs.model[member_place(k) + STARTED], inputs_of(k, inputs))


@bare_step(BELIEF_STEP)
def belief(inputs: PredictorInputs, row: Floats) -> None:
    """A composite's belief: its own columns of the job begin with it."""
    job = block(inputs.jobs, 0, int(inputs.model[OWN_JOB_COLUMNS]))[inputs.slot]
    for i in range(BELIEF_COLUMNS):
        row[i] = job[i]
