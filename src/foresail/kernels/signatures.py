"""The types of the steps that a compiled replay is handed as function pointers.

A policy's step is compiled once, to machine code that is cached on disk, against one of these
signatures. The replay calls it through a pointer, so that a new predictor, correction or scheduler
needs no change to the replay and no new compilation of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numba import types
from numpy.typing import NDArray

from foresail.kernels.expression import Program

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

BELIEF_STEP = types.void(
    types.int64,  # slot, as above
    _MATRIX,  # specs
    _VECTOR,  # model
    _MATRIX,  # users
    _MATRIX,  # jobs
    _VECTOR,  # summary row of the slot
    _VECTOR,  # filled with the quantiles at foresail.kernels.columns.BELIEF_LEVELS
)
"""The whole belief that the last prediction step of this slot arrived at; changes nothing else."""

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
    _INDICES,  # candidates: the same slots in backfill order (may be the same array)
    types.int64,  # waiting: how many of them count
    _VECTOR,  # width by slot: cpus
    _VECTOR,  # submit by slot: seconds
    _VECTOR,  # planned runtime by slot: seconds
    _VECTOR,  # likely runtime by slot: seconds
    _VECTOR,  # release_time: expected ends of running jobs, ascending, all after now
    _VECTOR,  # release_width: cpus released then
    _INDICES,  # release_slot: by whom
    types.int64,  # releases: how many of them count; there is room for ``waiting`` more
    _VECTOR,  # reservation by slot: planned start, nan without, -inf once started
    _VECTOR,  # parameters
    _INDICES,  # starts: filled with the slots to start now, in order
)
"""One scheduling pass; returns how many slots it put into ``starts``.

The pass enters its starts into the release arrays and marks them in ``reservation``; what it writes
there for jobs that stay is the plan, and is handed to the next pass unchanged.
"""


class PredictorState(NamedTuple):
    """The arrays a predictor's steps read and write."""

    model: NDArray[np.float64]
    users: NDArray[np.float64]
    jobs: NDArray[np.float64]


class PredictorSteps(NamedTuple):
    """A predictor as compiled steps.

    ``refresh`` makes the belief about a waiting job anew, after a job of the same user has ended;
    None: predictions stay as they were at submission. ``belief`` is a ``BELIEF_STEP``, the others
    are ``PREDICTOR_STEP``s; None: the belief is the point in the summary row.
    """

    predict: Any
    started: Any
    observe: Any
    refresh: Any | None = None
    belief: Any | None = None


@runtime_checkable
class CompiledPredictor(Protocol):
    """A predictor that can also run inside the compiled replay."""

    def compiled(
        self, specs: NDArray[np.float64], features: tuple[str, ...] = ()
    ) -> tuple[PredictorSteps, PredictorState]:
        """Steps and fresh state for jobs whose slots are the rows of ``specs``.

        ``features`` names the columns of ``specs`` behind the first ``SPEC_COLUMNS``.
        """
        ...


@runtime_checkable
class TellsExpert(Protocol):
    """A compiled predictor that chooses among experts and says which one it followed.

    ``jobs[slot, expert_column]`` of its state is the place in ``expert_names`` of the expert that
    the last prediction of the slot came from, or -1 for none.
    """

    expert_names: tuple[str, ...]
    expert_column: int


@runtime_checkable
class CompiledCorrection(Protocol):
    """A correction that can also run inside the compiled replay."""

    def compiled(self) -> tuple[Any, NDArray[np.float64]]:
        """A ``CORRECTION_STEP`` and its parameters."""
        ...


class CompiledScheduler(NamedTuple):
    """A scheduler as a compiled pass, its parameters and its orders.

    ``queue`` orders the waiting jobs; ``candidates`` orders them for backfilling; ``plan`` is the
    runtime (seconds) planned with and ``likely`` the one a bold pass may hope for; jobs that have
    waited ``age_limit_seconds`` go first, and the oldest of all after ``oldest_limit_seconds``.
    """

    one_pass: Any
    parameters: NDArray[np.float64]
    queue: Program
    candidates: Program
    plan: Program
    likely: Program
    age_limit_seconds: float
    oldest_limit_seconds: float
