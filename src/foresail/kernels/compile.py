"""How kernels are compiled: to machine code cached on disk, without fast-math, typed throughout."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

import numba
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., Any])

_BARE: Final[Mapping[str, Any]] = MappingProxyType({"error_model": "numpy", "_nrt": False})
"""Options of what is compiled without Numba's runtime, which counts references to arrays."""


_UNWRAPPED: Final[Mapping[str, Any]] = MappingProxyType(
    {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
)
"""Options of what only other kernels call."""


def kernel(function: Function) -> Function:
    """Compile on the first call for the argument types seen, and cache the result on disk."""
    return cast("Function", numba.njit(cache=True, error_model="numpy")(function))


def bare_kernel(function: Function) -> Function:
    """As ``kernel``, for a function that makes no arrays: its arguments are not reference-counted.

    Its caller holds them. Counting them cost a replay up to a third of its time.
    """
    return cast("Function", numba.njit(cache=True, **_BARE)(function))


def unlocked_kernel(function: Function) -> Function:
    """As ``bare_kernel``, and other Python threads run meanwhile."""
    return cast("Function", numba.njit(cache=True, nogil=True, **_BARE)(function))


def part(function: Function) -> Function:
    """A part of kernels, which Python itself never calls: half as long to compile as a kernel.

    It makes no arrays (see ``bare_kernel``), and has no wrapper for calls from Python.
    """
    return cast("Function", numba.njit(cache=True, **_BARE, **_UNWRAPPED)(function))


def making_part(function: Function) -> Function:
    """As ``part``, for one that makes arrays."""
    return cast("Function", numba.njit(cache=True, error_model="numpy", **_UNWRAPPED)(function))


def merged_part(function: Function) -> Function:
    """As ``part``, for one with a single caller and many arrays: its machine code goes there.

    A call would copy every array's header.
    """
    return cast("Function", numba.njit(forceinline=True, **_BARE, **_UNWRAPPED)(function))


def inlined(function: Function) -> Function:
    """A part of one kernel, written into it where it is called.

    For a loop over records of many arrays: a call would copy every array's header.
    """
    return cast("Function", numba.njit(inline="always", error_model="numpy")(function))


def step(signature: Any) -> Callable[[Function], Function]:
    """Compile at import against one of ``foresail.kernels.signatures``: usable as a pointer."""

    def compile_step(function: Function) -> Function:
        return cast("Function", numba.njit(signature, cache=True, error_model="numpy")(function))

    return compile_step


def bare_step(signature: Any) -> Callable[[Function], Function]:
    """As ``step``, for a function that makes no arrays: see ``bare_kernel``."""

    def compile_step(function: Function) -> Function:
        return cast("Function", numba.njit(signature, cache=True, **_BARE)(function))

    return compile_step


@intrinsic
def borrowed(_context: Any, record: Any) -> Any:
    """The same named tuple, its arrays no longer reference-counted (for use inside kernels).

    A replay touches some thirty arrays per event; counting references to them atomically costs
    several times the work itself. The caller of the kernel holds the arrays, so none can vanish.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        fields = []
        for index, field_type in enumerate(kind.types):
            value = builder.extract_value(arguments[0], index)
            if isinstance(field_type, types.Array):
                array = context.make_array(field_type)(context, builder, value=value)
                array.meminfo = cgutils.get_null_value(array.meminfo.type)
                array.parent = cgutils.get_null_value(array.parent.type)
                value = array._getvalue()
            fields.append(value)
        return context.make_tuple(builder, signature.return_type, fields)

    return record(record), generate
