"""Quadratic models of runtimes, learned online: basis, gradient descent at any scale, losses.

Source: Ross, Mineiro, Langford (UAI 2013); learned runtimes for backfilling, section 2.4.
One example takes, in this order: ``rescale_weights`` (per weight vector), ``raise_scales``,
``inner_product``, ``normalised_square`` and ``descend``. Weight vectors that learn from the same
inputs share scales. Their arrays have one entry per input.
"""

from __future__ import annotations

import math
from typing import Final

from foresail.kernels.compile import Floats, part

ETA: Final = 5000.0
"""Length of the steps, in seconds, as published."""

SHORTEST_SECONDS: Final = 1.0
"""Least runtime that is predicted, and that a weight is computed with."""

LINEAR: Final = 0
SQUARED: Final = 1
SHAPES: Final = {"linear": LINEAR, "squared": SQUARED}

CONST: Final = 0
SHORT_WIDE: Final = 1
LONG_NARROW: Final = 2
SMALL_AREA: Final = 3
LARGE_AREA: Final = 4
WEIGHTS: Final = {
    "const": CONST,
    "short_wide": SHORT_WIDE,
    "long_narrow": LONG_NARROW,
    "small_area": SMALL_AREA,
    "large_area": LARGE_AREA,
}

SMALLEST_WEIGHT: Final = 0.1
_LN10: Final = math.log(10.0)


def basis_size(features: int) -> int:
    """Number of terms: 231 for 20 features."""
    return 1 + features + features * (features + 1) // 2


@part
def expand(features: Floats, basis: Floats) -> None:
    """Write 1, x_i, then x_i x_l for i <= l, into ``basis``."""
    basis[0] = 1.0
    term = 1
    for i in range(features.size):
        basis[term] = features[i]
        term += 1
    for i in range(features.size):
        for j in range(i, features.size):
            basis[term] = features[i] * features[j]
            term += 1


@part
def rescale_weights(inputs: Floats, scales: Floats, weights: Floats) -> None:
    """Shrink the weights of inputs that are larger than ever before, in place."""
    for i in range(inputs.size):
        size = abs(inputs[i])
        weights[i] *= scales[i] / size if size > scales[i] else 1.0


@part
def raise_scales(inputs: Floats, scales: Floats) -> None:
    """Remember the largest size of each input, in place."""
    for i in range(inputs.size):
        scales[i] = max(scales[i], abs(inputs[i]))


@part
def inner_product(inputs: Floats, weights: Floats) -> float:
    """The model's output."""
    total = 0.0
    for i in range(inputs.size):
        total += inputs[i] * weights[i]
    return total


@part
def safe_inner_product(inputs: Floats, scales: Floats, weights: Floats) -> float:
    """The model's output as it would be after ``rescale_weights``, without changing anything.

    An input never seen so large contributes what its largest predecessor would.
    """
    total = 0.0
    for i in range(inputs.size):
        size = abs(inputs[i])
        share = scales[i] / size if size > scales[i] else 1.0
        total += inputs[i] * (weights[i] * share)
    return total


@part
def normalised_square(inputs: Floats, scales: Floats) -> float:
    """Sum of squares of the inputs in units of their scales; inputs never seen count nothing."""
    total = 0.0
    for i in range(inputs.size):
        share = inputs[i] / scales[i] if scales[i] > 0.0 else 0.0
        total += share * share
    return total


@part
def descend(
    inputs: Floats,
    scales: Floats,
    weights: Floats,
    squares: Floats,
    slope: float,
    l2: float,
    rate: float,
) -> None:
    """Take one step against the gradient, in place.

    Parameters
    ----------
    inputs, scales, weights
        The example, the largest size of each input including it, and what is learned; updated.
    squares
        Sums of squared gradients; updated.
    slope
        Derivative of the example's loss with respect to the output.
    l2
        Strength of the pull of every weight towards zero.
    rate
        eta sqrt(examples / sum of ``normalised_square``).
    """
    # Inputs never seen have a scale of 0: their length is 0, and they stay where they are.
    for i in range(inputs.size):
        gradient = slope * inputs[i] + l2 * weights[i]
        squares[i] += gradient * gradient
        length = scales[i] * math.sqrt(squares[i])
        weights[i] -= rate * gradient / length if length > 0.0 else 0.0


@part
def job_weight(kind: int, cpus: float, runtime: float) -> float:
    """Weight of a job's error, at least 0.1, lest the loss lose its convexity.

    ``kind`` is one of ``WEIGHTS``; cpus asked for, and seconds really run (at least one counts).
    The published code has no least weight: with natural logarithms long jobs get negative ones.
    """
    seconds = max(runtime, SHORTEST_SECONDS)
    weight = 1.0
    if kind == SHORT_WIDE:
        weight = 5.0 + math.log(cpus / seconds) / _LN10
    elif kind == LONG_NARROW:
        weight = 5.0 + math.log(seconds / cpus) / _LN10
    elif kind == SMALL_AREA:
        weight = 11.0 - math.log(cpus * seconds) / _LN10
    elif kind == LARGE_AREA:
        weight = math.log(cpus * seconds) / _LN10
    return max(weight, SMALLEST_WEIGHT)


@part
def error_slope(error: float, over: int, under: int) -> float:
    """Derivative of the unweighted loss of ``error`` = predicted - real runtime (seconds).

    With respect to the prediction; 0 where there is no error. ``over`` is the side of predictions
    above the runtime.
    """
    if error > 0.0:
        return 2.0 * error if over == SQUARED else 1.0
    if error < 0.0:
        return 2.0 * error if under == SQUARED else -1.0
    return 0.0


@part
def pinball_slope(error: float, level: float) -> float:
    """Derivative of the pinball loss, whose minimum is the quantile at ``level``."""
    if error > 0.0:
        return 1.0 - level
    if error < 0.0:
        return -level
    return 0.0
