"""Arrays inside kernels that nobody counts references to."""

import copy
import pickle

import numpy as np
import pytest
from numba import types

from foresail.kernels.borrowed import Places, arrays_at, block, move_rows, room
from foresail.kernels.compile import bare_kernel, kernel


@kernel
def reversed_sums(values):
    """Sums of the values up to each, the last first, by way of room on the stack."""
    sums = room(values.size)
    total = 0.0
    for i in range(values.size):
        total += values[i]
        sums[i] = total
    return sums[::-1].copy()


@bare_kernel
def double_block(matrix, first, columns):
    """Double the numbers of a block, and say how many rows and columns it has."""
    part = block(matrix, first, columns)
    for i in range(part.shape[0]):
        for j in range(part.shape[1]):
            part[i, j] *= 2.0
    return part.shape


@bare_kernel
def move(table, column, first, last, place):
    """Move rows of a column."""
    move_rows(table, column, first, last, place)


@pytest.mark.parametrize(("first", "last", "place"), [(1, 4, 0), (0, 4, 2), (2, 2, 5), (0, 6, 0)])
def test_rows_that_lie_over_one_another_move_as_they_were(first, last, place):
    """Other columns, and rows beside them, stay."""
    table = np.arange(18.0).reshape(6, 3, order="F")
    expected = table.copy()
    expected[place : place + last - first, 1] = table[first:last, 1].copy()
    move(table, 1, first, last, place)
    assert table.tolist() == expected.tolist()


def test_room_is_a_vector():
    """As long as asked for, each call's own."""
    assert reversed_sums(np.arange(5.0)).tolist() == [10.0, 6.0, 3.0, 1.0, 0.0]
    assert reversed_sums(np.ones(1000))[0] == 1000.0


def test_a_block_is_a_view_of_columns_that_lie_together():
    """Numbers in it are those of the matrix, all rows of the block one behind the other."""
    matrix = np.arange(12.0).reshape(3, 4)
    assert double_block(matrix, 1, 2) == (3, 2)
    expected = np.arange(12.0)
    expected[3:9] *= 2.0
    assert matrix.ravel().tolist() == expected.tolist()


four_at = arrays_at(
    types.Tuple(
        (
            types.Tuple((types.float64[::1], types.int64[::1])),
            types.float64[:, ::1],
            types.int64[:, ::1],
        )
    )
)


@bare_kernel
def double_all(places):
    """Double the numbers of four arrays that lie elsewhere."""
    (floats, integers), rows, whole_rows = four_at(places, 0)
    for i in range(floats.size):
        floats[i] *= 2.0
    for i in range(integers.size):
        integers[i] *= 2
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            rows[i, j] *= 2.0
            whole_rows[i, j] *= 2


@pytest.mark.parametrize(
    "again", [lambda each: each, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))]
)
def test_arrays_elsewhere_are_found_by_their_places(again):
    """Of either type, in one dimension or two, none at all; a copy is of other arrays."""
    vector, whole = np.arange(3.0), np.arange(4)
    rows, whole_rows = np.arange(6.0).reshape(2, 3), np.arange(6).reshape(2, 3)
    arrays = (vector, whole, rows, whole_rows)
    before = [each.copy() for each in arrays]
    kept, places = again((arrays, Places(*arrays)))
    double_all(places.numbers)
    for mine, copied, was in zip(arrays, kept, before, strict=True):
        np.testing.assert_array_equal(copied, 2 * was)
        np.testing.assert_array_equal(mine, was if mine is not copied else 2 * was)
    double_all(Places(np.zeros(0), np.zeros(0, int), np.zeros((0, 3)), rows.astype(int)).numbers)
