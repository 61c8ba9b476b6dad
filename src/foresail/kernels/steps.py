"""Steps of policies: what each is handed, as one record, and calls of them by address.

A step is compiled once, when a policy first asks for it, to machine code that is cached on disk.
What runs steps (the replay, an evaluation, a predictor made of other predictors) holds their
addresses in an array, so that a new predictor, correction or scheduler needs no change to it and no
new compilation of it. An address is below 2^53 on every platform that Numba supports, and so
exactly a float64. The steps' modules keep the machine code alive.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numba import types
from numba.extending import intrinsic

from foresail.kernels.borrowed import arrays_at
from foresail.kernels.compile import Floats, Integers, Step, bare_kernel
from foresail.kernels.expression import OrderProgram

_VECTOR = types.float64[::1]
_INDICES = types.int64[::1]
_MATRIX = types.float64[:, ::1]
_TABLE = types.float64[::1, :]


class PredictorInputs(NamedTuple):
    """Inputs of a predictor's step, and the arrays that it reads and writes.

    ``slot`` is the job's row in ``specs`` (``foresail.kernels.columns``), ``jobs`` and
    ``summaries``; ``runtime`` (seconds) is that of the attempt that ended, nan when predicting or
    starting. ``model`` is state of a fixed size, ``users`` has a row per user code, ``jobs`` a row
    per slot; a prediction writes row ``slot`` of ``summaries``.
    """

    slot: int
    now: float
    runtime: float
    specs: Floats
    model: Floats
    users: Floats
    jobs: Floats
    summaries: Floats


PREDICTOR_INPUTS = types.NamedTuple(
    (types.int64, types.float64, types.float64, _MATRIX, _VECTOR, _MATRIX, _MATRIX, _MATRIX),
    PredictorInputs,
)

PREDICTOR_STEP = types.void(PREDICTOR_INPUTS)
"""A predictor's reaction to one event: predict at submission, note a start, learn from an end."""

BELIEF_STEP = types.void(
    PREDICTOR_INPUTS,
    _VECTOR,  # filled with the quantiles at foresail.kernels.columns.BELIEF_LEVELS
)
"""The whole belief that the last prediction step of this slot arrived at; changes nothing else."""


class CorrectionInputs(NamedTuple):
    """A running job whose estimate has expired.

    Seconds: the ``initial`` estimate, the ``current`` one (the time it has run), the ``requested``
    (infinite where not given); how many ``corrections`` there were, the job's row of ``summaries``
    and the rule's ``parameters``.
    """

    initial: float
    current: float
    requested: float
    corrections: int
    summary: Floats
    parameters: Floats


CORRECTION_INPUTS = types.NamedTuple(
    (types.float64, types.float64, types.float64, types.int64, _VECTOR, _VECTOR), CorrectionInputs
)

CORRECTION_STEP = types.float64(CORRECTION_INPUTS)
"""The next estimate of a running job whose current one has expired."""


class PassInputs(NamedTuple):
    """Inputs of one scheduling pass."""

    now: float
    """Seconds."""
    free: float
    """Cpus that are free."""
    waiting: int
    releases: int
    """Number of rows of ``order`` (gaps among them) and of ``release`` that count."""
    order: Floats
    """The waiting jobs in queue order, in columns QUEUE_KEY and QUEUE, and in backfill order
    (columns of ``foresail.kernels.waiting_jobs``)."""
    candidates: int
    """The column of ``order`` that holds the slots in backfill order; it may be QUEUE."""
    first: int
    """Number of jobs in front of both orders that go before all others: they are due."""
    guarded: int
    """The slot that is due next, or -1: it is not to be put off beyond LATEST."""
    room_came: int
    """1 if room may have come since the pass before: a job has ended, or a node has come."""
    jobs: Floats
    """A row per slot: WIDTH (cpus), SUBMITTED, PLANNED, LIKELY, DUE, LATEST (seconds) and
    RESERVATION, which is the planned start, nan without one, -inf once started."""
    release: Floats
    """Expected ends of running jobs, ascending and after now, cpus released then, and by whom;
    there is room for ``waiting`` more rows."""
    parameters: Floats
    """The scheduler's, and as much room to work in as it has put behind them."""
    starts: Integers
    """Filled with the slots to start now, in order."""
    begin: int
    """Number of gaps in front of the queue order, at least."""
    held_first: float
    """Cpus that running jobs hold which were due when they started."""


