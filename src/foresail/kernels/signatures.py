"""The types of the steps that a compiled replay is handed as function pointers.

A policy's step is compiled once, to machine code that is cached on disk, against one of these
signatures. The replay calls it through a pointer, so that a new predictor, correction or scheduler
needs no change to the replay and no new compilation of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

_VECTOR = types.float64[::1]
_INDICES = types.int64[::1]
_MATRIX = types.float64[:, ::1]

PREDICTOR_STEP = types.void(
    types.int64,  # slot: row of the job in specs, jobs and summaries
    types.float64,  # now
    types.float64,  # runtime of the attempt that ended; nan when predicting or starting
    _MATRIX,  # specs (foresail.kernels.columns)
    _VECTOR,  # model: state of fixed size
    _MATRIX,  # users: state, a row per user code
    _MATRIX,  # jobs: state, a row per slot
    _MATRIX,  # summaries: the prediction step writes row ``slot``
)
"""A predictor's reaction to one event: predict at submission, note a start, learn from an end."""

CORRECTION_STEP = types.float64(
    types.float64,  # initial estimate
    types.float64,  # current estimate = elapsed seconds
    types.float64,  # requested seconds (infinite where not given)
    types.int64,  # corrections so far
    _VECTOR,  # summary row of the job
    _VECTOR,  # parameters
)
"""The next estimate of a running job whose current one has expired."""

PASS_STEP = types.int64(
    types.float64,  # now
    types.float64,  # free cpus
    _INDICES,  # queue: slots in queue order
    _INDICES,  # candidates: the same slots in backfill order
    types.int64,  # waiting: how many of them count
    _VECTOR,  # width by slot: cpus
    _VECTOR,  # planned runtime by slot: seconds
    _VECTOR,  # release_time: expected ends of running jobs, ascending
    _VECTOR,  # release_width: cpus released then
    types.int64,  # releases: how many of them count
    _VECTOR,  # reservation by slot: planned start or nan; kept from pass to pass
    _VECTOR,  # parameters
    _INDICES,  # starts: filled with the slots to start now, in order
)
"""One scheduling pass; returns how many slots it put into ``starts``."""


class PredictorState(NamedTuple):
    """The arrays a predictor's steps read and write."""

    model: NDArray[np.float64]
    users: NDArray[np.float64]
    jobs: NDArray[np.float64]


class PredictorSteps(NamedTuple):
    """A predictor as three compiled steps."""

    predict: Any
    started: Any
    observe: Any
