"""The oracle of a strict queue against a slow one, and orders of those who wait."""

import math

import numpy as np
import pytest
from drawn_traces import proportional_family, traces
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_waiting import SlowRun

from foresail.cloud.waiting.jobs import (
    GIB,
    FixedMachines,
    RentedType,
    TraceJobs,
)
from foresail.cloud.waiting.kernels.waiting import AFTER_TRIAL, EXPIRED, FIXED, RENTED, TRIED
from foresail.cloud.waiting.simulating import (
    Beliefs,
    Foresight,
    WaitingPolicy,
    simulate,
)
from foresail.model.errors import InputError

FAMILY = (*proportional_family(), RentedType("gpus", 8, 64.0 * GIB, 2.0, 4.0))
PLACES = {FIXED: "fixed", RENTED: "rented", EXPIRED: "expired", TRIED: "tried"}
NAN = math.nan


@st.composite
def policies(draw):
    """Settings of a strict queue that ask for waits."""
    limits = st.sampled_from([0.0, 1.0, 5.0, 12.0, 40.0])
    return WaitingPolicy(
        waiting_seconds=draw(limits),
        short_seconds=draw(st.sampled_from([0.0, 3.0, 10.0])),
        patience_seconds=draw(st.none() | limits | st.just(math.inf)),
        conserving=draw(st.booleans()),
        queue="strict-fcfs",
    )


def drawn(data, values, jobs):
    """One for each job."""
    count = len(jobs)
    return np.array(data.draw(st.lists(values, min_size=count, max_size=count)), dtype=float)


def as_slow(found, slow, limit):
    """Everything is as in the slow run, and so is every wait that was forecast."""
    start, place = slow.run()
    codes = found.place.tolist()
    assert [PLACES[TRIED if code == TRIED else code % AFTER_TRIAL] for code in codes] == place
    assert found.start_seconds.tolist() == start
    forecasts = np.array([slow.forecasts.get(job, NAN) for job in range(len(start))])
    forecasts[forecasts > limit] = math.inf
    np.testing.assert_array_equal(found.planned_wait_seconds, forecasts)


@settings(max_examples=100, deadline=None)
@given(st.data(), st.booleans(), policies(), st.integers(1, 3))
def test_the_oracle_of_a_strict_queue_as_the_slow_one(data, whole, policy, count):
    """By true runtimes, whatever is believed of them; with misses and false alarms."""
    jobs = data.draw(traces(25, 40, memory=whole, gpus=whole))
    fixed = FixedMachines(count, 5, 4.0, gpus=1.5) if whole else FixedMachines(count, 5)
    estimates = drawn(data, st.integers(0, 30), jobs)
    wrong = drawn(data, st.sampled_from([NAN, NAN, 0.0, math.inf]), jobs)
    oracle = Foresight(missed=wrong == 0.0, false_alarms=np.isinf(wrong))
    found = simulate(jobs, fixed, FAMILY, policy, Beliefs(estimates, oracle))
    slow = SlowRun(
        jobs,
        fixed,
        policy,
        estimates.tolist(),
        wrong.tolist(),
        [0.0] * len(jobs),
        jobs.submit_seconds.tolist(),
        believed=jobs.runtime_seconds.tolist(),
    )
    rules = policy.rules
    as_slow(found, slow, max(rules.waiting_seconds, rules.patience_seconds))


def test_an_oracle_of_a_strict_queue_tries_nobody():
    """Who comes back from a trial would come before those that were promised a start."""
    jobs = TraceJobs(np.arange(2.0), np.full(2, 5.0), np.ones(2, dtype=np.int64))
    policy = WaitingPolicy(20.0, speculation_seconds=4.0, queue="strict-fcfs")
    with pytest.raises(InputError, match="not foreseen"):
        simulate(jobs, FixedMachines(1), FAMILY, policy, Beliefs.true_runtimes(jobs, Foresight()))
