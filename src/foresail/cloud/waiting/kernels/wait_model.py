"""Waiting times from the state of a cluster: linear models and trees, as arrays."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import bare_kernel

CPU_USE: Final = 0
MEMORY_USE: Final = 1
RUNNING: Final = 2
WAITING: Final = 3
RUNNING_CORES: Final = 4
RUNNING_SECONDS: Final = 5
WAITING_CORES: Final = 6
WAITING_SECONDS: Final = 7
CORES: Final = 8
FEATURES: Final = 9
"""Shares of the fixed cores and memory in use; jobs that run and wait there; their mean cores and
their mean seconds so far; cores that the job asks for (table 7.1)."""

FEATURE_NAMES: Final = (
    "cluster-cpu-util",
    "cluster-mem-util",
    "runq-size",
    "waitq-size",
    "runq-mean-cpu",
    "runq-mean-time",
    "waitq-mean-cpu",
    "waitq-mean-time",
    "num-cores",
)


class WaitModel(NamedTuple):
    """Predicted quantiles of the wait in seconds, at the middles of equal parts of probability.

    Quantile ``k`` is ``base[k]``, plus ``weights`` times the features, plus the sum over the trees
    of ``leaves[leaf, k]``. Node ``i`` of a tree is a leaf if ``feature[i]`` is -1; else it goes to
    ``left[i]`` where the feature is at or below ``limit[i]``.
    """

    base: NDArray[np.float64]
    weights: NDArray[np.float64]
    roots: NDArray[np.int64]
    feature: NDArray[np.int32]
    limit: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    leaves: NDArray[np.float64]


def without_trees(base: NDArray[np.float64], weights: NDArray[np.float64]) -> WaitModel:
    """A linear model."""
    nodes, limits = np.empty(0, np.int32), np.empty(0)
    return WaitModel(
        base, weights, np.empty(0, np.int64), nodes, limits, nodes, nodes, np.empty((0, 1))
    )


@bare_kernel
def predict_wait(
    model: WaitModel, features: NDArray[np.float64], quantiles: NDArray[np.float64]
) -> None:
    """Fill in the quantiles: none below 0, each at least as long as the one before."""
    linear = 0.0
    for i in range(model.weights.size):
        linear += model.weights[i] * features[i]
    for k in range(quantiles.size):
        quantiles[k] = model.base[k] + linear
    for tree in range(model.roots.size):
        node = model.roots[tree]
        while model.feature[node] >= 0:
            if features[model.feature[node]] <= model.limit[node]:
                node = model.left[node]
            else:
                node = model.right[node]
        for k in range(quantiles.size):
            quantiles[k] += model.leaves[node, k]
    least = 0.0
    for k in range(quantiles.size):
        quantiles[k] = max(quantiles[k], least)
        least = quantiles[k]


@bare_kernel
def predict_waits(
    model: WaitModel, features: NDArray[np.float64], quantiles: NDArray[np.float64]
) -> None:
    """As ``predict_wait``, for a row of features and of quantiles per job."""
    for i in range(features.shape[0]):
        predict_wait(model, features[i], quantiles[i])
