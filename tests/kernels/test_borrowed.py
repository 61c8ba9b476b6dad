"""Arrays inside kernels that nobody counts references to."""

import numpy as np

from foresail.kernels.borrowed import block, room
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
