"""A bootstrap over blocks of time: which block each job is in, and how often each is drawn."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.model.arrays import Floats

WEEK_SECONDS: Final = 7 * 86400.0
DAY_SECONDS: Final = 86400.0
_FEWEST_BLOCKS: Final = 5


def time_blocks(submit: Floats) -> tuple[float, NDArray[np.int64]]:
    """Length of the blocks and each job's block; length 0 where there would be too few."""
    for length in (WEEK_SECONDS, DAY_SECONDS):
        index = np.floor((submit - submit.min()) / length).astype(np.int64)
        occupied, compact = np.unique(index, return_inverse=True)
        if occupied.size >= _FEWEST_BLOCKS:
            return length, compact.astype(np.int64)
    return 0.0, np.zeros(submit.size, dtype=np.int64)


def drawn_blocks(blocks: int, replicates: int, seed: int) -> Floats:
    """How often each replicate holds each block; shape (replicates, blocks)."""
    if not blocks:
        return np.zeros((replicates, 0))
    generator = np.random.default_rng(seed)
    return generator.multinomial(blocks, np.full(blocks, 1 / blocks), replicates).astype(np.float64)
