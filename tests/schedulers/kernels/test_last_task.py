"""The expected longest of a job's tasks, and what it holds up."""

from statistics import NormalDist

import numpy as np
import pytest

from foresail.schedulers.kernels.last_task import expected_longest, in_time, tail_seconds


@pytest.mark.parametrize("relative_variance", [0.01, 0.5, 4.0])
@pytest.mark.parametrize("tasks", [2, 10, 150])
def test_the_longest_of_drawn_tasks(relative_variance, tasks):
    """The mean of the longest of 20,000 drawn jobs, within five of its standard errors."""
    sigma = np.sqrt(np.log1p(relative_variance))
    random = np.random.default_rng(tasks)
    drawn = 7.0 * np.exp(sigma * random.standard_normal((20_000, tasks)) - sigma**2 / 2)
    longest = drawn.max(axis=1)
    error = 5.0 * longest.std() / np.sqrt(longest.size)
    found = expected_longest(7.0, relative_variance, float(tasks))
    assert found == pytest.approx(longest.mean(), abs=error)


def test_two_tasks_in_closed_form():
    """The longer of two log-normal values: 2 exp(mu + sigma^2 / 2) Phi(sigma / sqrt(2))."""
    sigma = np.sqrt(np.log1p(0.5))
    expected = 2.0 * 7.0 * NormalDist().cdf(sigma / np.sqrt(2.0))
    assert expected_longest(7.0, 0.5, 2.0) == pytest.approx(expected, rel=1e-12)


def test_what_does_not_vary_has_no_tail():
    """Nor has a single task; of more tasks than slots, only the last ones wait for the longest."""
    assert tail_seconds(7.0, 0.0, 150.0, 100.0) == 0.0
    assert tail_seconds(7.0, 0.5, 1.0, 100.0) == 0.0
    assert tail_seconds(7.0, 0.5, 0.0, 100.0) == 0.0
    assert tail_seconds(7.0, 0.5, 150.0, 2.0) == tail_seconds(7.0, 0.5, 2.0, 150.0) > 0.0


def test_the_odds_of_two_waves_by_drawing():
    """Forty tasks on twenty slots: nineteen after one another at the mean, the last ones drawn."""
    sigma = np.sqrt(np.log1p(0.5))
    random = np.random.default_rng(1)
    last = 7.0 * np.exp(sigma * random.standard_normal((20_000, 20)) - sigma**2 / 2)
    share = float((last.max(axis=1) <= 30.0 - 7.0).mean())
    error = 5.0 * np.sqrt(share * (1.0 - share) / 20_000)
    assert in_time(7.0, 0.5, 40.0, 20.0, 30.0) == pytest.approx(share, abs=error)
    assert 0.2 < share < 0.8


def test_odds_without_variation_or_time():
    """Certain or impossible; nothing is in time once the tasks before the last have used it up."""
    assert in_time(7.0, 0.0, 4.0, 2.0, 14.0) == 1.0
    assert in_time(7.0, 0.0, 4.0, 2.0, 13.9) == 0.0
    assert in_time(7.0, 0.5, 4.0, 2.0, 7.0) == 0.0
    assert in_time(0.0, 0.0, 4.0, 2.0, 0.0) == 1.0
    assert in_time(0.0, 0.0, 4.0, 2.0, -1.0) == 0.0
