"""Scores of forecasts: how near, how often within, and how sharp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEVELS: Final = (0.1, 0.5, 0.9)
"""Levels of the quantiles that every method states."""

_SHORT_SECONDS: Final = 1.0
"""Starts are as exact as this: a range holds what is so little outside of it."""


@dataclass(frozen=True, slots=True)
class Score:
    """Scores of a method over the questions that it answered; times in seconds.

    ``near`` has the shares within a minute, ten and an hour, ``doubled`` the share whose stated
    wait is within a factor of two of the real one, ``before`` and ``after`` the shares that start
    outside the range. ``unknown`` is the share of questions that had no answer.
    """

    asked: int
    unknown: float
    near: tuple[float, float, float]
    doubled: float
    mean_error: float
    median_error: float
    before: float
    after: float
    width: float
    crps: float

    @property
    def within(self) -> float:
        """Return the share of starts within the range."""
        return 1.0 - self.before - self.after


def crps(quantiles: Floats, truth: Floats, levels: Sequence[float] = LEVELS) -> Floats:
    """Return the continuous ranked probability score of each forecast, shape (n,).

    It is twice the integral of the pinball loss over all levels; the loss at each stated one
    stands for those that it is nearest to. Of a forecast of one value it is the absolute error.

    Parameters
    ----------
    quantiles
        Shape (n, levels).
    truth
        Shape (n,).
    levels
        Of the quantiles.
    """
    at = np.asarray(levels)
    borders = np.concatenate(([0.0], (at[1:] + at[:-1]) / 2.0, [1.0]))
    off = truth[:, None] - quantiles
    pinball = np.where(off >= 0.0, at * off, (at - 1.0) * off)
    return np.asarray(2.0 * (pinball * np.diff(borders)).sum(axis=1))


def score(quantiles: Floats, truth: Floats) -> Score:
    """Score waits still to come as stated (shape (n, 3), nan: no answer) and as they were."""
    known = np.isfinite(quantiles).all(axis=1)
    stated, real = quantiles[known], truth[known]
    if not known.any():
        none = float("nan")
        return Score(len(truth), 1.0, (none,) * 3, *(none,) * 7)
    error = np.abs(stated[:, 1] - real)
    ratio = np.maximum(stated[:, 1], _SHORT_SECONDS) / np.maximum(real, _SHORT_SECONDS)
    return Score(
        asked=len(truth),
        unknown=float(1.0 - known.mean()),
        near=tuple(float((error <= limit).mean()) for limit in (60.0, 600.0, 3600.0)),  # type: ignore[arg-type]
        doubled=float(((ratio >= 0.5) & (ratio <= 2.0)).mean()),
        mean_error=float(error.mean()),
        median_error=float(np.median(error)),
        before=float((real < stated[:, 0] - _SHORT_SECONDS).mean()),
        after=float((real > stated[:, 2] + _SHORT_SECONDS).mean()),
        width=float(np.median(stated[:, 2] - stated[:, 0])),
        crps=float(crps(stated, real).mean()),
    )
