"""One predictor, two callers: compiled steps as the object that the event loop asks.

How to add a predictor that also runs in the compiled replay, in one file here (and its kernels in
``foresail.predictors.kernels``):

1. Write ``predict``, ``started`` and ``observe`` as functions of one record, ``PredictorInputs``,
   marked ``@bare_step(PREDICTOR_STEP)``; ``kernels.request.ignore`` stands for a step that does
   nothing. They keep what they learn in three arrays: ``inputs.model`` (a fixed size of your
   choice, with the parameters in front), ``inputs.users`` (a row per user, zeros at first; find it
   with ``kernels.request.user_row``) and ``inputs.jobs`` (a row per slot; slots are used again, so
   ``predict`` writes whatever the later steps read). ``predict`` fills the job's row of
   ``inputs.summaries`` with a function of ``foresail.distributions.kernels.summary``. An end that
   teaches nothing (the attempt was preempted, lost or cancelled) arrives with a runtime of nan:
   only forget that the job runs. Functions that the steps call are marked ``@part``. Neither makes
   arrays; for a few numbers there is ``foresail.kernels.borrowed.room``. (A step that must make
   some is marked ``@step``, what it calls ``@making_part``; a ``@part`` must not return an array to
   such.)
2. Derive from ``SteppedPredictor``, hand it the steps and the layout, and register it. Where the
   belief is more than a point, override ``_belief`` and build the distribution from the job's row;
   its summary must be the row that ``predict`` wrote (``tests/predictors`` checks every registered
   predictor for that).

``src/foresail/predictors/recent.py`` is the shortest complete example.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from struct import Struct
from typing import Any, Final

import numpy as np

from foresail.distributions.basic import Point
from foresail.kernels.borrowed import Places
from foresail.kernels.columns import CODED, PREDICTED, SPEC_COLUMNS, SUBMIT, SUMMARY_COLUMNS, USER
from foresail.kernels.compile import Step
from foresail.kernels.steps import PredictorState, PredictorSteps, step_address, take_predictor_step
from foresail.model.distribution import Distribution, Floats, Integers
from foresail.model.event import REQUEUED, EndedBecause, Outcome
from foresail.model.job import Job
from foresail.model.protocols import Predictor
from foresail.predictors.kernels.request import ignore

"""What is assumed of a job when neither its limit nor any runtime of its user is known."""

_TEACHES_NOTHING: Final = frozenset({*REQUEUED, EndedBecause.CANCELLED})
_FIRST_ROWS: Final = 64
_SPECIFIED: Final = Struct(f"={SPEC_COLUMNS}d")
"""The columns of a specification row, written at once."""


@dataclass(frozen=True)
class Layout:
    """The shapes of a predictor's state: the model as it is at first, and the widths of rows."""

    model: Floats
    """The model's first numbers."""
    user_columns: int
    job_columns: int = 1
    """Widths of the rows per user and per slot."""
    model_size: int | None = None
    """Length of the whole model, zeros behind ``model``; that of ``model`` if not given. What is
    never written there takes no memory."""
    features: tuple[str, ...] = ()
    """Columns of the source that the steps read, by name: the object writes their codes into
    specification rows from SPEC_COLUMNS on."""


@dataclass(frozen=True)
class PredictorSnapshot:
    """All that a predictor knows at some moment."""

    names: dict[int, list[str]]
    """Per coded column of specification rows (by its number) the names, in order of their codes."""
    in_flight: tuple[str, ...]
    """Ids of the jobs that were predicted and have not ended."""
    slots: tuple[int, ...]
    """Their rows in ``jobs``, ``specs`` and ``summaries``, in order: state may point to them."""
    model: Floats
    """The model up to its last number in use."""
    users: Floats
    """Rows of users, one more than there are names of users."""
    jobs: Floats
    specs: Floats
    summaries: Floats
    """Rows of slots, up to the last in use."""