PASS_INPUTS = types.NamedTuple(
    (
        types.float64,
        types.float64,
        types.int64,
        types.int64,
        _TABLE,
        types.int64,
        types.int64,
        types.int64,
        types.int64,
        _TABLE,
        _MATRIX,
        _VECTOR,
        _INDICES,
        types.int64,
        types.float64,
    ),
    PassInputs,
)

PASS_STEP = types.int64(PASS_INPUTS)
"""One scheduling pass; returns how many slots it put into ``starts``.

The pass enters its starts into ``release`` and marks them in RESERVATION; what it writes there for
jobs that stay is the plan, and is handed to the next pass unchanged.
"""


class PredictorState(NamedTuple):
    """The arrays a predictor's steps read and write."""

    model: Floats
    users: Floats
    jobs: Floats


class PredictorSteps(NamedTuple):
    """A predictor as compiled steps.

    ``refresh`` makes the belief about a waiting job anew, after a job of the same user has ended,
    and leaves all that ``observe`` will learn from as ``predict`` wrote it;
    None: predictions stay as they were at submission. ``belief`` is a ``BELIEF_STEP``, the others
    are ``PREDICTOR_STEP``s; None: the belief is the point in the summary row.
    """

    predict: Step
    started: Step
    observe: Step
    refresh: Step | None = None
    belief: Step | None = None


@runtime_checkable
class CompiledPredictor(Protocol):
    """A predictor that can also run inside the compiled replay."""

    def compiled(
        self, specs: Floats, features: tuple[str, ...] = ()
    ) -> tuple[PredictorSteps, PredictorState]:
        """Steps and fresh state for jobs whose slots are the rows of ``specs``.

        ``features`` names the columns of ``specs`` behind the first ``SPEC_COLUMNS``.
        """


@runtime_checkable
class ReportsExpert(Protocol):
    """A compiled predictor that chooses among experts and says which one it followed.

    ``jobs[slot, expert_column]`` of its state is the place in ``expert_names`` of the expert that
    the last prediction of the slot came from, or -1 for none.
    """

    expert_names: tuple[str, ...]
    expert_column: int


@runtime_checkable
class CompiledCorrection(Protocol):
    """A correction that can also run inside the compiled replay."""

    def compiled(self) -> tuple[Step, Floats]:
        """A ``CORRECTION_STEP`` and its parameters."""


class Shares(NamedTuple):
    """Due time of a job, in shares of the longest wait under EASY, known at its turn there.

    At its turn, but not before it has waited so long (``patience``); so long (``bound``), or until
    it is due, it may wait at most by requests.
    """

    patience: float
    bound: float


class CompiledScheduler(NamedTuple):
    """A scheduler as a compiled pass, its parameters and its orders.

    ``queue`` orders the waiting jobs; ``candidates`` orders them for backfilling; ``plan`` is the
    runtime (seconds) planned with; jobs that have waited ``age_limit_seconds`` go first, or those
    that EASY would have come to before (``shares``; None: it is not asked). A pass makes
    reservations for at most so many jobs as ``most_reserved`` says.
    """

    one_pass: Step
    parameters: Floats
    queue: OrderProgram
    candidates: OrderProgram
    plan: OrderProgram
    age_limit_seconds: float
    most_reserved: float = math.inf
    shares: Shares | None = None


