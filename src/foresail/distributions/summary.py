"""A distribution as the rows that kernels read: the summary row, and the belief row."""

from __future__ import annotations

from typing import Final

import numpy as np

from foresail.distributions.basic import Point, Uniform
from foresail.distributions.empirical import Empirical
from foresail.distributions.histogram import Histogram
from foresail.distributions.kernels.log_normal import (
    fill_log_normal_belief,
    log_normal_quantiles,
    summarise_log_normal,
)
from foresail.distributions.kernels.streaming_histogram import summarise_histogram
from foresail.distributions.kernels.summary import (
    summarise_atoms,
    summarise_piecewise,
    summarise_point,
)
from foresail.distributions.log_normal import LogNormal
from foresail.distributions.quantiles import Quantiles
from foresail.kernels import columns
from foresail.model.distribution import Distribution, Floats

_BELIEF_LEVELS: Final = np.array(columns.BELIEF_LEVELS)


def summarise(distribution: Distribution) -> Floats:
    """Mean, quantiles and urgency of a belief, in the columns of ``foresail.kernels.columns``.

    Returns
    -------
    numpy.ndarray
        Shape (SUMMARY_COLUMNS,); seconds, urgency per second.
    """
    row = np.empty(columns.SUMMARY_COLUMNS)
    match distribution:
        case Point():
            summarise_point(float(distribution.value), row)
        case Quantiles():
            summarise_piecewise(distribution.levels, distribution.values, row)
        case Empirical():
            summarise_atoms(
                distribution.values, distribution.probabilities, distribution.reached, row
            )
        case Uniform(low, high):
            summarise_piecewise(np.array([0.0, 1.0]), np.array([low, high]), row)
        case Histogram() if distribution.elapsed == 0.0:
            summarise_histogram(distribution.row, row)
        case LogNormal(mu, sigma, cap, elapsed):
            summarise_log_normal(mu, sigma, cap, elapsed, row)
        case _:
            _summarise_any(distribution, row)
    return row


def belief_row(distribution: Distribution) -> Floats:
    """The quantiles of a belief at ``BELIEF_LEVELS``, of ``foresail.kernels.columns``.

    Returns
    -------
    numpy.ndarray
        Shape (BELIEF_COLUMNS,); seconds. The last is the largest value, or infinite without one;
        of a log-normal it is what keeps the mean right where a row is read as linear.
    """
    if isinstance(distribution, LogNormal):
        row = np.empty(columns.BELIEF_COLUMNS)
        parameters = distribution.mu, distribution.sigma, distribution.cap, distribution.elapsed
        fill_log_normal_belief(*parameters, row)
        return row
    if isinstance(distribution, Quantiles):
        return np.interp(columns.BELIEF_LEVELS, distribution.levels, distribution.values)
    return quantiles_at(distribution, _BELIEF_LEVELS)


def quantiles_at(distribution: Distribution, levels: Floats) -> Floats:
    """The quantile at each of the levels, to the last bit as if each were asked for alone."""
    if isinstance(distribution, LogNormal):
        parameters = distribution.mu, distribution.sigma, distribution.cap, distribution.elapsed
        return log_normal_quantiles(*parameters, levels)
    return np.array([distribution.quantile(level) for level in levels.tolist()])


def _summarise_any(distribution: Distribution, row: Floats) -> None:
    row[columns.PREDICTED] = distribution.mean()
    for i, level in enumerate(columns.QUANTILE_LEVELS):
        row[columns.Q10 + i] = distribution.quantile(level)
    row[columns.URGENCY] = distribution.expectation(
        lambda t: 1.0 / np.maximum(t, columns.SLOWDOWN_BOUND_SECONDS)
    )
