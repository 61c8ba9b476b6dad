"""Atoms put onto fewer nodes, against one atom at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.distributions.operations import bin_onto_nodes


@given(
    st.lists(st.floats(0.0, 100.0), min_size=1, max_size=30).map(sorted),
    st.lists(st.integers(1, 99), unique=True, max_size=8).map(sorted),
)
def test_binning_keeps_the_mean(values, inner):
    """Each atom goes to the two nodes around it, in the shares that keep its mean."""
    nodes = np.array([0.0, *inner, 100.0])
    masses = np.linspace(1.0, 2.0, len(values))
    slow = np.zeros(nodes.size)
    spread = 0.0
    for value, mass in zip(values, masses, strict=True):
        high = next(i for i, node in enumerate(nodes) if node >= value)
        low = high if nodes[high] == value else high - 1
        share = (value - nodes[low]) / (nodes[high] - nodes[low]) if high > low else 1.0
        slow[high] += share * mass
        slow[low] += (1.0 - share) * mass
        spread += mass * (value - nodes[low]) * (nodes[high] - value)
    binned = bin_onto_nodes(np.array(values), masses, nodes)
    assert binned == pytest.approx(slow, abs=1e-12)
    assert binned @ nodes == pytest.approx(masses @ values)
    assert binned @ nodes**2 == pytest.approx(masses @ np.square(values) + spread)
