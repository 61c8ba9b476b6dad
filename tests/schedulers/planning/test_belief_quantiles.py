"""Quantiles of runtimes of many jobs at once, against those of each belief."""

import numpy as np
import pytest

from foresail.distributions.basic import Point, Uniform
from foresail.distributions.empirical import Empirical
from foresail.schedulers._planning.valuing import RuntimeBeliefs


@pytest.mark.parametrize(
    "belief",
    [
        Point(5.0),
        Empirical([1.0, 2.0, 2.0, 9.0]),
        Uniform(3.0, 8.0),
    ],
    ids=lambda belief: type(belief).__name__,
)
def test_quantiles_are_those_of_the_belief(belief):
    """Halving finds what the belief itself says."""
    levels = np.array([[0.05, 0.2, 0.4, 0.7, 0.95]])
    found = RuntimeBeliefs([belief]).quantiles(levels)[0]
    expected = [belief.quantile(float(level)) for level in levels[0]]
    assert found == pytest.approx(expected, abs=1e-6)
