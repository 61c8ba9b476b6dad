"""Sorting and searching short vectors, against NumPy."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from compiled import compiled
from foresail.kernels.waiting_jobs import first_not_below, sort_ascending

NUMBERS = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0, 1e9, np.inf]), max_size=30)


@given(NUMBERS)
def test_sorts_in_place(numbers):
    """Equal ones, infinite ones, and none at all."""
    values = np.array(numbers)
    compiled(sort_ascending)(values)
    assert values.tolist() == sorted(numbers)


@given(NUMBERS, st.sampled_from([-2.0, 0.0, 0.7, 1e10]))
def test_finds_the_first_that_is_not_below(numbers, wanted):
    """Among the first few only, whatever lies behind them."""
    values = np.append(np.sort(numbers), -5.0)
    expected = np.searchsorted(values[:-1], wanted)
    assert compiled(first_not_below)(values, len(numbers), wanted) == expected
