"""A distribution as the summary row that compiled schedulers and corrections read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.empirical import Empirical
from foresail.distributions.log_normal import LogNormal
from foresail.distributions.point import Point
from foresail.distributions.quantiles import Quantiles
from foresail.kernels.columns import (
    PREDICTED,
    Q10,
    QUANTILE_LEVELS,
    SLOWDOWN_BOUND_SECONDS,
    SUMMARY_COLUMNS,
    URGENCY,
)
from foresail.kernels.log_normal import summarise_log_normal
from foresail.kernels.summary import summarise_atoms, summarise_piecewise, summarise_point
from foresail.model.distribution import Distribution


def summarise(distribution: Distribution) -> NDArray[np.float64]:
    """Mean, quantiles and urgency of a belief, in the columns of ``foresail.kernels.columns``.

    Returns
    -------
    numpy.ndarray
        Shape (SUMMARY_COLUMNS,); seconds, urgency per second.
    """
    row = np.empty(SUMMARY_COLUMNS)
    match distribution:
        case Point():
            summarise_point(float(distribution.value), row)
        case Quantiles():
            summarise_piecewise(distribution.levels, distribution.values, row)
        case Empirical():
            summarise_atoms(
                distribution.values, distribution.probabilities, distribution.cumulative, row
            )
        case LogNormal(mu, sigma, cap, elapsed):
            summarise_log_normal(mu, sigma, cap, elapsed, row)
        case _:
            _summarise_any(distribution, row)
    return row


def _summarise_any(distribution: Distribution, row: NDArray[np.float64]) -> None:
    row[PREDICTED] = distribution.mean()
    for i, level in enumerate(QUANTILE_LEVELS):
        row[Q10 + i] = distribution.quantile(level)
    row[URGENCY] = distribution.expectation(lambda t: 1.0 / np.maximum(t, SLOWDOWN_BOUND_SECONDS))