class SteppedPredictor(Predictor):
    """A predictor whose whole behaviour is three compiled steps over a state of arrays."""

    def __init__(self, steps: PredictorSteps, layout: Layout) -> None:
        self._steps = steps
        self._layout = layout
        self._coded = (*CODED, *range(SPEC_COLUMNS, SPEC_COLUMNS + len(layout.features)))
        self._specs = np.zeros((_FIRST_ROWS, SPEC_COLUMNS + len(layout.features)))
        self._summaries = np.zeros((_FIRST_ROWS, SUMMARY_COLUMNS))
        self.user_widths: tuple[int, ...] = (layout.user_columns,)
        self.job_widths: tuple[int, ...] = (layout.job_columns,)
        self._slots: dict[str, int] = {}
        self._free_slots: list[int] = list(range(_FIRST_ROWS))
        self._codes: dict[int, dict[str, int]] = {column: {} for column in self._coded}
        self._codes_of_names: dict[tuple[str | None, ...], tuple[int, ...]] = {}
        self._places: Places | None = None
        self._one = np.zeros(1, np.int64)

    @cached_property
    def _state(self) -> PredictorState:
        """Made when first needed: that of a composite needs its members' steps compiled."""
        return self._fresh_state(_FIRST_ROWS, _FIRST_ROWS)

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps that are to be compiled before it can be used."""
        return tuple(step for step in self._steps if step is not None)

    @property
    def source_features(self) -> tuple[str, ...]:
        """Columns of the source, beyond the canonical ones, that it looks at."""
        return self._layout.features

    def compiled(
        self,
        specs: Floats,
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

    def started(self, job: Job, now: float) -> None:
        """Note that an attempt of the job starts."""
        slot = self._slots.get(job.job_id)
        if slot is None:  # a further attempt: the first one's slot is gone
            slot = self._enter(job)
            self._take(self._steps.predict, slot, now, math.nan)
        self._take(self._steps.started, slot, now, math.nan)

    def not_started(self, job: Job, now: float) -> None:
        """Let a job wait again that has not begun: as after an attempt that teaches nothing."""
        slot = self._slots.get(job.job_id)
        if slot is not None:
            self._take(self._steps.observe, slot, now, math.nan)
            self._wait_again(job, slot, now)

    def _wait_again(self, job: Job, slot: int, now: float) -> None:
        """Predict a job anew where beliefs about jobs that wait are refreshed; else forget it."""
        if self._steps.refresh is not None:
            self._take(self._steps.predict, slot, now, math.nan)
            return
        del self._slots[job.job_id]
        self._free_slots.append(slot)

    def withdrawn(self, job: Job, now: float) -> None:
        """Forget a job that waited and will not run: it teaches nothing."""
        slot = self._slots.pop(job.job_id, None)
        if slot is not None:
            self._take(self._steps.observe, slot, now, math.nan)
            self._free_slots.append(slot)

    def observe(self, job: Job, outcome: Outcome) -> None:
        """Learn from an attempt that ended.

        One of an earlier run, never predicted here, is learned as if it had been submitted at its
        start. One that ran where it is slow teaches what it would have taken where it runs best.
        """
        teaches = outcome.ended_because not in _TEACHES_NOTHING
        self.learn(job, outcome, outcome.preferred_runtime_seconds if teaches else math.nan)

    def learn(self, job: Job, outcome: Outcome, value: float) -> None:
        """Learn like ``observe``, with a value instead of the runtime; nan: nothing.

        A job that is requeued is predicted anew where beliefs about jobs that wait are
        refreshed: that is from then on what it will teach by.
        """
        slot = self._slots.get(job.job_id)
        was_asked = slot is not None
        if slot is None:
            slot = self._enter(job)
            self._take(self._steps.predict, slot, outcome.start_seconds, math.nan)
        self._take(self._steps.observe, slot, outcome.end_seconds, value)
        if was_asked and outcome.ended_because in REQUEUED:
            self._wait_again(job, slot, outcome.end_seconds)
            return
        del self._slots[job.job_id]
        self._free_slots.append(slot)

    def snapshot(self) -> PredictorSnapshot:
        """All that it knows, for ``restore``."""
        rows = slice(1 + max(self._slots.values(), default=-1))
        return PredictorSnapshot(
            names={column: list(codes) for column, codes in self._codes.items()},
            in_flight=tuple(self._slots),
            slots=tuple(self._slots.values()),
            model=self._state.model[: self._model_used()].copy(),
            users=selected(self._state.users, slice(len(self._codes[USER]) + 1), self.user_widths),
            jobs=selected(self._state.jobs, rows, self.job_widths),
            specs=self._specs[rows].copy(),
            summaries=self._summaries[rows].copy(),
        )

    def restore(self, known: PredictorSnapshot) -> None:
        """Know what a snapshot of a predictor with the same parameters knows, and nothing else.

        Raises ``ValueError`` if the snapshot's arrays are not of this predictor's shapes.
        """
        fresh = self._fresh_state(_FIRST_ROWS, _FIRST_ROWS)
        rows = 1 + max(known.slots, default=-1)
        shapes = (
            len(known.in_flight) == len(set(known.in_flight)) == len(set(known.slots)),
            min(known.slots, default=0) >= 0,
            known.model.ndim == 1 and known.model.size <= fresh.model.size,
            known.users.shape == (len(known.names[USER]) + 1, fresh.users.shape[1]),
            known.jobs.shape == (rows, fresh.jobs.shape[1]),
            known.specs.shape == (rows, self._specs.shape[1]),
            known.summaries.shape == (rows, SUMMARY_COLUMNS),
            set(known.names) == set(self._coded),
        )
        if not all(shapes):
            raise ValueError("arrays of other shapes")
        slots = _FIRST_ROWS
        while slots < rows:
            slots *= 2
        fresh.model[: known.model.size] = known.model
        self._state = PredictorState(
            fresh.model,
            lengthened(known.users, max(_FIRST_ROWS, 2 * len(known.users)), self.user_widths),
            lengthened(known.jobs, slots, self.job_widths),
        )
        self._specs = lengthened(known.specs, slots, (known.specs.shape[1],))
        self._summaries = lengthened(known.summaries, slots, (SUMMARY_COLUMNS,))
        self._places = None
        self._slots = dict(zip(known.in_flight, known.slots, strict=True))
        self._free_slots = sorted(set(range(slots)) - set(known.slots))
        self._codes_of_names.clear()
        self._codes = {
            column: {name: code for code, name in enumerate(names)}
            for column, names in known.names.items()
        }

    def forget_in_flight(self) -> None:
        """Forget the jobs that were predicted and have not ended: they teach nothing."""
        for slot in self._slots.values():
            self._take(self._steps.observe, slot, float(self._specs[slot, SUBMIT]), math.nan)
        self._free_slots += self._slots.values()
        self._slots.clear()

    def _model_used(self) -> int:
        """Return how many of the model's numbers may be other than zero."""
        return self._state.model.size

    def _belief(self, slot: int) -> Distribution:
        """The distribution behind the summary row that ``predict`` wrote: here, a point."""
        return Point(float(self._summaries[slot, PREDICTED]))

    def _fresh_state(self, users: int, slots: int) -> PredictorState:
        begin = self._layout.model
        model = np.zeros(self._layout.model_size or begin.size)
        model[: begin.size] = begin
        return PredictorState(
            model,
            np.zeros((users, self._layout.user_columns)),
            np.zeros((slots, self._layout.job_columns)),
        )

    def _take(self, step: Step, slot: int, now: float, runtime: float) -> None:
        if step is not ignore:
            self._one[0] = slot
            self._take_all(step, self._one, now, runtime)

    def _take_all(self, step: Step, slots: Integers, now: float, runtime: float = math.nan) -> None:
        if self._places is None:
            self._places = Places(self._specs, *self._state, self._summaries)
        take_predictor_step(
            step_address(step), slots, float(now), float(runtime), self._places.numbers
        )

    def _enter(self, job: Job) -> int:
        """Slot of the job, with its specification row written."""
        slot = self._slots.get(job.job_id)
        if slot is None:
            if not self._free_slots:
                self._double_slots()
            slot = self._slots[job.job_id] = self._free_slots.pop()
        request = job.stages[0].request
        names = (job.user, job.group, job.queue, job.name, job.partition)
        codes = self._codes_of_names.get(names)
        if codes is None:
            codes = self._codes_of_names[names] = tuple(map(self._code, CODED, names))
        _SPECIFIED.pack_into(
            self._specs.data,
            slot * self._specs.strides[0],
            job.submit_seconds,
            job.cpus,
            math.inf if job.requested_seconds is None else job.requested_seconds,
            *codes,
            job.tasks,
            request.memory_bytes,
            request.gpus,
        )
        for column, feature in enumerate(self._layout.features, start=SPEC_COLUMNS):
            self._specs[slot, column] = self._code(column, job.attributes.get(feature))
        self._make_room_for_users()
        return slot

    def _code(self, column: int, name: str | None) -> int:
        if name is None:
            return -1
        codes = self._codes[column]
        return codes.setdefault(name, len(codes))

    def _codes_of(self, other: SteppedPredictor) -> Floats:
        """By column and code of another predictor the code here, made if there is none."""
        most = max(len(codes) for codes in other._codes.values())
        table = np.zeros((self._specs.shape[1], most + 1))
        for column, codes in other._codes.items():
            for name, code in codes.items():
                table[column, code] = self._code(column, name)
        self._make_room_for_users()
        return table

    def _make_room_for_users(self) -> None:
        """A row for each user that has a code, and one before them."""
        known = len(self._codes[USER])
        if known >= len(self._state.users):
            users = lengthened(self._state.users, 2 * known, self.user_widths)
            self._state = self._state._replace(users=users)
            self._places = None

    def _double_slots(self) -> None:
        known = len(self._specs)
        rows = 2 * known
        self._specs = lengthened(self._specs, rows, (self._specs.shape[1],))
        self._summaries = lengthened(self._summaries, rows, (SUMMARY_COLUMNS,))
        jobs = lengthened(self._state.jobs, rows, self.job_widths)
        self._state = self._state._replace(jobs=jobs)
        self._places = None
        self._free_slots = list(range(known, rows))


