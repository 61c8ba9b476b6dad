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


def part(function: Function) -> Function:
    """A part of kernels, which Python itself never calls: half as long to compile as a kernel.

    It makes no arrays (see ``bare_kernel``), and has no wrapper for calls from Python: such a call
    ends the process. One that returns an array is for bare callers only, or the count of references
    to it goes wrong.
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


class Step:
    """A part that is called by its address (``foresail.kernels.calling``).

    Nothing is compiled before somebody asks for the address: a policy compiles its own steps and
    no others. Pickled by name, for machine code is one process's.

    Parameters
    ----------
    dispatcher
        The function, for Numba to compile.
    signature
        One of ``foresail.kernels.signatures``.
    """

    def __init__(self, dispatcher: Any, signature: Any) -> None:
        self.dispatcher = dispatcher
        self.signature = signature
        self.__module__ = dispatcher.py_func.__module__
        self.__qualname__: str = dispatcher.py_func.__qualname__
        self.__doc__ = dispatcher.py_func.__doc__

    def __reduce__(self) -> str:
        return self.__qualname__


class Entry(Step):
    """A step that Python calls too, and that lets other Python threads run meanwhile."""

    def __call__(self, *arguments: Any) -> Any:
        """Run it, compiled now if it was not."""
        return self.dispatcher(*arguments)


def step(signature: Any) -> Callable[[Callable[..., Any]], Step]:
    """A ``Step`` of this signature that makes arrays."""
    return lambda function: Step(making_part(function), signature)


def bare_step(signature: Any) -> Callable[[Callable[..., Any]], Step]:
    """A ``Step`` of this signature that makes no arrays: see ``bare_kernel``."""
    return lambda function: Step(part(function), signature)


def entry(signature: Any) -> Callable[[Callable[..., Any]], Entry]:
    """An ``Entry`` of this signature."""
    return lambda function: Entry(unlocked_kernel(function), signature)
