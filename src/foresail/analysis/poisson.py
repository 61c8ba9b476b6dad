"""Are these gaps those of a Poisson process: the Kolmogorov-Smirnov test against Exp(mean)."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

_TERMS: Final = 20
_SWITCH: Final = 1.0
"""Below it the alternating series needs many terms and the transformed one few."""


def distance_to_exponential(gaps: NDArray[np.float64]) -> float:
    """Largest distance between the gaps' distribution and the exponential one of the same mean.

    D = max over the sorted gaps of max(i/n - F, F - (i-1)/n) (spec section 10, W7; golden value
    G19). There is at least one gap of at least 0 (any unit), and their mean is positive.
    """
    ordered = np.sort(gaps)
    count = ordered.size
    expected = -np.expm1(-ordered / ordered.mean())
    rank = np.arange(1, count + 1)
    return float(np.max(np.maximum(rank / count - expected, expected - (rank - 1) / count)))


def asymptotic_p_value(distance: float, count: int) -> float:
    """Probability that a sample of ``count`` is at least so far from its own distribution.

    Kolmogorov's limit for large samples of a continuous distribution that is fully known. Where
    the mean was estimated from the same sample (Lilliefors) true probabilities are smaller.
    """
    at = math.sqrt(count) * distance
    if at <= 0:
        return 1.0
    if at < _SWITCH:
        base = -(math.pi**2) / (8 * at * at)
        inner = sum(math.exp(base * (2 * k - 1) ** 2) for k in range(1, _TERMS))
        return 1.0 - math.sqrt(2 * math.pi) / at * inner
    signs = (1.0 if k % 2 else -1.0 for k in range(1, _TERMS))
    terms = (math.exp(-2 * (k * at) ** 2) for k in range(1, _TERMS))
    return 2 * sum(sign * term for sign, term in zip(signs, terms, strict=True))
