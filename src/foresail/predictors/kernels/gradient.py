"""Normalised adaptive gradient descent: learning a linear model whose inputs have any scale.

Source: Ross, Mineiro, Langford (UAI 2013); paper 004 section 2.4.2; spec section 7. One example
takes, in this order: ``rescale_weights`` (per weight vector), ``raise_scales``, ``inner_product``,
``normalised_square`` and ``descend``. Weight vectors that learn from the same inputs share scales.
All arrays have one entry per input.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import part


@part
def rescale_weights(
    inputs: NDArray[np.float64], scales: NDArray[np.float64], weights: NDArray[np.float64]
) -> None:
    """Shrink the weights of inputs that are larger than ever before, in place."""
    for i in range(inputs.size):
        size = abs(inputs[i])
        weights[i] *= scales[i] / size if size > scales[i] else 1.0


@part
def raise_scales(inputs: NDArray[np.float64], scales: NDArray[np.float64]) -> None:
    """Remember the largest size of each input, in place."""
    for i in range(inputs.size):
        scales[i] = max(scales[i], abs(inputs[i]))


@part
def inner_product(inputs: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """The model's output."""
    total = 0.0
    for i in range(inputs.size):
        total += inputs[i] * weights[i]
    return total


@part
def safe_inner_product(
    inputs: NDArray[np.float64], scales: NDArray[np.float64], weights: NDArray[np.float64]
) -> float:
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
def normalised_square(inputs: NDArray[np.float64], scales: NDArray[np.float64]) -> float:
    """Sum of squares of the inputs in units of their scales; inputs never seen count nothing."""
    total = 0.0
    for i in range(inputs.size):
        share = inputs[i] / scales[i] if scales[i] > 0.0 else 0.0
        total += share * share
    return total


@part
def descend(
    inputs: NDArray[np.float64],
    scales: NDArray[np.float64],
    weights: NDArray[np.float64],
    squares: NDArray[np.float64],
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
    for i in range(inputs.size):
        gradient = slope * inputs[i] + l2 * weights[i]
        squares[i] += gradient * gradient
        length = scales[i] * math.sqrt(squares[i])
        weights[i] -= rate * gradient / length if length > 0.0 else 0.0
