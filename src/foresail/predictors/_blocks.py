"""Matrices whose columns lie in blocks, each a matrix of its own behind the one before.

A composite's rows per user and per job are such matrices: one block of its own and one per member
(``foresail.predictors.kernels.members``). A plain predictor's have one block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def joined(blocks: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Matrices of as many rows as one matrix of their summed columns."""
    columns = sum(block.shape[1] for block in blocks)
    flat = np.concatenate([block.reshape(-1) for block in blocks])
    return flat.reshape(len(blocks[0]), columns)


def split(matrix: NDArray[np.float64], widths: Sequence[int]) -> list[NDArray[np.float64]]:
    """The blocks of a matrix, as views."""
    rows = len(matrix)
    ends = rows * np.cumsum(widths)
    parts = np.split(matrix.reshape(-1), ends[:-1])
    return [part.reshape(rows, width) for part, width in zip(parts, widths, strict=True)]


def selected(
    matrix: NDArray[np.float64], rows: slice | Sequence[int], widths: Sequence[int]
) -> NDArray[np.float64]:
    """Some rows of every block, copied."""
    which: Any = rows if isinstance(rows, slice) else np.asarray(rows, dtype=np.int64)
    return joined([block[which] for block in split(matrix, widths)])


def lengthened(
    matrix: NDArray[np.float64], rows: int, widths: Sequence[int]
) -> NDArray[np.float64]:
    """Every block with rows of zeros behind its own, ``rows`` in all."""
    longer = np.zeros((rows, matrix.shape[1]))  # rows that nobody writes take no memory
    for block, target in zip(split(matrix, widths), split(longer, widths), strict=True):
        target[: len(block)] = block
    return longer