@cache
def step_address(step: Step) -> float:
    """Return the address of a step's machine code, compiled now if it was not.

    The address holds until the process ends.

    Raises ``OverflowError`` if the platform's addresses do not fit a float64.
    """
    step.dispatcher.compile(step.signature)
    compiled = step.dispatcher.get_compile_result(step.signature)
    address = int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))
    if int(float(address)) != address:
        raise OverflowError(f"the address {address:#x} is no float64")
    return float(address)


def _call(signature: Any) -> Callable[..., Any]:
    """Code that calls what is at the address in the first argument, with the other arguments."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        address = builder.fptoui(arguments[0], context.get_value_type(types.uintp))
        kind = context.call_conv.get_function_type(signature.return_type, signature.args)
        pointer = builder.inttoptr(address, kind.as_pointer())
        status, result = context.call_conv.call_function(
            builder, pointer, signature.return_type, signature.args, arguments[1:]
        )
        with builder.if_then(status.is_error, likely=False):
            context.call_conv.return_status_propagate(builder, status)
        return context.get_dummy_value() if signature.return_type == types.void else result

    return generate


def step_caller(signature: Any) -> Any:
    """In kernels: a function that calls a step of this signature, by address and record."""

    def one_record(_context: Any, address: Any, inputs: Any) -> Any:
        del address, inputs
        return signature.return_type(types.float64, *signature.args), _call(signature)

    return intrinsic(one_record)


def _belief_step_call(_context: Any, address: Any, inputs: Any, belief: Any) -> Any:
    del address, inputs, belief
    return types.void(types.float64, *BELIEF_STEP.args), _call(BELIEF_STEP)


call_predictor_step: Final[Any] = step_caller(PREDICTOR_STEP)
"""In kernels: call the ``PREDICTOR_STEP`` at an address, with a ``PredictorInputs``."""

call_belief_step: Final[Any] = intrinsic(_belief_step_call)
"""In kernels: call the ``BELIEF_STEP`` at an address, with a ``PredictorInputs`` and a row."""

call_correction_step: Final[Any] = step_caller(CORRECTION_STEP)
"""In kernels: call the ``CORRECTION_STEP`` at an address, with a ``CorrectionInputs``."""

call_pass_step: Final[Any] = step_caller(PASS_STEP)
"""In kernels: call the ``PASS_STEP`` at an address, with a ``PassInputs``."""


_predictor_arrays_at: Final[Any] = arrays_at(types.Tuple(PREDICTOR_INPUTS.types[3:]))


@bare_kernel
def take_predictor_step(
    address: float, slots: Integers, now: float, runtime: float, places: Floats
) -> None:
    """Let a predictor take the step at an address for each slot; see ``PredictorInputs``.

    ``places`` describes its arrays, in that order (``foresail.kernels.borrowed.Places``).
    """
    specs, model, users, jobs, summaries = _predictor_arrays_at(places, 0)
    for slot in slots:
        inputs = PredictorInputs(slot, now, runtime, specs, model, users, jobs, summaries)
        call_predictor_step(address, inputs)


@bare_kernel
def fill_belief(
    address: float,
    slot: int,
    specs: Floats,
    model: Floats,
    users: Floats,
    jobs: Floats,
    summaries: Floats,
    belief: Floats,
) -> None:
    """Fill a row with the belief about a slot that the step at an address gives."""
    inputs = PredictorInputs(slot, np.nan, np.nan, specs, model, users, jobs, summaries)
    call_belief_step(address, inputs, belief)


@bare_kernel
def corrected_estimate(
    address: float,
    initial: float,
    current: float,
    requested: float,
    corrections: int,
    summary: Floats,
    parameters: Floats,
) -> float:
    """The next estimate (seconds) by the step at an address; see ``CorrectionInputs``."""
    inputs = CorrectionInputs(initial, current, requested, corrections, summary, parameters)
    return float(call_correction_step(address, inputs))
