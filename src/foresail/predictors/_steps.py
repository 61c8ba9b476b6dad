"""One predictor, two callers: compiled steps as the object that the event loop asks.

How to add a predictor that also runs in the compiled replay, in one file here (and its kernels in
``foresail.kernels``):

1. Write ``predict``, ``started`` and ``observe`` as functions compiled with
   ``@step(PREDICTOR_STEP)``; ``foresail.kernels.request.ignore`` stands for a step that does
   nothing. They keep what they learn in three arrays: ``model`` (a fixed size of your choice, with
   the parameters in front), ``users`` (a row per user, zeros at first; find it with
   ``foresail.kernels.request.user_row``) and ``jobs`` (a row per slot; slots are used again, so
   ``predict`` writes whatever the later steps read). ``predict`` fills the job's summary row with a
   function of ``foresail.kernels.summary``. An end that teaches nothing (the attempt was preempted,
   lost or cancelled) arrives with a runtime of nan: only forget that the job runs.
2. Derive from ``SteppedPredictor``, hand it the steps and the layout, and register it. Where the
   belief is more than a point, override ``_belief`` and build the distribution from the job's row;
   its summary must be the row that ``predict`` wrote (``tests/predictors`` checks every registered
   predictor for that).

``src/foresail/predictors/recent.py`` is the shortest complete example.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.point import Point
from foresail.kernels.columns import (
    CODED,
    CPUS,
    GPUS,
    MEMORY,
    PREDICTED,
    REQUESTED,
    SPEC_COLUMNS,
    SUBMIT,
    SUMMARY_COLUMNS,
    TASKS,
    USER,
)
from foresail.kernels.signatures import PredictorState, PredictorSteps
from foresail.model.distribution import Distribution
from foresail.model.errors import InputError
from foresail.model.job import Job
from foresail.model.outcome import EndedBecause, Outcome

DAY_SECONDS: Final = 86_400.0
"""What is assumed of a job when neither its limit nor any runtime of its user is known."""

_TEACHES_NOTHING: Final = frozenset(
    {EndedBecause.PREEMPTED, EndedBecause.LOST, EndedBecause.CANCELLED}
)
_FIRST_ROWS: Final = 64


def require(holds: bool, field: str, value: object, expected: str) -> None:
    """Refuse a parameter's value.

    Raises
    ------
    InputError
        Unless ``holds``.
    """
    if not holds:
        raise InputError("parameter out of range", field=field, value=value, expected=expected)


@dataclass(frozen=True)
class Layout:
    """The shapes of a predictor's state: the model as it is at first, and the widths of rows."""

    model: NDArray[np.float64]
    user_columns: int
    job_columns: int = 1


class SteppedPredictor:
    """A predictor whose whole behaviour is three compiled steps over a state of arrays."""

    def __init__(self, steps: PredictorSteps, layout: Layout) -> None:
        self._steps = steps
        self._layout = layout
        self._specs = np.zeros((_FIRST_ROWS, SPEC_COLUMNS))
        self._summaries = np.zeros((_FIRST_ROWS, SUMMARY_COLUMNS))
        self._state = self._fresh_state(_FIRST_ROWS, _FIRST_ROWS)
        self._slots: dict[str, int] = {}
        self._free_slots: list[int] = list(range(_FIRST_ROWS))
        self._codes: dict[int, dict[str, int]] = {column: {} for column in CODED}

    def compiled(
        self,
        specs: NDArray[np.float64],
        features: tuple[str, ...] = (),  # noqa: ARG002 - for predictors that use them
    ) -> tuple[PredictorSteps, PredictorState]:
        """Steps and fresh state for a compiled replay.

        Parameters
        ----------
        specs
            Shape (jobs, SPEC_COLUMNS + features); a job's row is its slot.
        features
            Names of the columns behind the first SPEC_COLUMNS.
        """
        users = int(specs[:, USER].max(initial=-1.0)) + 2
        return self._steps, self._fresh_state(users, len(specs))

    def predict(self, job: Job, now: float) -> Distribution:
        """Belief about the runtime (seconds) of a job that has not started."""
        slot = self._enter(job)
        self._take(self._steps.predict, slot, now, math.nan)
        return self._belief(slot)

    def _believe_anew(self, job: Job, now: float) -> Distribution:
        """The refresh step as an object's method, for predictors that have one."""
        slot = self._enter(job)
        self._take(self._steps.refresh, slot, now, math.nan)
        return self._belief(slot)

    def started(self, job: Job, now: float) -> None:
        """Note that an attempt of the job starts."""
        slot = self._slots.get(job.job_id)
        if slot is None:  # a further attempt: the first one's slot is gone
            slot = self._enter(job)
            self._take(self._steps.predict, slot, now, math.nan)
        self._take(self._steps.started, slot, now, math.nan)

    def observe(self, job: Job, outcome: Outcome) -> None:
        """Learn from an attempt that ended.

        One of an earlier run, never predicted here, is learned as if it had been submitted at its
        start.
        """
        slot = self._slots.get(job.job_id)
        if slot is None:
            slot = self._enter(job)
            self._take(self._steps.predict, slot, outcome.start_seconds, math.nan)
        teaches = outcome.ended_because not in _TEACHES_NOTHING
        runtime = outcome.runtime_seconds if teaches else math.nan
        self._take(self._steps.observe, slot, outcome.end_seconds, runtime)
        del self._slots[job.job_id]
        self._free_slots.append(slot)

    def _belief(self, slot: int) -> Distribution:
        """The distribution behind the summary row that ``predict`` wrote: here, a point."""
        return Point(float(self._summaries[slot, PREDICTED]))

    def _fresh_state(self, users: int, slots: int) -> PredictorState:
        return PredictorState(
            self._layout.model.copy(),
            np.zeros((users, self._layout.user_columns)),
            np.zeros((slots, self._layout.job_columns)),
        )

    def _take(self, step: Any, slot: int, now: float, runtime: float) -> None:
        step(slot, now, runtime, self._specs, *self._state, self._summaries)

    def _enter(self, job: Job) -> int:
        """Slot of the job, with its specification row written."""
        slot = self._slots.get(job.job_id)
        if slot is None:
            if not self._free_slots:
                self._double_slots()
            slot = self._slots[job.job_id] = self._free_slots.pop()
        row = self._specs[slot]
        row[SUBMIT] = job.submit_seconds
        row[CPUS] = job.cpus
        row[REQUESTED] = math.inf if job.requested_seconds is None else job.requested_seconds
        request = job.stages[0].request
        row[TASKS] = job.tasks
        row[MEMORY] = request.memory_bytes
        row[GPUS] = request.gpus
        names = (job.user, job.group, job.queue, job.name, job.partition)
        for column, name in zip(CODED, names, strict=True):
            row[column] = self._code(column, name)
        if len(self._codes[USER]) >= len(self._state.users):
            self._state = self._state._replace(users=_doubled(self._state.users))
        return slot

    def _code(self, column: int, name: str | None) -> int:
        codes = self._codes[column]
        return -1 if name is None else codes.setdefault(name, len(codes))

    def _double_slots(self) -> None:
        known = len(self._specs)
        self._specs = _doubled(self._specs)
        self._summaries = _doubled(self._summaries)
        self._state = self._state._replace(jobs=_doubled(self._state.jobs))
        self._free_slots = list(range(known, 2 * known))


def _doubled(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate((rows, np.zeros_like(rows)))
