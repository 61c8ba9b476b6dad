"""Sweeps: every setting once, on several threads."""

from itertools import product

import numpy as np
import pytest

from foresail.cloud.waiting.jobs import FixedMachines, proportional_family
from foresail.cloud.waiting.simulating import Beliefs, Foresight, simulate, waiting_policy
from foresail_studies.renting.metrics import measured
from foresail_studies.renting.sweeping import SweepInputs, WaitingSetting, try_settings
from foresail_studies.stand_ins import university_year

FAMILY = proportional_family()
SETTINGS = [
    WaitingSetting("compound", *point)
    for point in product((0, 20, 60), (600.0, 7200.0), (60.0, 180.0))
]


@pytest.fixture(scope="module")
def inputs():
    """An hour or so of the generated year; policies are told the truth."""
    jobs = university_year(jobs=3_000)
    return SweepInputs(jobs, jobs.runtime_seconds, FixedMachines(1), FAMILY)


def test_as_one_by_one(inputs):
    """Threads change nothing."""
    found = dict(try_settings(inputs, SETTINGS, workers=2))
    assert set(found) == set(SETTINGS)
    told = Beliefs.true_runtimes(inputs.jobs, Foresight())
    for setting, tried in found.items():
        fixed = FixedMachines(setting.machines)
        policy = waiting_policy("compound", setting.waiting_seconds, setting.short_seconds)
        alone = simulate(inputs.jobs, fixed, FAMILY, policy, told)
        assert tried.metrics == measured(alone, fixed, policy)


def test_the_year_has_the_published_moments():
    """The first twentieth of it, but for the mean, which its longest jobs move by chance."""
    jobs = university_year(jobs=700_000, seed=3)
    gaps = np.diff(jobs.submit_seconds)
    runtime = jobs.runtime_seconds
    assert np.mean(gaps < 1.0) == pytest.approx(0.90, abs=0.02)
    assert gaps.mean() == pytest.approx(1.0 / 0.4527, rel=0.02)
    assert np.mean(runtime < 180.0) == pytest.approx(0.60, abs=0.05)
    assert np.mean(runtime > 6 * 3600.0) == pytest.approx(0.04, abs=0.02)
    assert np.mean(runtime > 96 * 3600.0) < 0.004
    assert runtime.mean() == pytest.approx(6225.0, rel=0.3)
