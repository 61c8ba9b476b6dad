"""A belief row against what happened: its CRPS, and the level that the truth lies at."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.columns import BELIEF_COLUMNS, BELIEF_LEVELS
from foresail.kernels.compile import part


@part
def tame_belief(belief: NDArray[np.float64]) -> bool:
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
def level_at_or_below(belief: NDArray[np.float64], truth: float) -> float:
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
def level_below(belief: NDArray[np.float64], truth: float) -> float:
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
def continuous_ranked_probability_score(belief: NDArray[np.float64], truth: float) -> float:
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
