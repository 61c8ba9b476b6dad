"""Arrays inside kernels that nobody counts references to: room on the stack, blocks of a matrix."""

from __future__ import annotations

from typing import Any, Final

from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

_ir: Final[Any] = cgutils.ir  # type: ignore[attr-defined]  # llvmlite's, as Numba uses it
_BYTES: Final = 8
_VECTOR = types.float64[::1]
_MATRIX = types.float64[:, ::1]


def _array(context: Any, builder: Any, kind: Any, data: Any, shape: Any) -> Any:
    """A contiguous array of floats that begins at ``data``."""
    array = context.make_array(kind)(context, builder)
    each = context.get_constant(types.intp, _BYTES)
    strides = [each]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=each, meminfo=None)
    return array._getvalue()


def _room(_context: Any, count: Any) -> Any:
    del count

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.alloca(_ir.DoubleType(), arguments[0])
        return _array(context, builder, signature.return_type, place, [arguments[0]])

    return _VECTOR(types.intp), generate


def _block(_context: Any, matrix: Any, first: Any, columns: Any) -> Any:
    del matrix, first, columns

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole = context.make_array(_MATRIX)(context, builder, value=arguments[0])
        rows = cgutils.unpack_tuple(builder, whole.shape, 2)[0]
        begin = builder.gep(whole.data, [builder.mul(arguments[1], rows)])
        return _array(context, builder, signature.return_type, begin, [rows, arguments[2]])

    return _MATRIX(_MATRIX, types.intp, types.intp), generate


room: Final[Any] = intrinsic(_room)
"""In kernels: a vector of so many numbers on the stack, with anything in them.

They are there until the function that asked for them returns; do not ask in a loop.
"""

block: Final[Any] = intrinsic(_block)
"""In kernels: columns of a matrix that lie together as a matrix of their own, with the same rows.

``block(matrix, first, columns)``: how many columns lie before, and how many there are.
"""
