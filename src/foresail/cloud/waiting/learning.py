"""Waits learned from the first third of a log: examples, and a linear model of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from foresail.cloud.waiting.kernels.waiting import EXPIRED, FIXED
from foresail.cloud.waiting.kernels.waiting_choice import WaitModel, without_trees
from foresail.cloud.waiting.simulating import Simulated, WaitingPolicy
from foresail.model.distribution import Booleans, Floats
from foresail.model.errors import InputError

_BEYOND: Final = 1.5


class WaitRows(NamedTuple):
    """Examples for models of waits: a row of features and a wait (s) per job.

    ``cut``: the job left when its patience was over; its wait is then taken to be half as long
    again, for it would have been longer than that patience.
    """

    features: Floats
    wait_seconds: Floats
    cut: Booleans


def wait_rows(simulated: Simulated, policy: WaitingPolicy) -> WaitRows:
    """Examples from a simulation that kept features, in which no wait was predicted.

    Jobs that were rented a machine on arrival or tried say nothing of the queue, and are left out.

    Raises ``InputError`` if no features were kept.
    """
    if simulated.features.shape[0] == 0:
        raise InputError("no features were kept", expected="a simulation with features_every")
    every = slice(None, None, simulated.features_every)
    place = simulated.place[every]
    waited = simulated.start_seconds[every] - simulated.columns.submit[every]
    cut = place == EXPIRED
    known = cut | (place == FIXED)
    waited = np.where(cut, _BEYOND * policy.rules.patience_seconds, waited)
    return WaitRows(simulated.features[known], waited[known], cut[known])


def linear_waits(rows: WaitRows) -> WaitModel:
    """Least squares on the features."""
    inputs = np.column_stack((rows.features, np.ones(rows.wait_seconds.size)))
    scale = np.maximum(np.abs(inputs).max(axis=0), 1e-12)
    coefficients = np.linalg.lstsq(inputs / scale, rows.wait_seconds, rcond=None)[0] / scale
    return without_trees(coefficients[-1:].copy(), coefficients[:-1].copy())


LEARNED_SHARE: Final = 1.0 / 3.0
FEWEST_WAITS: Final = 100
"""To learn from: of fewer, a model says nothing."""
_EXAMPLES: Final = 30_000


def first_predicted(jobs: int) -> int:
    """Place of the first job after the first third, which teaches: its wait can be predicted."""
    return math.ceil(LEARNED_SHARE * jobs)


def waits_over(submit_seconds: Floats, waiting_seconds: float) -> int:
    """Number of first jobs that have surely waited out a limit by the end of the first third.

    ``submit_seconds`` are those of a log, in order; shape (jobs,).
    """
    last = submit_seconds.size - 1
    end = submit_seconds[min(first_predicted(submit_seconds.size), last)]
    return int(np.searchsorted(submit_seconds, end - waiting_seconds))


def observed_waits(
    submit_seconds: Floats,
    waiting_seconds: float,
    simulated: Callable[[int, int], tuple[Simulated, WaitingPolicy]],
) -> WaitRows | None:
    """Examples from jobs of the first third whose waits were over by its end, however they ended.

    Parameters
    ----------
    submit_seconds, waiting_seconds
        As for ``waits_over``.
    simulated
        Simulates the first so many jobs, all of which wait up to the limit, and keeps the features
        of every so-manieth.

    Returns
    -------
    WaitRows or None
        None where too few waits were over to learn from.
    """
    many = waits_over(submit_seconds, waiting_seconds)
    if many < FEWEST_WAITS:
        return None
    rows = wait_rows(*simulated(many, math.ceil(many / _EXAMPLES)))
    return rows if rows.wait_seconds.size >= FEWEST_WAITS else None
