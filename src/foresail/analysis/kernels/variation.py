"""Mean and deviation of similar jobs' values within a sliding window of time."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from foresail.kernels.compile import bare_kernel, part
from foresail.model.arrays import Floats, Integers

_COUNT: Final = 0
_MEAN: Final = 1
_SQUARES: Final = 2
_SUMS: Final = 3
"""Of a code's values in the window: how many, their mean, and their squares about it."""


def window_variation(
    codes: Integers,
    values: Floats,
    asked_seconds: Floats,
    asked_order: Integers,
    known_seconds: Floats,
    known_order: Integers,
    window_seconds: float,
    least: int,
) -> Floats:
    """Coefficient of variation of earlier similar jobs' values, as each job asks for it.

    Parameters
    ----------
    codes
        Jobs of one code (from 0 on) are similar; -1 is similar to none. Shape (jobs,).
    values
        What varies; finite, shape (jobs,).
    asked_seconds
        When each job asks; shape (jobs,).
    asked_order
        Jobs by the time they ask, the earliest first.
    known_seconds
        When each job's value became known; shape (jobs,).
    known_order
        Jobs by the time their value became known; jobs to leave out are absent.
    window_seconds
        Values count that became known so long before the question, or later, but not after it.
    least
        Similar jobs needed for an answer, at least 1.

    Returns
    -------
    Population deviation over mean, shape (jobs,); nan with too few similar jobs or a mean of 0.
    """
    jobs = np.stack((values, asked_seconds, known_seconds))
    sums = np.zeros((int(codes.max(initial=-1)) + 1, _SUMS))
    answer = np.full(codes.size, np.nan)
    own = np.array(codes)  # writable, as Numba tells from read-only ones
    _fill_variations(own, asked_order, known_order, jobs, window_seconds, least, sums, answer)
    return answer


@bare_kernel
def _fill_variations(
    codes: Integers,
    asked_order: Integers,
    known_order: Integers,
    jobs: Floats,
    window_seconds: float,
    least: int,
    sums: Floats,
    answer: Floats,
) -> None:
    """Fill in the answers; ``sums`` has a row per code, zeros at first."""
    values, asked_seconds, known_seconds = jobs[0], jobs[1], jobs[2]
    entering = 0
    leaving = 0
    for at in range(asked_order.size):
        job = asked_order[at]
        now = asked_seconds[job]
        while entering < known_order.size and known_seconds[known_order[entering]] <= now:
            other = known_order[entering]
            entering += 1
            if codes[other] >= 0:
                _count(sums[codes[other]], values[other])
        while leaving < entering and known_seconds[known_order[leaving]] < now - window_seconds:
            other = known_order[leaving]
            leaving += 1
            if codes[other] >= 0:
                _count_no_more(sums[codes[other]], values[other])
        kind = codes[job]
        if kind >= 0 and sums[kind, _COUNT] >= least and sums[kind, _MEAN] > 0.0:
            variance = sums[kind, _SQUARES] / sums[kind, _COUNT]
            answer[job] = math.sqrt(variance) / sums[kind, _MEAN]


@part
def _count(sums: Floats, value: float) -> None:
    sums[_COUNT] += 1.0
    apart = value - sums[_MEAN]
    sums[_MEAN] += apart / sums[_COUNT]
    sums[_SQUARES] += apart * (value - sums[_MEAN])


@part
def _count_no_more(sums: Floats, value: float) -> None:
    sums[_COUNT] -= 1.0
    if sums[_COUNT] == 0.0:
        sums[_MEAN] = 0.0
        sums[_SQUARES] = 0.0
        return
    apart = value - sums[_MEAN]
    sums[_MEAN] -= apart / sums[_COUNT]
    sums[_SQUARES] = max(0.0, sums[_SQUARES] - apart * (value - sums[_MEAN]))
