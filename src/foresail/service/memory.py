"""Memory that the service does not need goes back to the system."""

from __future__ import annotations

import ctypes
import mmap
import re
from functools import cache
from pathlib import Path
from typing import Final

_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
"""Options of ``mallopt``, by their names with ``M_``."""

_LARGE_BYTES: Final = 262_144

_MAPPING: Final = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ *(/\S*\.so\b)?")
"""The first line that Linux has of a mapping: from where to where, with which rights, of what."""


def share_one_heap() -> bool:
    """Have all threads take memory from one heap, but for large blocks; whether that could be set.

    glibc gives each thread a heap of its own, so that what one has freed is of no use to others,
    who mostly hold the interpreter's lock when they ask; and after a large block was freed, it
    takes the next ones from a heap, too, where they leave holes.
    """
    set_option = _of_c_library("mallopt")
    if set_option is None:
        return False
    return bool(set_option(_ARENA_MAX, 1) and set_option(_MMAP_THRESHOLD, _LARGE_BYTES))


def give_back_free_memory() -> bool:
    """Have the C library return what it keeps for later; whether it could.

    What jobs leave behind is freed in pieces between what stays. glibc keeps these pages unless it
    is asked; other C libraries have no such call.
    """
    trim = _of_c_library("malloc_trim")
    return trim is not None and bool(trim(0))


def let_go_of_libraries() -> None:
    """Have pages of libraries count no more as the service's until it reads them again.

    Linux keeps them so as long as memory is plenty. Most were read once: 60 MB of LLVM's, to load
    kernels. What is needed again comes from the system's cache of files, and is the file's; pages
    that were written to, as addresses are where a library begins, stay.
    """
    begin = end = "0"
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8", errors="replace").splitlines():
        if mapping := _MAPPING.match(line):
            begin, end, rights, library = mapping.groups()
            if library is None or "w" in rights:
                end = begin
        elif begin != end and line.split() == ["Anonymous:", "0", "kB"]:
            at = int(begin, 16)
            length = ctypes.c_size_t(int(end, 16) - at)
            ctypes.CDLL(None).madvise(ctypes.c_void_p(at), length, mmap.MADV_DONTNEED)


@cache
def _of_c_library(name: str) -> ctypes._NamedFuncPointer | None:
    return getattr(ctypes.CDLL(None), name, None)
