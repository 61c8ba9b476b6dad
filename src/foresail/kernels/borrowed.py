"""Arrays inside kernels whose references are not counted: on the stack, in a matrix, elsewhere.

An array that Python hands to a kernel costs as much as a hundred additions: who calls often hands
over one vector that says where all others are (``Places``), made when they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, Final

import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array
from numpy.typing import NDArray

_ir: Final[Any] = cgutils.ir  # type: ignore[attr-defined]  # llvmlite's, as Numba uses it
_BYTES: Final = 8
_VECTOR = types.float64[::1]
_MATRIX = types.float64[:, ::1]


def _array(context: Any, builder: Any, kind: Any, data: Any, shape: Any) -> Any:
    """A contiguous array of numbers of eight bytes that begins at ``data``."""
    array = context.make_array(kind)(context, builder)
    each = context.get_constant(types.intp, _BYTES)
    strides = [each]
    for length in shape[:-1] if kind.layout == "F" else reversed(shape[1:]):
        strides.append(builder.mul(strides[-1], length))
    if kind.layout == "C":
        strides.reverse()
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


def _moving(_context: Any, table: Any, column: Any, first: Any, last: Any, place: Any) -> Any:
    del column, first, last, place

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        held = context.make_array(signature.args[0])(context, builder, value=arguments[0])
        rows = cgutils.unpack_tuple(builder, held.shape, 2)[0]
        whole = builder.gep(held.data, [builder.mul(arguments[1], rows)])
        source, target = (builder.gep(whole, [arguments[at]]) for at in (2, 4))
        count = builder.sub(arguments[3], arguments[2])
        cgutils.raw_memmove(builder, target, source, count, _BYTES)
        return context.get_dummy_value()

    return types.void(table, *[types.intp] * 4), generate


PLACE: Final = 3
"""Count of numbers that describe an array in ``Places``."""


def _described(context: Any, builder: Any, kind: Any, begin: Any, places: Iterator[int]) -> Any:
    """An array, or a tuple of arrays and tuples, from the numbers that describe it."""
    if hasattr(kind, "types"):
        parts = [_described(context, builder, each, begin, places) for each in kind.types]
        return context.make_tuple(builder, kind, parts)
    word, first = context.get_value_type(types.intp), next(places)
    address, *shape = (
        builder.fptoui(
            builder.load(builder.gep(begin, [context.get_constant(types.intp, first + at)])), word
        )
        for at in range(1 + kind.ndim)
    )
    pointer = builder.inttoptr(address, context.get_data_type(kind.dtype).as_pointer())
    return _array(context, builder, kind, pointer, shape)


def arrays_at(kind: Any) -> Any:
    """In kernels: a function that makes such a tuple of arrays of what ``Places`` describe.

    It is given their numbers, and where among these to begin; arrays are of numbers of eight bytes,
    tuples within the tuple are those that follow one another.
    """

    def placed(_context: Any, places: Any, first: Any) -> Any:
        del places, first

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            held = context.make_array(_VECTOR)(context, builder, value=arguments[0]).data
            begin = builder.gep(held, [arguments[1]])
            return _described(context, builder, signature.return_type, begin, count(0, PLACE))

        return kind(_VECTOR, types.intp), generate

    return intrinsic(placed)


class Places:
    """Places of arrays, for kernels: in ``numbers`` the address and shape of each.

    All are contiguous, of one or two dimensions and of numbers of eight bytes. Copied or pickled,
    it describes the copies.
    """

    __slots__ = ("_arrays", "numbers")

    def __init__(self, *arrays: NDArray[Any]) -> None:
        self._arrays = arrays
        held = [(each.ctypes.data, *(*each.shape, 1)[:2]) for each in arrays]
        self.numbers = np.array(held, dtype=np.float64).reshape(-1)

    def __reduce__(self) -> tuple[Any, ...]:
        return Places, self._arrays


room: Final[Any] = intrinsic(_room)
"""In kernels: a vector of so many numbers on the stack, with anything in them.

They are there until the function that asked for them returns; do not ask in a loop.
"""

block: Final[Any] = intrinsic(_block)
"""In kernels: columns of a matrix that lie together as a matrix of their own, with the same rows.

``block(matrix, first, columns)``: how many columns lie before, and how many there are.
"""

move_rows: Final[Any] = intrinsic(_moving)
"""In kernels: move rows of one column of a table whose columns are contiguous.

``move_rows(table, column, first, last, place)``: from ``first`` to before ``last``, none of them
negative and the last not below the first, to where they begin at ``place``.
"""
