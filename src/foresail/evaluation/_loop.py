"""The compiled loop of an evaluation: submissions, starts and ends in order, and the scores."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from foresail.evaluation.kernels.clock import nanoseconds
from foresail.evaluation.kernels.scoring import (
    continuous_ranked_probability_score,
    level_at_or_below,
    level_below,
    tame_belief,
)
from foresail.kernels.calling import call_belief_step, call_predictor_step, step_address
from foresail.kernels.columns import BELIEF_LEVELS, PREDICTED
from foresail.kernels.compile import bare_kernel, unlocked_kernel
from foresail.kernels.signatures import PredictorInputs, PredictorSteps
from foresail.model.arrays import Floats, Integers
from foresail.predictors.event_order import END, SUBMISSION, EventOrder
from foresail.predictors.kernels.belief import point_belief

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
    """What ``evaluation_loop`` calls."""
    known = (steps.predict, steps.started, steps.observe, steps.belief or point_belief)
    return np.array([step_address(step) for step in known])
