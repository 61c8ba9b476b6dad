"""How kernels are compiled: to machine code cached on disk, without fast-math, typed throughout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile on the first call for the argument types seen, and cache the result on disk."""
    return cast("Function", numba.njit(cache=True, error_model="numpy")(function))


def step(signature: Any) -> Callable[[Function], Function]:
    """Compile at import against one of ``foresail.kernels.signatures``: usable as a pointer."""

    def compile_step(function: Function) -> Function:
        return cast("Function", numba.njit(signature, cache=True, error_model="numpy")(function))

    return compile_step
