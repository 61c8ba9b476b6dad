"""Calling a compiled step by its address, from inside another step.

A predictor made of other predictors (``combined``, ``calibrated``) keeps the addresses of its
members' steps in its own model, so that any registered predictor can be a member without
compiling anything anew. An address is below 2^53 on every platform that Numba supports, and so
exactly a float64. The steps' modules keep the machine code alive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from numba.core import types
from numba.extending import intrinsic

from foresail.kernels.signatures import BELIEF_STEP, PREDICTOR_STEP


def step_address(step: Any, signature: Any) -> float:
    """Where the machine code of a step is; it holds until the process ends.

    Parameters
    ----------
    step
        A compiled function.
    signature
        What it was compiled against, one of ``foresail.kernels.signatures``.

    Raises
    ------
    OverflowError
        If the platform's addresses do not fit a float64.
    """
    compiled = step.get_compile_result(signature)
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
        status, _ = context.call_conv.call_function(
            builder, pointer, signature.return_type, signature.args, arguments[1:]
        )
        with builder.if_then(status.is_error, likely=False):
            context.call_conv.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return generate


def _predictor_step_call(  # the names are those of the call's arguments
    _context: Any,
    address: Any,
    slot: Any,
    now: Any,
    runtime: Any,
    specs: Any,
    model: Any,
    users: Any,
    jobs: Any,
    summaries: Any,
) -> Any:
    del address, slot, now, runtime, specs, model, users, jobs, summaries
    return types.void(types.float64, *PREDICTOR_STEP.args), _call(PREDICTOR_STEP)


def _belief_step_call(
    _context: Any,
    address: Any,
    slot: Any,
    specs: Any,
    model: Any,
    users: Any,
    jobs: Any,
    summary: Any,
    belief: Any,
) -> Any:
    del address, slot, specs, model, users, jobs, summary, belief
    return types.void(types.float64, *BELIEF_STEP.args), _call(BELIEF_STEP)


call_predictor_step: Final[Any] = intrinsic(_predictor_step_call)
"""In kernels: call the ``PREDICTOR_STEP`` at an address, with its arguments behind the address."""

call_belief_step: Final[Any] = intrinsic(_belief_step_call)
"""In kernels: call the ``BELIEF_STEP`` at an address, with its arguments behind the address."""
