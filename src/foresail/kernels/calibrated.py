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
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.columns import BELIEF_COLUMNS, BELIEF_LEVELS, REQUESTED
from foresail.kernels.compile import kernel, step
from foresail.kernels.members import (
    ANCHOR_COUNT,
    ANCHORS,
    FIRST_MEMBER,
    MEMBER_COLUMNS,
    OBSERVE,
    OWN_JOB_COLUMNS,
    PREDICT,
    REFRESH,
    block,
    cut_and_sort,
    interpolated,
    read_belief,
    take_step,
)
from foresail.kernels.signatures import PREDICTOR_STEP
from foresail.kernels.summary import summarise_piecewise

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

_OWN: Final = FIRST_MEMBER + MEMBER_COLUMNS
_LEVELS = np.array(BELIEF_LEVELS)
_LOWER: Final = BELIEF_LEVELS.index(0.25)
_UPPER: Final = BELIEF_LEVELS.index(0.75)


@kernel
def _group_of(belief: NDArray[np.float64]) -> int:
    """The group of beliefs as wide as this one."""
    width = math.log((belief[_UPPER] + 1.0) / (belief[_LOWER] + 1.0))
    for i in range(len(_WIDTHS)):
        if width < _WIDTHS[i]:
            return i
    return len(_WIDTHS)


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
    """Let the member predict (or refresh), and move what it believes."""
    take_step(which, 0, slot, now, math.nan, specs, model, users, jobs, summaries)
    job = block(jobs, 0, int(model[OWN_JOB_COLUMNS]))[slot]
    belief = job[:BELIEF_COLUMNS]
    read_belief(0, slot, specs, model, users, jobs, summaries[slot], belief)
    group = _group_of(belief)
    job[_GROUP] = group
    for a in range(ANCHOR_COUNT):
        job[_UNMOVED + a] = belief[ANCHORS[a]]
    at = _OWN + GROUPS + group * _GROUP_COLUMNS + 1
    shifts = np.empty(BELIEF_COLUMNS)
    interpolated(model[at : at + ANCHOR_COUNT], shifts)
    longest = STRETCH * model[_OWN + LONGEST]
    for i in range(BELIEF_COLUMNS):
        moved = (belief[i] + 1.0) * math.exp(shifts[i]) - 1.0
        belief[i] = min(moved, max(belief[i], longest))
    cut_and_sort(belief, specs[slot, REQUESTED])
    summarise_piecewise(_LEVELS, belief, summaries[slot])


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
    """Move what the member predicts."""
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
    """Move what the member believes by now; one that does not refresh leaves all as it was."""
    if model[FIRST_MEMBER + REFRESH] != 0.0:
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
    """Tell the member, and move the shifts of the job's group by what was covered."""
    take_step(OBSERVE, 0, slot, now, runtime, specs, model, users, jobs, summaries)
    if math.isnan(runtime) or runtime < 0.0:
        return
    model[_OWN + LONGEST] = max(model[_OWN + LONGEST], runtime)
    job = block(jobs, 0, int(model[OWN_JOB_COLUMNS]))[slot]
    at = _OWN + GROUPS + int(job[_GROUP]) * _GROUP_COLUMNS
    model[at] += 1.0
    length = max(model[_OWN + FIRST_STEP] / math.sqrt(model[at]), model[_OWN + SMALLEST_STEP])
    for a in range(ANCHOR_COUNT):
        off = math.log((runtime + 1.0) / (job[_UNMOVED + a] + 1.0))
        covered = 1.0 if off <= model[at + 1 + a] else 0.0
        model[at + 1 + a] += length * (BELIEF_LEVELS[ANCHORS[a]] - covered)
