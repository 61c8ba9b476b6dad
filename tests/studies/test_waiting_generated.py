"""Generated jobs: the published shares and means hold, whatever is left open."""

import numpy as np
import pytest

from foresail.model.errors import InputError
from foresail_studies.generators.university import (
    MEAN_RUNTIME_SECONDS,
    Runtimes,
    university_year,
)


@pytest.mark.parametrize("minutes", [80.0, 33.0, 8.0])
def test_published_shares_hold_for_any_mean_of_the_middle(minutes):
    """60 % below three minutes, 4 % above six hours, 0.11 % above 96, and the mean."""
    found = Runtimes(60.0 * minutes).at((np.arange(400_000) + 0.5) / 400_000)
    assert np.mean(found < 180.0) == pytest.approx(0.60, abs=1e-4)
    assert np.mean(found > 6 * 3600.0) == pytest.approx(0.04, abs=1e-4)
    assert np.mean(found > 96 * 3600.0) == pytest.approx(0.0011, abs=1e-4)
    assert found.mean() == pytest.approx(MEAN_RUNTIME_SECONDS, rel=1e-3)
    assert np.all(np.diff(found) >= 0.0)


def test_by_default_the_longest_are_exponential():
    """A mean of 25 hours beyond the six; and the less the middle, the fewer jobs are long."""
    usual = Runtimes()
    assert usual.beyond_mean_seconds == pytest.approx(25 * 3600.0)
    assert usual.beyond_exponent == pytest.approx(1.0, abs=1e-9)
    levels = np.linspace(0.0, 1.0, 10_001)
    assert np.mean(Runtimes(480.0).at(levels) > 900.0) < np.mean(usual.at(levels) > 900.0) / 4


@pytest.mark.parametrize("seconds", [180.0, 16_000.0])
def test_what_leaves_no_work_is_refused(seconds):
    """No job of the middle is so short, and the longest have to have something to do."""
    with pytest.raises(InputError, match="middle_mean_seconds"):
        Runtimes(seconds)


def test_jobs_of_a_burst_are_alike():
    """Neighbours are nearer to each other than anybody else."""
    runtime = university_year(20_000, seed=1).runtime_seconds
    apart = np.random.default_rng(2).permutation(runtime)

    def apartness(seconds):
        return np.median(np.abs(np.diff(np.log(seconds + 1.0))))

    assert apartness(runtime) < 0.5 * apartness(apart)
