"""Two forecasts joined: each weighed by how near it has been of late."""

from __future__ import annotations

import numpy as np
from schedules import Floats
from scoring import crps

_HALF_LIFE = 100.0
"""Questions after which a score counts half."""
_SHARPNESS = 3.0
"""Weights are inverse scores to this power."""
_SHORT_SECONDS = 60.0


def joined_waits(methods: list[Floats], truth: Floats, asked: Floats, known: Floats) -> Floats:
    """Return the quantiles of several methods averaged, on the scale of a logarithm.

    Parameters
    ----------
    methods
        Of each the quantiles of what is left to wait; shape (questions, 3), in order of time.
    truth, asked, known
        What was left to wait, when it was asked, and when that was known.
    """
    stated = [np.where(np.isfinite(each), each, np.nan) for each in methods]
    scale = np.log1p(np.maximum(truth, 0.0) / _SHORT_SECONDS)
    scaled = [np.log1p(np.maximum(each, 0.0) / _SHORT_SECONDS) for each in stated]
    losses = np.array([crps(each, scale) for each in scaled])
    answers = np.full_like(stated[0], np.nan)
    for question, now in enumerate(asked.tolist()):
        past = np.flatnonzero((known <= now) & np.isfinite(losses).all(axis=0))
        ages = np.arange(len(past))[::-1]
        counted = 0.5 ** (ages / _HALF_LIFE)
        means = (losses[:, past] @ counted + 0.1) / (counted.sum() + 0.1)
        weights = means**-_SHARPNESS
        here = np.array([each[question] for each in scaled])
        weights[~np.isfinite(here).all(axis=1)] = 0.0
        if weights.any():
            mean = weights @ np.nan_to_num(here) / weights.sum()
            answers[question] = _SHORT_SECONDS * np.expm1(mean)
    return answers
