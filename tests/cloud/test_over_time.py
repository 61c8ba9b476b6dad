"""Blocks of a log that are drawn anew."""

from __future__ import annotations

import numpy as np
import pytest

from foresail.cloud.over_time import block_draws, block_seconds

DAY = 86400.0


def test_draws():
    """Every draw has as many blocks as there are, and all blocks are as likely."""
    draws = block_draws(10, 4000, seed=3)
    assert (draws.sum(axis=1) == 10).all()
    assert draws.mean(axis=0) == pytest.approx(np.ones(10), abs=0.06)
    assert block_seconds(np.array([0.0, 4.9 * DAY])) is None
    assert block_seconds(np.arange(0.0, 35.5 * DAY, DAY)) == 7.0 * DAY


def test_blocks_few_of_which_have_jobs():
    """A gap of two years leaves nothing to draw from but itself; five busy days are enough."""
    ends = np.array([0.0, 600.0, 730.0 * DAY, 730.0 * DAY + 600.0])
    assert block_seconds(ends) is None
    busy = np.append(np.arange(0.0, 4.9 * DAY, 3600.0), 730.0 * DAY)
    assert block_seconds(busy) == DAY
