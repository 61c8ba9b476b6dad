"""How kernels are compiled: to machine code cached on disk, without fast-math, typed throughout."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

import numba

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


def unlocked_entry(signature: Any) -> Callable[[Function], Function]:
    """As ``unlocked_kernel``, with its types: it can be compiled before it is called."""

    def mark(function: Function) -> Function:
        dispatcher = unlocked_kernel(function)
        dispatcher.step_signature = signature  # type: ignore[attr-defined]
        return dispatcher

    return mark


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


def step(signature: Any) -> Callable[[Function], Function]:
    """A part that is called by its address (``foresail.kernels.calling``).

    ``signature`` is one of ``foresail.kernels.signatures``. Nothing is compiled before somebody
    asks for the address: a policy compiles its own steps and no others.
    """

    def mark(function: Function) -> Function:
        dispatcher = making_part(function)
        dispatcher.step_signature = signature  # type: ignore[attr-defined]
        return dispatcher

    return mark


def bare_step(signature: Any) -> Callable[[Function], Function]:
    """As ``step``, for a function that makes no arrays: see ``bare_kernel``."""

    def mark(function: Function) -> Function:
        dispatcher = part(function)
        dispatcher.step_signature = signature  # type: ignore[attr-defined]
        return dispatcher

    return mark
