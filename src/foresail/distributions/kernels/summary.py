"""Summary rows: what a predictor believed, as the few numbers that schedulers order and plan by.

A row has the columns of ``foresail.kernels.columns``. Each kind of distribution has one function
here (the log-normal in ``distributions.kernels.log_normal``), called by compiled predictors and by
``foresail.distributions.summary`` alike, so that both give the same bits.
"""

from __future__ import annotations

import math

from foresail.kernels import columns
from foresail.kernels.compile import Floats, bare_kernel, part
from foresail.kernels.waiting_jobs import first_not_below

_QUANTILES = len(columns.QUANTILE_LEVELS)


@bare_kernel
def summarise_point(value: float, row: Floats) -> None:
    """Fill a summary row for a belief in one number (seconds)."""
    row[columns.PREDICTED] = value
    for i in range(_QUANTILES):
        row[columns.Q10 + i] = value
    row[columns.URGENCY] = 1.0 / max(value, columns.SLOWDOWN_BOUND_SECONDS)


@bare_kernel
def piecewise_quantile(levels: Floats, values: Floats, level: float) -> float:
    """Value at a level of the piecewise linear quantile function through (levels, values).

    ``levels`` ascend strictly from 0 to 1; ``values`` do not descend.
    """
    upper = first_not_below(levels, levels.size, level)
    if upper == 0:
        return float(values[0])
    below, above = levels[upper - 1], levels[upper]
    share = (level - below) / (above - below)
    between = values[upper - 1] + share * (values[upper] - values[upper - 1])
    return float(min(between, values[upper]))  # rounding may pass the end


@bare_kernel
def piecewise_mean(levels: Floats, values: Floats) -> float:
    """Mean of the distribution whose quantile function runs through (levels, values)."""
    mean = 0.0
    for i in range(1, levels.size):
        mean += (levels[i] - levels[i - 1]) * 0.5 * (values[i - 1] + values[i])
    return float(min(max(mean, values[0]), values[-1]))  # rounding may leave the range


@part
def _uniform_urgency(low: float, high: float) -> float:
    """E[1 / max(T, bound)] for T uniform on [low, high]."""
    if high <= columns.SLOWDOWN_BOUND_SECONDS:
        return 1.0 / columns.SLOWDOWN_BOUND_SECONDS
    if low >= high:
        return 1.0 / high
    floor = max(low, columns.SLOWDOWN_BOUND_SECONDS)
    bounded = (floor - low) / columns.SLOWDOWN_BOUND_SECONDS
    return (bounded + math.log1p((high - floor) / floor)) / (high - low)


@bare_kernel
def summarise_piecewise(levels: Floats, values: Floats, row: Floats) -> None:
    """Fill a summary row for the distribution with the quantile function (levels, values)."""
    row[columns.PREDICTED] = piecewise_mean(levels, values)
    for i in range(_QUANTILES):
        row[columns.Q10 + i] = piecewise_quantile(levels, values, columns.QUANTILE_LEVELS[i])
    urgency = 0.0
    for i in range(1, levels.size):
        urgency += (levels[i] - levels[i - 1]) * _uniform_urgency(values[i - 1], values[i])
    row[columns.URGENCY] = urgency


@bare_kernel
def atom_mean(values: Floats, probabilities: Floats) -> float:
    """Mean of weighted atoms."""
    mean = 0.0
    for i in range(values.size):
        mean += probabilities[i] * values[i]
    return float(min(max(mean, values[0]), values[-1]))  # rounding may leave the range


@bare_kernel
def atom_quantile(values: Floats, cumulative: Floats, level: float) -> float:
    """Smallest atom whose cumulative probability reaches the level; ``values`` ascend."""
    reached = first_not_below(cumulative, cumulative.size, level)
    return float(values[min(reached, values.size - 1)])


@bare_kernel
def summarise_atoms(values: Floats, probabilities: Floats, cumulative: Floats, row: Floats) -> None:
    """Fill a summary row for weighted atoms: ``values`` ascend, ``probabilities`` add up to 1."""
    row[columns.PREDICTED] = atom_mean(values, probabilities)
    for i in range(_QUANTILES):
        row[columns.Q10 + i] = atom_quantile(values, cumulative, columns.QUANTILE_LEVELS[i])
    urgency = 0.0
    for i in range(values.size):
        urgency += probabilities[i] / max(values[i], columns.SLOWDOWN_BOUND_SECONDS)
    row[columns.URGENCY] = urgency
