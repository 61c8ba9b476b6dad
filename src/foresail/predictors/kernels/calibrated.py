"""Stated probabilities that hold: another predictor's quantiles, moved until they cover them.

At each level the quantile q of the member becomes (q + 1 s) e^shift - 1 s. Whenever a job ends, the
shift of its level takes a step by what is stated less what happened:

    shift <- shift + step x (level - [ln((runtime + 1 s) / (q + 1 s)) <= shift])

which is online quantile tracking (Gibbs and Candes 2021, "Adaptive conformal inference under
distribution shift"): whatever the jobs are, the share that the shift covers comes to within
O(1 / (step x jobs)) of the level. It is asked of the shift as it is when the job ends: a crowd of
jobs predicted with the same shift does not push it further than their runtimes reach. Steps begin
large and shrink with the square root of the number of jobs down to ``SMALLEST_STEP``, so that a
workload that changes is followed. Beliefs of like relative width share their shifts: a point needs
others than a wide guess. No quantile is moved beyond ``STRETCH`` times the longest runtime seen.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.borrowed import block, room
from foresail.kernels.calling import call_belief_step, call_predictor_step
from foresail.kernels.columns import BELIEF_COLUMNS, BELIEF_LEVELS, REQUESTED
from foresail.kernels.compile import bare_step, part
from foresail.kernels.signatures import PREDICTOR_STEP, PredictorInputs
from foresail.predictors.kernels.belief import summarise_belief
from foresail.predictors.kernels.members import (
    ANCHOR_COUNT,
    ANCHORS,
    BELIEF,
    FIRST_MEMBER,
    MEMBER_COLUMNS,
    OBSERVE,
    OWN_JOB_COLUMNS,
    PREDICT,
    REFRESH,
    cut_and_sort,
    inputs_of,
    interpolated,
)

FIRST_STEP: Final = 0
SMALLEST_STEP: Final = 1
LONGEST: Final = 2
GROUPS: Final = 3
"""The composite's own numbers: the first step and the smallest, the longest runtime seen, then per
group of beliefs of like width how many of its jobs have ended and the shift at each anchor."""

_WIDTHS: Final = (0.01, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Where groups part: the logarithm of the ratio of the upper to the lower quartile."""
_GROUP_COLUMNS: Final = 1 + ANCHOR_COUNT
OWN_SIZE: Final = GROUPS + (len(_WIDTHS) + 1) * _GROUP_COLUMNS

STRETCH: Final = 1.5

_GROUP: Final = BELIEF_COLUMNS
_UNMOVED: Final = BELIEF_COLUMNS + 1
JOB_COLUMNS: Final = _UNMOVED + ANCHOR_COUNT
"""A job's own columns: the moved belief, the group, the member's quantiles at the anchors."""

_MEMBER: Final[Any] = np.int64(0)
"""No literal: Numba compiles a function anew for every literal int that it is called with."""

_OWN: Final = FIRST_MEMBER + MEMBER_COLUMNS
_LOWER: Final = BELIEF_LEVELS.index(0.25)
_UPPER: Final = BELIEF_LEVELS.index(0.75)


@part
def _group_of(belief: NDArray[np.float64]) -> int:
    """The group of beliefs as wide as this one."""
    width = math.log((belief[_UPPER] + 1.0) / (belief[_LOWER] + 1.0))
    for i in range(len(_WIDTHS)):
        if width < _WIDTHS[i]:
            return i
    return len(_WIDTHS)


@part
def _move(inputs: PredictorInputs) -> None:
    """Move what the member believes by now."""
    model, slot = inputs.model, inputs.slot
    job = block(inputs.jobs, 0, int(model[OWN_JOB_COLUMNS]))[slot]
    belief = job[:BELIEF_COLUMNS]
    call_belief_step(model[FIRST_MEMBER + BELIEF], inputs_of(_MEMBER, inputs), belief)
    group = _group_of(belief)
    job[_GROUP] = group
    for a in range(ANCHOR_COUNT):
        job[_UNMOVED + a] = belief[ANCHORS[a]]
    at = _OWN + GROUPS + group * _GROUP_COLUMNS + 1
    shifts = room(BELIEF_COLUMNS)
    interpolated(model[at : at + ANCHOR_COUNT], shifts)
    longest = STRETCH * model[_OWN + LONGEST]
    for i in range(BELIEF_COLUMNS):
        moved = (belief[i] + 1.0) * math.exp(shifts[i]) - 1.0
        belief[i] = min(moved, max(belief[i], longest))
    cut_and_sort(belief, inputs.specs[slot, REQUESTED])
    summarise_belief(belief, inputs.summaries[slot])


@bare_step(PREDICTOR_STEP)
def predict(inputs: PredictorInputs) -> None:
    """Move what the member predicts."""
    call_predictor_step(inputs.model[FIRST_MEMBER + PREDICT], inputs_of(_MEMBER, inputs))
    _move(inputs)


@bare_step(PREDICTOR_STEP)
def refresh(inputs: PredictorInputs) -> None:
    """Move what the member believes by now; one that does not refresh leaves all as it was."""
    address = inputs.model[FIRST_MEMBER + REFRESH]
    if address != 0.0:
        call_predictor_step(address, inputs_of(_MEMBER, inputs))
        _move(inputs)


@bare_step(PREDICTOR_STEP)
def observe(inputs: PredictorInputs) -> None:
    """Tell the member, and move the shifts of the job's group by what was covered."""
    model, runtime = inputs.model, inputs.runtime
    call_predictor_step(model[FIRST_MEMBER + OBSERVE], inputs_of(_MEMBER, inputs))
    if math.isnan(runtime) or runtime < 0.0:
        return
    model[_OWN + LONGEST] = max(model[_OWN + LONGEST], runtime)
    job = block(inputs.jobs, 0, int(model[OWN_JOB_COLUMNS]))[inputs.slot]
    at = _OWN + GROUPS + int(job[_GROUP]) * _GROUP_COLUMNS
    model[at] += 1.0
    length = max(model[_OWN + FIRST_STEP] / math.sqrt(model[at]), model[_OWN + SMALLEST_STEP])
    for a in range(ANCHOR_COUNT):
        off = math.log((runtime + 1.0) / (job[_UNMOVED + a] + 1.0))
        covered = 1.0 if off <= model[at + 1 + a] else 0.0
        model[at + 1 + a] += length * (BELIEF_LEVELS[ANCHORS[a]] - covered)
