"""Compiled loop of evaluations: predict, score and learn in order of events."""

from __future__ import annotations

import math
import time
from typing import Any, Final, NamedTuple

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from foresail.kernels.columns import BELIEF_COLUMNS, BELIEF_LEVELS, PREDICTED
from foresail.kernels.compile import bare_kernel, part, unlocked_kernel
from foresail.kernels.steps import (
    PredictorInputs,
    PredictorSteps,
    call_belief_step,
    call_predictor_step,
    step_address,
)
from foresail.model.distribution import Floats, Integers
from foresail.predictors.kernels.members import point_belief
from foresail.predictors.training import END, SUBMISSION, EventOrder

_CLOCK: Final = int(time.CLOCK_THREAD_CPUTIME_ID)
_NANOSECONDS: Final = 1_000_000_000
_TRIES: Final = 1000
_ir: Final[Any] = cgutils.ir  # type: ignore[attr-defined]  # llvmlite's, as Numba uses it


@intrinsic
def nanoseconds(_context: Any) -> Any:
    """Processor time of this thread, like ``time.thread_time_ns`` (for use in kernels)."""

    def generate(_context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        word = _ir.IntType(64)
        pair = _ir.ArrayType(word, 2)
        moment = cgutils.alloca_once(builder, pair)  # type: ignore[no-untyped-call]
        kind = _ir.FunctionType(_ir.IntType(32), [_ir.IntType(32), moment.type])
        function = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
            builder.module, kind, "clock_gettime"
        )
        builder.call(function, [_ir.Constant(_ir.IntType(32), _CLOCK), moment])
        whole = builder.load(
            builder.gep(moment, [_ir.Constant(_ir.IntType(32), i) for i in (0, 0)])
        )
        rest = builder.load(builder.gep(moment, [_ir.Constant(_ir.IntType(32), i) for i in (0, 1)]))
        return builder.add(builder.mul(whole, _ir.Constant(word, _NANOSECONDS)), rest)

    return types.int64(), generate


@bare_kernel
def nanoseconds_to_read() -> int:
    """Return the time that reading the clock takes itself: the least of many tries."""
    least = _NANOSECONDS
    for _ in range(_TRIES):
        begin: int = nanoseconds()  # type: ignore[call-arg]  # an intrinsic's context is Numba's
        least = min(least, nanoseconds() - begin)
    return least


@part
def tame_belief(belief: Floats) -> bool:
    """Make a belief row finite and not descending; False if it says nothing.

    A belief without an end keeps its last finite quantile up to level 1.
    """
    if not math.isfinite(belief[0]):
        return False
    for i in range(1, BELIEF_COLUMNS):
        if not belief[i] >= belief[i - 1] or math.isinf(belief[i]):
            belief[i] = belief[i - 1]
    return True


@part
def level_at_or_below(belief: Floats, truth: float) -> float:
    """Probability of at most the truth, by the piecewise linear quantile function."""
    if truth >= belief[BELIEF_COLUMNS - 1]:
        return 1.0
    if truth < belief[0]:
        return 0.0
    i = BELIEF_COLUMNS - 1
    while belief[i - 1] > truth:
        i -= 1
    share = (truth - belief[i - 1]) / (belief[i] - belief[i - 1])
    return float(BELIEF_LEVELS[i - 1] + share * (BELIEF_LEVELS[i] - BELIEF_LEVELS[i - 1]))


@part
def level_below(belief: Floats, truth: float) -> float:
    """Probability of less than the truth: differs from ``level_at_or_below`` at an atom."""
    if truth > belief[BELIEF_COLUMNS - 1]:
        return 1.0
    if truth <= belief[0]:
        return 0.0
    i = 1
    while belief[i] < truth:
        i += 1
    share = (truth - belief[i - 1]) / (belief[i] - belief[i - 1])
    return float(BELIEF_LEVELS[i - 1] + share * (BELIEF_LEVELS[i] - BELIEF_LEVELS[i - 1]))


@part
def _loss_over(begin: float, end: float, low: float, high: float, truth: float) -> float:
    """Twice the pinball loss, integrated over the levels from begin to end.

    The quantiles run in a line from ``low`` to ``high``, both on the same side of the truth: the
    integrand is a parabola, for which Simpson's rule is exact.
    """
    middle_level = 0.5 * (begin + end)
    middle = 0.5 * (low + high)
    if middle >= truth:
        first = (1.0 - begin) * (low - truth)
        centre = (1.0 - middle_level) * (middle - truth)
        last = (1.0 - end) * (high - truth)
    else:
        first = begin * (truth - low)
        centre = middle_level * (truth - middle)
        last = end * (truth - high)
    return (end - begin) / 3.0 * (first + 4.0 * centre + last)


