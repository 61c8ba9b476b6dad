"""The normal distribution beyond a value, said with upper tails, which are precise far out.

Callers see to it that ``sigma`` is above 0 and that something is left beyond ``low``.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.kernels.log_normal import upper_quantile, upper_tail
from foresail.kernels.compile import bare_kernel

_ROOT_TWO_PI: Final = math.sqrt(2.0 * math.pi)


@bare_kernel
def truncated_normal_mean(mu: float, sigma: float, low: float) -> float:
    """Expected value."""
    z = (low - mu) / sigma
    hazard = math.exp(-0.5 * z * z) / (_ROOT_TWO_PI * upper_tail(z))
    return max(mu + sigma * hazard, low)


@bare_kernel
def truncated_normal_quantile(mu: float, sigma: float, low: float, level: float) -> float:
    """Value that the quantity stays at or below with this probability."""
    if level <= 0.0:
        return low
    above = upper_tail((low - mu) / sigma) * (1.0 - level)
    return max(mu + sigma * upper_quantile(above), low)


def truncated_normal_quantiles(
    mu: float, sigma: float, low: float, levels: NDArray[np.float64]
) -> NDArray[np.float64]:
    """``truncated_normal_quantile`` at each of the levels (one dimension)."""
    values = np.empty(levels.size)
    _fill_quantiles(mu, sigma, low, levels, values)
    return values


@bare_kernel
def _fill_quantiles(
    mu: float, sigma: float, low: float, levels: NDArray[np.float64], values: NDArray[np.float64]
) -> None:
    for i in range(levels.size):
        values[i] = truncated_normal_quantile(mu, sigma, low, levels[i])


def truncated_normal_survival(
    values: NDArray[np.float64], mu: float, sigma: float, low: float
) -> NDArray[np.float64]:
    """Probability to exceed each of the values (one dimension)."""
    survival = np.empty(values.size)
    _fill_survival(np.array(values), mu, sigma, low, survival)
    return survival


@bare_kernel
def _fill_survival(
    values: NDArray[np.float64], mu: float, sigma: float, low: float, survival: NDArray[np.float64]
) -> None:
    left = upper_tail((low - mu) / sigma)
    for i in range(values.size):
        survival[i] = upper_tail((values[i] - mu) / sigma) / left if values[i] > low else 1.0
