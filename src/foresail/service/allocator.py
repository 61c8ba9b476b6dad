"""Memory that is free within the process, given back to the system."""

from __future__ import annotations

import ctypes
from functools import cache


def give_back_free_memory() -> bool:
    """Have the C library return what it keeps for later; whether it could.

    What jobs leave behind is freed in pieces between what stays. glibc keeps these pages unless it
    is asked; other C libraries have no such call.
    """
    trim = _trim()
    return trim is not None and bool(trim(0))


@cache
def _trim() -> ctypes._NamedFuncPointer | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except AttributeError:
        return None
