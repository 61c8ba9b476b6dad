"""The quantile regression: its quantiles are in order, framed, and right as often as they say."""

import numpy as np
import pytest

from compiled import take
from foresail.distributions.quantiles import Quantiles
from foresail.kernels.columns import Q10, Q90, REQUESTED, SUMMARY_COLUMNS, USER
from foresail.model.job import Job
from foresail.predictors.regression import QuantileRegression, QuantileRegressionParameters


def test_levels_are_reached_as_often_as_they_say():
    """Runtimes around a tenth of the request, scattered: 10 ... 90 % end below each quantile."""
    random = np.random.default_rng(5)
    count = 6000
    specs = np.full((count, 7), -1.0)
    specs[:, 0] = np.arange(count) * 50.0
    specs[:, 1] = random.integers(1, 17, count)
    specs[:, REQUESTED] = random.choice([36_000.0, 72_000.0, 360_000.0], count)
    specs[:, USER] = 0
    runtime = specs[:, REQUESTED] / 10 * random.uniform(0.5, 1.5, count)
    steps, state = QuantileRegression(QuantileRegressionParameters()).compiled(specs)
    rows = np.empty((count, SUMMARY_COLUMNS))
    for i in range(count):
        take(steps.predict, i, specs[i, 0], np.nan, specs, *state, rows)
        take(steps.observe, i, specs[i, 0] + 1.0, runtime[i], specs, *state, rows)
    later = slice(count // 2, None)
    shares = np.mean(runtime[later, np.newaxis] <= rows[later, Q10 : Q90 + 1], axis=0)
    assert shares == pytest.approx([0.1, 0.25, 0.5, 0.75, 0.9], abs=0.05)


def test_belief_is_framed_by_a_second_and_the_limit():
    """The levels asked for, with 0 and 1 around them."""
    predictor = QuantileRegression(QuantileRegressionParameters(levels=(0.3, 0.6)))
    belief = predictor.predict(Job.gang("a", 0.0, 1, 500.0), 0.0)
    assert isinstance(belief, Quantiles)
    assert belief.levels.tolist() == [0.0, 0.3, 0.6, 1.0]
    assert belief.values[[0, -1]].tolist() == [1.0, 500.0]
