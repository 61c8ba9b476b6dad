"""What the first third of a log teaches of waits: only what was over by then."""

from __future__ import annotations

import numpy as np
from drawn_traces import proportional_family
from hypothesis import given
from hypothesis import strategies as st

from foresail.cloud.waiting.jobs import FixedMachines, TraceJobs
from foresail.cloud.waiting.simulating import (
    FEWEST_WAITS,
    Beliefs,
    first_predicted,
    observed_waits,
    simulate,
    waiting_policy,
    waits_over,
)

FAMILY = proportional_family()


def made(count: int, between_seconds: float = 60.0) -> TraceJobs:
    random = np.random.default_rng(7)
    submit = np.cumsum(random.exponential(between_seconds, count))
    return TraceJobs(submit, random.exponential(600.0, count), random.integers(1, 9, count))


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40), st.integers(1, 30))
def test_waits_that_are_over(times, limit):
    """Counted is who could wait out the limit before the first job that may be told."""
    submit = np.sort(np.array(times, dtype=float))
    end = submit[min(first_predicted(submit.size), submit.size - 1)]
    counted = waits_over(submit, float(limit))
    assert counted == sum(at + limit < end for at in submit)
    assert counted <= first_predicted(submit.size)


def test_examples_are_of_the_jobs_whose_waits_are_over():
    """A row for each that found room in time or left; none where too few waits are over."""
    jobs = made(900)
    fixed = FixedMachines(2, 8)
    asked = []

    def all_wait(many, every):
        asked.append((many, every))
        policy = waiting_policy("all-jobs-wait-threshold", 600.0)
        first = jobs.among(slice(many))
        beliefs = Beliefs(first.runtime_seconds)
        return simulate(first, fixed, FAMILY, policy, beliefs, features_every=every), policy

    rows = observed_waits(jobs.submit_seconds, 600.0, all_wait)
    assert asked == [(waits_over(jobs.submit_seconds, 600.0), 1)]
    assert FEWEST_WAITS <= rows.wait_seconds.size <= asked[0][0]
    assert observed_waits(jobs.submit_seconds, 86_400.0, all_wait) is None
    assert len(asked) == 1