class RefreshingPredictor(SteppedPredictor):
    """One with a refresh step: what it believes of jobs that wait changes as others end."""

    def refreshed(self, job: Job, now: float) -> Distribution:
        """Belief about a job that still waits, from all that has ended meanwhile."""
        slot = self._slots.get(job.job_id)
        if slot is None:
            return self.predict(job, now)
        self._take(self._steps.refresh or self._steps.predict, slot, now, math.nan)
        return self._belief(slot)

    def all_refreshed(self, jobs: Sequence[Job], now: float) -> Sequence[Distribution]:
        """Beliefs about jobs that still wait, by one call; see ``refreshed``."""
        slots = [self._slots.get(job.job_id, -1) for job in jobs]
        if -1 in slots:
            return super().all_refreshed(jobs, now)
        step = self._steps.refresh or self._steps.predict
        self._take_all(step, np.array(slots, np.int64), now)
        return self._beliefs(slots)

    def _beliefs(self, slots: Sequence[int]) -> list[Distribution]:
        return [self._belief(slot) for slot in slots]


def joined(blocks: Sequence[Floats]) -> Floats:
    """Matrices of as many rows as one matrix of their summed columns."""
    columns = sum(block.shape[1] for block in blocks)
    flat = np.concatenate([block.reshape(-1) for block in blocks])
    return flat.reshape(len(blocks[0]), columns)


def split(matrix: Floats, widths: Sequence[int]) -> list[Floats]:
    """The blocks of a matrix, as views."""
    rows = len(matrix)
    ends = rows * np.cumsum(widths)
    parts = np.split(matrix.reshape(-1), ends[:-1])
    return [part.reshape(rows, width) for part, width in zip(parts, widths, strict=True)]


def selected(matrix: Floats, rows: slice | Sequence[int], widths: Sequence[int]) -> Floats:
    """Some rows of every block, copied."""
    which: Any = rows if isinstance(rows, slice) else np.asarray(rows, dtype=np.int64)
    return joined([block[which] for block in split(matrix, widths)])


def lengthened(matrix: Floats, rows: int, widths: Sequence[int]) -> Floats:
    """Every block with rows of zeros behind its own, ``rows`` in all."""
    longer = np.zeros((rows, matrix.shape[1]))  # rows that nobody writes take no memory
    for block, target in zip(split(matrix, widths), split(longer, widths), strict=True):
        target[: len(block)] = block
    return longer
