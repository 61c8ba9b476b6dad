"""The compiled loop of an evaluation: submissions, starts and ends in order, and the scores."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from foresail.kernels.clock import nanoseconds
from foresail.kernels.columns import BELIEF_COLUMNS, BELIEF_LEVELS, PREDICTED
from foresail.kernels.compile import bare_step, borrowed
from foresail.kernels.scoring import (
    continuous_ranked_probability_score,
    level_at_or_below,
    level_below,
    tame_belief,
)
from foresail.kernels.signatures import BELIEF_STEP, PREDICTOR_STEP

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SUBMISSION: Final = 0
START: Final = 1
END: Final = 2

LEVELS: Final = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
"""The quantiles that are kept of every belief."""

_KEPT: Final = tuple(BELIEF_LEVELS.index(level) for level in LEVELS)

QUANTILES: Final = 1
BELOW: Final = QUANTILES + len(LEVELS)
AT_OR_BELOW: Final = BELOW + 1
CRPS: Final = AT_OR_BELOW + 1
SCORE_COLUMNS: Final = CRPS + 1
"""A score row per job: the predicted mean, the quantiles at ``LEVELS``, the probability of less
than the truth, that of at most the truth, and the CRPS; all NaN where nothing was predicted."""


class Course(NamedTuple):
    """What happens, in order: the kind of each event, its job's slot, and when (seconds)."""

    kind: Integers
    slot: Integers
    time: Floats


class Book(NamedTuple):
    """The jobs, the predictor's state, and what is written down of each job.

    ``truth`` is the amount predicted, ``expert`` the one that was followed (-1: none), ``cost``
    the nanoseconds of processor time that the predictor's steps took for the job.
    """

    specs: Floats
    summaries: Floats
    model: Floats
    users: Floats
    jobs: Floats
    truth: Floats
    scores: Floats
    expert: Integers
    cost: Integers


def score(predicted: float, belief: Floats, truth: float, row: Floats) -> None:
    """Fill a score row; ``belief`` is made finite and ascending on the way."""
    if not (math.isfinite(predicted) and tame_belief(belief)):
        row[:] = math.nan
        return
    row[0] = predicted
    for i in range(len(LEVELS)):
        row[QUANTILES + i] = belief[_KEPT[i]]
    row[BELOW] = level_below(belief, truth)
    row[AT_OR_BELOW] = level_at_or_below(belief, truth)
    row[CRPS] = continuous_ranked_probability_score(belief, truth)


_F = types.float64[::1]
_I = types.int64[::1]
_M = types.float64[:, ::1]

score_step = bare_step(types.void(types.float64, _F, types.float64, _F))(score)

_PREDICTOR = types.FunctionType(PREDICTOR_STEP)
_COURSE = types.NamedTuple((_I, _I, _F), Course)  # type: ignore[no-untyped-call]
_BOOK = types.NamedTuple((_M, _M, _F, _M, _M, _F, _M, _I, _I), Book)  # type: ignore[no-untyped-call]


@bare_step(
    types.void(
        _COURSE,
        _BOOK,
        _PREDICTOR,
        _PREDICTOR,
        _PREDICTOR,
        types.FunctionType(BELIEF_STEP),
        types.int64,
        _F,
    )
)
def evaluation_loop(
    course: Course,
    book: Book,
    predict: Any,
    started: Any,
    observe: Any,
    believe: Any,
    expert_column: int,
    belief: Floats,
) -> None:
    """Run all events of the course.

    ``expert_column`` is -1 for a predictor without experts; ``belief`` is room for one row.
    """
    course = borrowed(course)  # type: ignore[call-arg]  # an intrinsic's context is Numba's
    book = borrowed(book)
    for event in range(course.kind.size):
        slot, now, kind = course.slot[event], course.time[event], course.kind[event]
        begin = nanoseconds()
        if kind == SUBMISSION:
            predict(
                slot, now, math.nan, book.specs, book.model, book.users, book.jobs, book.summaries
            )
            believe(
                slot,
                book.specs,
                book.model,
                book.users,
                book.jobs,
                book.summaries[slot],
                belief,
            )
            book.cost[slot] += nanoseconds() - begin
            predicted = book.summaries[slot, PREDICTED]
            score_step(predicted, belief, book.truth[slot], book.scores[slot])
            if expert_column >= 0:
                book.expert[slot] = int(book.jobs[slot, expert_column])
        elif kind == START:
            started(
                slot, now, math.nan, book.specs, book.model, book.users, book.jobs, book.summaries
            )
            book.cost[slot] += nanoseconds() - begin
        else:
            observe(
                slot,
                now,
                book.truth[slot],
                book.specs,
                book.model,
                book.users,
                book.jobs,
                book.summaries,
            )
            book.cost[slot] += nanoseconds() - begin


def room_for_belief() -> Floats:
    """An empty belief row."""
    return np.zeros(BELIEF_COLUMNS)
