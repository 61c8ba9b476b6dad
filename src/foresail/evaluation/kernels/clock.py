"""The clock inside kernels: what a step costs is measured where no interpreter runs."""

from __future__ import annotations

import time
from typing import Any, Final

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from foresail.kernels.compile import bare_kernel

_CLOCK: Final = int(time.CLOCK_THREAD_CPUTIME_ID)
_NANOSECONDS: Final = 1_000_000_000
_TRIES: Final = 1000
_ir: Final[Any] = cgutils.ir  # type: ignore[attr-defined]  # llvmlite's, as Numba uses it


@intrinsic
def nanoseconds(_context: Any) -> Any:
    """Processor time of this thread, as ``time.thread_time_ns`` tells it (for use in kernels)."""

    def generate(_context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        word = _ir.IntType(64)
        moment = cgutils.alloca_once(builder, _ir.ArrayType(word, 2))
        kind = _ir.FunctionType(_ir.IntType(32), [_ir.IntType(32), moment.type])
        function = cgutils.get_or_insert_function(builder.module, kind, "clock_gettime")
        builder.call(function, [_ir.Constant(_ir.IntType(32), _CLOCK), moment])
        whole = builder.load(
            builder.gep(moment, [_ir.Constant(_ir.IntType(32), i) for i in (0, 0)])
        )
        rest = builder.load(builder.gep(moment, [_ir.Constant(_ir.IntType(32), i) for i in (0, 1)]))
        return builder.add(builder.mul(whole, _ir.Constant(word, _NANOSECONDS)), rest)

    return types.int64(), generate


@bare_kernel
def nanoseconds_to_read() -> int:
    """What reading the clock takes itself: the least of many tries."""
    least = _NANOSECONDS
    for _ in range(_TRIES):
        begin: int = nanoseconds()  # type: ignore[call-arg]  # an intrinsic's context is Numba's
        least = min(least, nanoseconds() - begin)
    return least
