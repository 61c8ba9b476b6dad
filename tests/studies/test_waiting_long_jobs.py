"""Long jobs and what trials of them cost."""

import numpy as np
import pytest

from foresail.cloud.waiting.jobs import FixedMachines, TraceJobs
from foresail.cloud.waiting.simulating import Beliefs, WaitingPolicy, simulate
from foresail_studies.generators.university import university_year
from foresail_studies.waiting._shared import FAMILY, long_jobs_of
from foresail_studies.waiting.metrics import measured

FIXED = FixedMachines(1, 1)


@pytest.mark.parametrize("lost", [True, False])
def test_trials_of_long_jobs_are_part_of_all_trials(lost):
    """And there are none where nobody is tried, whether or not machines are taken back."""
    jobs = university_year(20_000, seed=2)
    gone = np.where(np.arange(len(jobs)) % 3 == 0, 10.0, 0.0) if lost else None
    fixed = FixedMachines(40)
    for seconds in (0.0, 900.0):
        policy = WaitingPolicy(3600.0, speculation_seconds=seconds)
        found = simulate(jobs, fixed, FAMILY, policy, Beliefs.true_runtimes(jobs), gone)
        trials = measured(found, fixed, policy, 0.3).trial_cost
        long = long_jobs_of(found, policy, 0.3)
        assert 0.0 <= long["trial_cost"] <= trials
        assert (long["trial_cost"] > 0.0) is (seconds > 0.0)


def test_long_jobs_that_meet_full_machines():
    """One core: the first job has it; a short one is rented; of the long ones, one waits in vain.

    Trials of 100 s: the short job (50 s) ends in its trial, the others are tried in vain.
    """
    jobs = TraceJobs(
        np.array([0.0, 1.0, 2.0, 3.0]),
        np.array([1000.0, 50.0, 400.0, 600.0]),
        np.ones(4, np.int64),
    )
    policy = WaitingPolicy(950.0, speculation_seconds=100.0)
    found = simulate(jobs, FIXED, FAMILY, policy, Beliefs.true_runtimes(jobs))
    long = long_jobs_of(found, policy)
    assert long["trial_cost"] == pytest.approx(200.0 * 0.0481 / 3600.0)
    assert long["long_jobs"] == 0.75
    assert long["blocked_long_jobs"] == pytest.approx(2 / 3)
    assert long["blocked_wait_seconds"] == pytest.approx((998.0 + 1050.0) / 2)
