"""The two-job Gaussian model: golden values, and its closed form against drawn jobs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail_studies.analyses.misordering import (
    MISORDERED_BY_HISTORY,
    misordered_by_sampling,
    samples_to_win,
)

DEVIATIONS = st.floats(0.01, 100.0)


@pytest.mark.parametrize(
    ("job_deviation", "task_deviation", "samples", "expected"),
    [
        (1.0, 1.0, 1, 0.25),
        (1.0, 1.0, 4, 0.1475836177),
        (0.5, 0.1, 3, 0.0365931975),
        (0.1, 0.5, 1, 0.4371670418),
        (0.0, 0.5, 3, 0.5),
    ],
)
def test_misordering_golden_values(job_deviation, task_deviation, samples, expected):
    """The closed form at the spec's points, and a coin toss where jobs do not differ."""
    found = misordered_by_sampling(job_deviation, task_deviation, samples)
    assert found == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(
    ("job_deviation", "task_deviation", "samples"), [(1.0, 1.0, 4), (0.3, 0.9, 2), (0.9, 0.3, 7)]
)
def test_misordering_of_drawn_jobs(job_deviation, task_deviation, samples):
    """Drawn second jobs are ordered wrongly as often as the closed form says."""
    random = np.random.default_rng(3)
    true = random.normal(1.0, job_deviation, 200_000)
    error = random.normal(0.0, task_deviation, (samples, true.size)).mean(axis=0)
    wrong = ((true + error > 1.0) != (true > 1.0)).mean()
    expected = misordered_by_sampling(job_deviation, task_deviation, samples)
    assert wrong == pytest.approx(expected, abs=4 * math.sqrt(0.25 / true.size))


@given(DEVIATIONS, DEVIATIONS, st.integers(1, 500))
def test_sampling_wins_when_it_has_the_lesser_variance(job_deviation, task_deviation, samples):
    """Beyond ``samples_to_win`` the samples' mean errs less than the prior, and only there."""
    wins = samples > samples_to_win(job_deviation, task_deviation)
    assert wins == (task_deviation**2 / samples < job_deviation**2) or math.isclose(
        task_deviation**2 / samples, job_deviation**2
    )


@given(DEVIATIONS, DEVIATIONS, st.integers(1, 500))
def test_more_samples_order_better(job_deviation, task_deviation, samples):
    """Sampling is never worse than the coin toss of history and improves with every task."""
    here = misordered_by_sampling(job_deviation, task_deviation, samples)
    assert misordered_by_sampling(job_deviation, task_deviation, samples + 1) <= here
    assert here <= MISORDERED_BY_HISTORY
