"""The choice of a waiting policy for one job, and the model of its wait."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import Floats, Integers, bare_kernel, part

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

    base: Floats
    weights: Floats
    roots: Integers
    feature: NDArray[np.int32]
    limit: Floats
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    leaves: Floats


def without_trees(base: Floats, weights: Floats) -> WaitModel:
    """A linear model."""
    nodes, limits = np.empty(0, np.int32), np.empty(0)
    return WaitModel(
        base, weights, np.empty(0, np.int64), nodes, limits, nodes, nodes, np.empty((0, 1))
    )


@bare_kernel
def predict_wait(model: WaitModel, features: Floats, quantiles: Floats) -> None:
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


START: Final = 0
WAIT: Final = 1
RENT: Final = 2
SPECULATE: Final = 3

_HOUR: Final = 3600.0


class WaitingRules(NamedTuple):
    """Settings of a waiting policy."""

    short_seconds: float
    """A job that is believed to run for less is rented a machine; 0: none is."""
    waiting_seconds: float
    """A job that is believed to wait longer is rented one."""
    patience_seconds: float
    """A job that has waited for so long is rented one; 0: none waits."""
    speculation_seconds: float
    """A job that finds no fixed machine free is first tried on a rented one so long; 0: never."""
    conserving: int
    """1: a job that finds a fixed machine free takes it, whatever is believed of it."""
    weighing: int
    """1: a job is rented a machine where waiting is expected to cost more."""


class DelayCosts(NamedTuple):
    """Gains and losses of one job, in money per hour."""

    rent: float
    """Price of the rented machine it would get."""
    own: float
    """Cost of its share of a fixed machine beyond what is paid anyway: 0 for owned machines."""
    delay: float
    """Worth of an hour's delay of the job."""


@part
def mean_up_to(quantiles: Floats, limit: float) -> float:
    """Expected value of a wait that ends at a limit."""
    total = 0.0
    for k in range(quantiles.size):
        total += min(quantiles[k], limit)
    return total / quantiles.size


@part
def waiting_gain(
    delay_costs: DelayCosts, runtime_seconds: float, waits: Floats, patience_seconds: float
) -> float:
    """Money that a job is expected to save by waiting, up to its patience, instead of renting.

    Renting costs the price of the runtime. Waiting costs the delay, and in the end the fixed
    machine or, for a wait beyond the patience, the rented one after all.
    """
    late = 0
    for k in range(waits.size):
        if waits[k] > patience_seconds:
            late += 1
    in_time = 1.0 - late / waits.size
    saved = in_time * (delay_costs.rent - delay_costs.own) * runtime_seconds
    return (saved - delay_costs.delay * mean_up_to(waits, patience_seconds)) / _HOUR


@bare_kernel
def choose(
    rules: WaitingRules, delay_costs: DelayCosts, fits: bool, runtime_seconds: float, waits: Floats
) -> int:
    """Place of a job on arrival.

    ``fits``: a fixed machine is free for it. ``runtime_seconds`` is what is believed of its
    runtime, ``waits`` are quantiles of its believed wait (seconds, ascending).
    """
    if rules.conserving == 1 and fits:
        return START
    if runtime_seconds < rules.short_seconds:
        return RENT
    if rules.speculation_seconds > 0.0 and not fits:
        return SPECULATE
    return choose_again(rules, delay_costs, fits, runtime_seconds, waits)


@bare_kernel
def choose_again(
    rules: WaitingRules, delay_costs: DelayCosts, fits: bool, runtime_seconds: float, waits: Floats
) -> int:
    """Choose as ``choose``, for a job that turned out to be a long one when it was tried."""
    if rules.conserving == 1 and fits:
        return START
    if mean_up_to(waits, np.inf) > rules.waiting_seconds:
        return RENT
    if fits:
        return START
    if rules.patience_seconds <= 0.0:
        return RENT
    if (
        rules.weighing == 1
        and waiting_gain(delay_costs, runtime_seconds, waits, rules.patience_seconds) < 0.0
    ):
        return RENT
    return WAIT
