"""The log-normal distribution cut at a limit, and what is left of it after an elapsed time.

The quantity is min(X, cap) with ln X normal (mean ``mu``, standard deviation ``sigma``), known to
exceed ``elapsed`` (0: nothing is known). Everything is said with upper tails of the normal
distribution, which keep their precision far out. Callers see to it that ``sigma`` is above 0,
``elapsed`` is below ``cap`` and something is left beyond it.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from foresail.kernels import columns
from foresail.kernels.compile import Floats, bare_kernel, kernel, part

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


def truncated_normal_quantiles(mu: float, sigma: float, low: float, levels: Floats) -> Floats:
    """``truncated_normal_quantile`` at each of the levels (one dimension)."""
    values = np.empty(levels.size)
    _fill_quantiles(mu, sigma, low, levels, values)
    return values


@bare_kernel
def _fill_quantiles(mu: float, sigma: float, low: float, levels: Floats, values: Floats) -> None:
    for i in range(levels.size):
        values[i] = truncated_normal_quantile(mu, sigma, low, levels[i])


def truncated_normal_survival(values: Floats, mu: float, sigma: float, low: float) -> Floats:
    """Probability to exceed each of the values (one dimension)."""
    survival = np.empty(values.size)
    _fill_survival(np.array(values), mu, sigma, low, survival)
    return survival


@bare_kernel
def _fill_survival(values: Floats, mu: float, sigma: float, low: float, survival: Floats) -> None:
    left = upper_tail((low - mu) / sigma)
    for i in range(values.size):
        survival[i] = upper_tail((values[i] - mu) / sigma) / left if values[i] > low else 1.0


_QUANTILES = len(columns.QUANTILE_LEVELS)
STANDARD_QUANTILES: Final = (
    -1.2815515655446006,
    -0.6744897501960817,
    0.0,
    0.6744897501960817,
    1.2815515655446006,
)
"""Quantiles of the standard normal distribution at ``QUANTILE_LEVELS``."""
_ROOT_HALF: Final = math.sqrt(0.5)

# Wichura (1988), algorithm AS 241: numerator and denominator by falling powers, for the middle of
# the distribution and for two stretches of its tails.
_MIDDLE: Final = 0.425
_MIDDLE_TOP: Final = (
    2.5090809287301226727e3,
    3.3430575583588128105e4,
    6.7265770927008700853e4,
    4.5921953931549871457e4,
    1.3731693765509461125e4,
    1.9715909503065514427e3,
    1.3314166789178437745e2,
    3.3871328727963666080e0,
)
_MIDDLE_BOTTOM: Final = (
    5.2264952788528545610e3,
    2.8729085735721942674e4,
    3.9307895800092710610e4,
    2.1213794301586595867e4,
    5.3941960214247511077e3,
    6.8718700749205790830e2,
    4.2313330701600911252e1,
    1.0,
)
_NEAR: Final = 5.0
_NEAR_ORIGIN: Final = 1.6
_NEAR_TOP: Final = (
    7.74545014278341407640e-4,
    2.27238449892691845833e-2,
    2.41780725177450611770e-1,
    1.27045825245236838258e0,
    3.64784832476320460504e0,
    5.76949722146069140550e0,
    4.63033784615654529590e0,
    1.42343711074968357734e0,
)
_NEAR_BOTTOM: Final = (
    1.05075007164441684324e-9,
    5.47593808499534494600e-4,
    1.51986665636164571966e-2,
    1.48103976427480074590e-1,
    6.89767334985100004550e-1,
    1.67638483018380384940e0,
    2.05319162663775882187e0,
    1.0,
)
_FAR_TOP: Final = (
    2.01033439929228813265e-7,
    2.71155556874348757815e-5,
    1.24266094738807843860e-3,
    2.65321895265761230930e-2,
    2.96560571828504891230e-1,
    1.78482653991729133580e0,
    5.46378491116411436990e0,
    6.65790464350110377720e0,
)
_FAR_BOTTOM: Final = (
    2.04426310338993978564e-15,
    1.42151175831644588870e-7,
    1.84631831751005468180e-5,
    7.86869131145613259100e-4,
    1.48753612908506148525e-2,
    1.36929880922735805310e-1,
    5.99832206555887937690e-1,
    1.0,
)


@part
def _polynomial(coefficients: tuple[float, ...], x: float) -> float:
    c = coefficients  # a loop over a tuple takes far longer to compile
    middle = (((c[0] * x + c[1]) * x + c[2]) * x + c[3]) * x + c[4]
    return ((middle * x + c[5]) * x + c[6]) * x + c[7]


@bare_kernel
def upper_tail(z: float) -> float:
    """Probability that a standard normal variable exceeds ``z``."""
    return 0.5 * math.erfc(z * _ROOT_HALF)


@bare_kernel
def upper_quantile(probability: float) -> float:
    """The value that a standard normal variable exceeds with this probability (AS 241)."""
    if probability <= 0.0:
        return math.inf
    if probability >= 1.0:
        return -math.inf
    offset = 0.5 - probability
    if abs(offset) <= _MIDDLE:
        r = _MIDDLE * _MIDDLE - offset * offset
        return offset * _polynomial(_MIDDLE_TOP, r) / _polynomial(_MIDDLE_BOTTOM, r)
    r = math.sqrt(-math.log(min(probability, 1.0 - probability)))
    if r <= _NEAR:
        r -= _NEAR_ORIGIN
        distance = _polynomial(_NEAR_TOP, r) / _polynomial(_NEAR_BOTTOM, r)
    else:
        r -= _NEAR
        distance = _polynomial(_FAR_TOP, r) / _polynomial(_FAR_BOTTOM, r)
    return math.copysign(distance, offset)


@part
def _between(low: float, high: float) -> float:
    """Probability that a standard normal variable lies between two values."""
    if low > 0.0:
        return upper_tail(low) - upper_tail(high)
    return upper_tail(-high) - upper_tail(-low)


@bare_kernel
def standardised(value: float, mu: float, sigma: float) -> float:
    """Distance of a value (not negative, may be infinite) from the median, in ``sigma``."""
    if value <= 0.0:
        return -math.inf
    return (math.log(value) - mu) / sigma


@bare_kernel
def log_normal_left(mu: float, sigma: float, elapsed: float) -> float:
    """Probability that X exceeds ``elapsed``."""
    return upper_tail(standardised(elapsed, mu, sigma))


@bare_kernel
def log_normal_quantile(mu: float, sigma: float, cap: float, elapsed: float, level: float) -> float:
    """Value that the quantity stays at or below with this probability."""
    if level <= 0.0:
        return elapsed
    above = log_normal_left(mu, sigma, elapsed) * (1.0 - level)
    value = math.exp(mu + sigma * upper_quantile(above))
    return min(max(value, elapsed), cap)


@kernel
def log_normal_quantiles(
    mu: float, sigma: float, cap: float, elapsed: float, levels: Floats
) -> Floats:
    """``log_normal_quantile`` at each of the levels (one dimension)."""
    values = np.empty(levels.size)
    for i in range(levels.size):
        values[i] = log_normal_quantile(mu, sigma, cap, elapsed, levels[i])
    return values


@bare_kernel
def log_normal_mean(mu: float, sigma: float, cap: float, elapsed: float) -> float:
    """Expected value: that of X between ``elapsed`` and ``cap``, plus the mass on the cap."""
    first, last = standardised(elapsed, mu, sigma), standardised(cap, mu, sigma)
    total = math.exp(mu + 0.5 * sigma * sigma) * _between(first - sigma, last - sigma)
    if cap < math.inf:
        total += cap * upper_tail(last)
    return min(max(total / upper_tail(first), elapsed), cap)


@part
def log_normal_urgency(mu: float, sigma: float, cap: float, elapsed: float) -> float:
    """E[1 / max(T, bound)]: mass below the bound, E[1 / X] from it to the cap, mass on the cap."""
    low = max(elapsed, columns.SLOWDOWN_BOUND_SECONDS)
    if cap <= low:
        return 1.0 / low
    first, last = standardised(low, mu, sigma), standardised(cap, mu, sigma)
    total = math.exp(0.5 * sigma * sigma - mu) * _between(first + sigma, last + sigma)
    total += upper_tail(last) / cap
    if elapsed < low:
        total += _between(standardised(elapsed, mu, sigma), first) / low
    urgency = total / log_normal_left(mu, sigma, elapsed)
    return min(max(urgency, 1.0 / cap), 1.0 / low)


@kernel
def log_normal_survival(
    values: Floats, mu: float, sigma: float, cap: float, elapsed: float
) -> Floats:
    """Probability to exceed each of the values (one dimension)."""
    left = log_normal_left(mu, sigma, elapsed)
    survival = np.empty(values.size)
    for i in range(values.size):
        if values[i] < elapsed:
            survival[i] = 1.0
        elif values[i] >= cap:
            survival[i] = 0.0
        else:
            survival[i] = upper_tail(standardised(values[i], mu, sigma)) / left
    return survival


@bare_kernel
def summarise_log_normal(mu: float, sigma: float, cap: float, elapsed: float, row: Floats) -> None:
    """Fill a summary row (``foresail.kernels.columns``)."""
    row[columns.PREDICTED] = log_normal_mean(mu, sigma, cap, elapsed)
    if elapsed > 0.0:
        for i in range(_QUANTILES):
            row[columns.Q10 + i] = log_normal_quantile(
                mu, sigma, cap, elapsed, columns.QUANTILE_LEVELS[i]
            )
    else:  # the same, several times as quickly
        for i in range(_QUANTILES):
            row[columns.Q10 + i] = min(math.exp(mu + sigma * STANDARD_QUANTILES[i]), cap)
    row[columns.URGENCY] = log_normal_urgency(mu, sigma, cap, elapsed)


@bare_kernel
def fill_log_normal_belief(
    mu: float, sigma: float, cap: float, elapsed: float, row: Floats
) -> None:
    """Fill a belief row (``foresail.kernels.columns``).

    A row is read as linear between its levels. Its last value is not the cap, far beyond what is
    likely, but such that the mean beyond the level before it stays right.
    """
    for i in range(columns.BELIEF_COLUMNS - 1):
        row[i] = log_normal_quantile(mu, sigma, cap, elapsed, columns.BELIEF_LEVELS[i])
    last = row[columns.BELIEF_COLUMNS - 2]
    beyond = log_normal_mean(mu, sigma, cap, last) if last < cap else cap
    row[columns.BELIEF_COLUMNS - 1] = min(max(2.0 * beyond - last, last), cap)
