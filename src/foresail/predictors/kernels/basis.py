"""The quadratic basis: 1, every feature, and every product of two features."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import part


def basis_size(features: int) -> int:
    """Number of terms: 231 for 20 features."""
    return 1 + features + features * (features + 1) // 2


@part
def expand(features: NDArray[np.float64], basis: NDArray[np.float64]) -> None:
    """Write 1, x_i, then x_i x_l for i <= l, into ``basis`` (spec section 5)."""
    basis[0] = 1.0
    term = 1
    for i in range(features.size):
        basis[term] = features[i]
        term += 1
    for i in range(features.size):
        for j in range(i, features.size):
            basis[term] = features[i] * features[j]
            term += 1
