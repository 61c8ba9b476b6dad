"""Compilation of kernels: machine code cached on disk, without fast-math, typed throughout."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar, cast

import numba
import numpy as np
from numba.core import types
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Booleans: TypeAlias = NDArray[np.bool_]

Function = TypeVar("Function", bound=Callable[..., Any])

_BARE: Final[Mapping[str, Any]] = MappingProxyType({"error_model": "numpy", "_nrt": False})
"""Options of what is compiled without Numba's runtime, which counts references to arrays."""

_UNWRAPPED: Final[Mapping[str, Any]] = MappingProxyType(
    {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
)
"""Options of what only other kernels call."""

_IMPORTS: Final = re.compile(rb"^from ([\w.]+) import (?:\(([^)]*)\)|(.*))", re.MULTILINE)


@cache
def _source_and_imports(module: str) -> tuple[bytes, tuple[str, ...]]:
    """Source of a module, and the modules of its package that it imports as it is loaded."""
    root, *below = module.split(".")
    first = Path(getattr(sys.modules.get(root), "__file__", None) or "")
    path = first.parent.joinpath(*below)
    files = (path.with_suffix(".py"), path / "__init__.py") if below else (first,)
    source = b"".join(file.read_bytes() for file in files if file.is_file())
    named = set()
    for package, several, one in _IMPORTS.findall(source):
        named |= {package, *(package + b"." + name for name in re.findall(rb"\w+", several or one))}
    loaded = (name.decode() for name in sorted(named))
    return source, tuple(name for name in loaded if name.startswith("foresail"))


@cache
def digest_of_sources(module: str) -> str:
    """Return the digest of a module's source and of all that it imports from this project.

    A kernel holds the machine code of the parts that it calls, and constants of other modules, so
    that it is out of date when one of those changes. Numba looks at the kernel's own file alone.
    """
    found, ahead = {module}, [module]
    while ahead:
        new = set(_source_and_imports(ahead.pop())[1]) - found
        found |= new
        ahead += new
    digest = hashlib.sha256()
    for name in sorted(found):
        digest.update(name.encode() + b"\0" + _source_and_imports(name)[0] + b"\0")
    return digest.hexdigest()


def _cached(function: Function, **options: Any) -> Function:
    """Compile on the first call for the argument types seen, and cache the result on disk.

    Where nothing can be written, neither beside the file nor at home, or the disk is full, it is
    kept for this run only. What other sources than today's have left there is not looked at
    (``digest_of_sources``).
    """
    try:
        dispatcher = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # there is no folder that can be written
        return cast("Function", _for_any_value(numba.njit(**options)(function)))
    sources = digest_of_sources(function.__module__)
    dispatcher._cache._cache_file._version = f"{numba.__version__}, {sources}"
    dispatcher._cache._guard_against_spurious_io_errors = lambda: suppress(OSError)
    return cast("Function", _for_any_value(dispatcher))


def _for_any_value(dispatcher: Any) -> Any:
    """Compile for a constant argument what is compiled for a variable one.

    Otherwise Numba compiles a function that kernels call anew for each constant that it is given.
    """
    of_types = dispatcher.get_call_template

    def of_types_alone(args: Any, kws: Any) -> Any:
        named = {name: types.unliteral(kind) for name, kind in kws.items()}
        return of_types(tuple(map(types.unliteral, args)), named)

    dispatcher.get_call_template = of_types_alone
    return dispatcher


def kernel(function: Function) -> Function:
    """Compile on the first call for the argument types seen, and cache the result on disk."""
    return _cached(function, error_model="numpy")


def bare_kernel(function: Function) -> Function:
    """Compile like ``kernel`` a function that makes no arrays: arguments are not ref-counted.

    Its caller holds them. Counting them cost a replay up to a third of its time.
    """
    return _cached(function, **_BARE)


def unlocked_kernel(function: Function) -> Function:
    """Compile like ``bare_kernel``, releasing the lock so that other Python threads run."""
    return _cached(function, nogil=True, **_BARE)


def part(function: Function) -> Function:
    """A part of kernels, which Python itself never calls: half as long to compile as a kernel.

    It makes no arrays (see ``bare_kernel``), and has no wrapper for calls from Python: such a call
    ends the process. One that returns an array is for bare callers only, or the count of references
    to it goes wrong.
    """
    return _cached(function, **_BARE, **_UNWRAPPED)


def making_part(function: Function) -> Function:
    """Compile like ``part``, for one that makes arrays."""
    return _cached(function, error_model="numpy", **_UNWRAPPED)


def merged_part(function: Function) -> Function:
    """Compile like ``part``, inlined into its single caller, which passes many arrays.

    A call would copy every array's header.
    """
    dispatcher = numba.njit(forceinline=True, **_BARE, **_UNWRAPPED)(function)
    return cast("Function", _for_any_value(dispatcher))


class Step:
    """A part that is called by its address (``foresail.kernels.steps``).

    Nothing is compiled before its address is asked for: a policy compiles its own steps and no
    others. Pickled by name, for machine code is one process's. ``signature`` is one of
    ``foresail.kernels.steps``.
    """

    def __init__(self, dispatcher: Any, signature: Any) -> None:
        self.dispatcher = dispatcher
        self.signature = signature
        self.__module__ = dispatcher.py_func.__module__
        self.__qualname__: str = dispatcher.py_func.__qualname__
        self.__doc__ = dispatcher.py_func.__doc__

    def __reduce__(self) -> str:
        return self.__qualname__


class _EntryStep(Step):
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


def entry(signature: Any) -> Callable[[Callable[..., Any]], _EntryStep]:
    """An ``_EntryStep`` of this signature."""
    return lambda function: _EntryStep(unlocked_kernel(function), signature)
