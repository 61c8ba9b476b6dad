"""Mean and deviation of similar jobs' values within a sliding window of time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import kernel

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@kernel
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
    kinds = codes.max() + 1 if codes.size else 0
    count = np.zeros(kinds, np.int64)
    mean = np.zeros(kinds)
    squares = np.zeros(kinds)
    answer = np.full(codes.size, np.nan)
    entering = 0
    leaving = 0
    for job in asked_order:
        now = asked_seconds[job]
        while entering < known_order.size and known_seconds[known_order[entering]] <= now:
            other = known_order[entering]
            entering += 1
            kind = codes[other]
            if kind >= 0:
                count[kind] += 1
                apart = values[other] - mean[kind]
                mean[kind] += apart / count[kind]
                squares[kind] += apart * (values[other] - mean[kind])
        while leaving < entering and known_seconds[known_order[leaving]] < now - window_seconds:
            other = known_order[leaving]
            leaving += 1
            kind = codes[other]
            if kind >= 0:
                count[kind] -= 1
                if count[kind] == 0:
                    mean[kind] = 0.0
                    squares[kind] = 0.0
                else:
                    apart = values[other] - mean[kind]
                    mean[kind] -= apart / count[kind]
                    squares[kind] = max(0.0, squares[kind] - apart * (values[other] - mean[kind]))
        kind = codes[job]
        if kind >= 0 and count[kind] >= least and mean[kind] > 0.0:
            answer[job] = np.sqrt(squares[kind] / count[kind]) / mean[kind]
    return answer
