"""Calling a compiled step by its address, from inside a kernel and from Python.

What runs steps (the replay, an evaluation, a predictor made of other predictors) holds their
addresses in an array, so that any registered policy can be run without compiling anything anew. An
address is below 2^53 on every platform that Numba supports, and so exactly a float64. The steps'
modules keep the machine code alive.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np
from numba.core import types
from numba.extending import intrinsic

from foresail.kernels.borrowed import arrays_at
from foresail.kernels.compile import Floats, Integers, Step, bare_kernel
from foresail.kernels.signatures import (
    BELIEF_STEP,
    CORRECTION_STEP,
    PASS_STEP,
    PREDICTOR_INPUTS,
    PREDICTOR_STEP,
    CorrectionInputs,
    PredictorInputs,
)


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