@part
def continuous_ranked_probability_score(belief: Floats, truth: float) -> float:
    """CRPS of a belief row: twice the pinball loss integrated over all levels, in the row's unit.

    The absolute error where the belief is a point (Gneiting and Raftery 2007). Exact for the
    piecewise linear quantile function through the row.
    """
    score = 0.0
    for i in range(1, BELIEF_COLUMNS):
        begin, end = BELIEF_LEVELS[i - 1], BELIEF_LEVELS[i]
        low, high = belief[i - 1], belief[i]
        if low < truth < high:
            crossing = begin + (end - begin) * (truth - low) / (high - low)
            score += _loss_over(begin, crossing, low, truth, truth)
            score += _loss_over(crossing, end, truth, high, truth)
        else:
            score += _loss_over(begin, end, low, high, truth)
    return score


BELIEF: Final = 3

LEVELS: Final = (0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975)
"""The quantiles that are kept of every belief."""

_KEPT: Final = tuple(BELIEF_LEVELS.index(level) for level in LEVELS)

QUANTILES: Final = 1
BELOW: Final = QUANTILES + len(LEVELS)
AT_OR_BELOW: Final = BELOW + 1
CRPS: Final = AT_OR_BELOW + 1
SCORE_COLUMNS: Final = CRPS + 1
"""A score row per job: the predicted mean, the quantiles at ``LEVELS``, the probability of less
than the truth, that of at most the truth, and the CRPS; all NaN where nothing was predicted."""


class JobArrays(NamedTuple):
    """The jobs, the predictor's state, and what is written down of each job.

    ``truth`` is the amount predicted, ``expert`` the one that was followed (-1: none), ``cost``
    the nanoseconds of processor time that the predictor's steps took for the job. ``taken`` holds
    one number, how many events have been: others look at it meanwhile.
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
    taken: Integers


@bare_kernel
def score(predicted: float, belief: Floats, truth: float, row: Floats) -> None:
    """Fill a score row; ``belief`` is made finite and ascending on the way."""
    if not (math.isfinite(predicted) and tame_belief(belief)):
        for i in range(SCORE_COLUMNS):
            row[i] = math.nan
        return
    row[0] = predicted
    for i in range(len(LEVELS)):
        row[QUANTILES + i] = belief[_KEPT[i]]
    row[BELOW] = level_below(belief, truth)
    row[AT_OR_BELOW] = level_at_or_below(belief, truth)
    row[CRPS] = continuous_ranked_probability_score(belief, truth)


@unlocked_kernel
def evaluation_loop(
    order: EventOrder, arrays: JobArrays, addresses: Floats, expert_column: int, belief: Floats
) -> None:
    """Run all events of the order.

    ``addresses`` are those of the predictor's steps for each kind of event, and behind them that of
    its belief step; ``expert_column`` is -1 for a predictor without experts; ``belief`` is room for
    one row.
    """
    for event in range(order.kind.size):
        arrays.taken[0] = event
        slot, kind = order.slot[event], order.kind[event]
        inputs = PredictorInputs(
            slot,
            order.time[event],
            arrays.truth[slot] if kind == END else math.nan,
            arrays.specs,
            arrays.model,
            arrays.users,
            arrays.jobs,
            arrays.summaries,
        )
        begin: int = nanoseconds()  # type: ignore[call-arg]  # an intrinsic's context is Numba's
        call_predictor_step(addresses[kind], inputs)
        if kind == SUBMISSION:
            call_belief_step(addresses[BELIEF], inputs, belief)
        arrays.cost[slot] += nanoseconds() - begin
        if kind == SUBMISSION:
            score(
                arrays.summaries[slot, PREDICTED], belief, arrays.truth[slot], arrays.scores[slot]
            )
            if expert_column >= 0:
                arrays.expert[slot] = int(arrays.jobs[slot, expert_column])


def step_addresses(steps: PredictorSteps) -> Floats:
    """Return the addresses of steps that ``evaluation_loop`` calls."""
    known = (steps.predict, steps.started, steps.observe, steps.belief or point_belief)
    return np.array([step_address(step) for step in known])
