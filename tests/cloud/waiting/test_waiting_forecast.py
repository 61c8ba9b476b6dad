"""Waits by simulating forward: against a slow one, and where they must come true."""

import math

import numpy as np
import pytest
from drawn_traces import traces
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_waiting import SlowRun

from foresail.cloud.waiting.jobs import (
    GIB,
    FixedMachines,
    RentedType,
    TraceJobs,
    proportional_family,
)
from foresail.cloud.waiting.kernels.waiting import AFTER_TRIAL, EXPIRED, FIXED, RENTED, TRIED
from foresail.cloud.waiting.simulating import (
    Beliefs,
    Forecast,
    Foresight,
    WaitingPolicy,
    simulate,
    waiting_policy,
)
from foresail.model.errors import InputError

FAMILY = (*proportional_family(), RentedType("gpus", 8, 64.0 * GIB, 2.0, 4.0))
PLACES = {FIXED: "fixed", RENTED: "rented", EXPIRED: "expired", TRIED: "tried"}
NAN = math.nan


@st.composite
def policies(draw, queues=("fcfs", "strict-fcfs", "sjf")):
    """Any settings that ask for waits."""
    limits = st.sampled_from([0.0, 1.0, 5.0, 12.0, 40.0])
    return WaitingPolicy(
        waiting_seconds=draw(limits),
        short_seconds=draw(st.sampled_from([0.0, 3.0, 10.0])),
        patience_seconds=draw(st.none() | limits | st.just(math.inf)),
        speculation_seconds=draw(st.sampled_from([0.0, 0.0, 4.0])),
        conserving=draw(st.booleans()),
        queue=draw(st.sampled_from(queues)),
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
    np.testing.assert_array_equal(found.forecast_seconds, forecasts)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.booleans(), st.booleans(), policies(), st.integers(1, 3))
def test_forecasts_as_the_slow_simulation(data, memory, gpus, policy, count):
    """From wrong runtimes, in every order, with whole queues of jobs whose patience ends."""
    jobs = data.draw(traces(25, 40, memory, gpus))
    fixed = FixedMachines(count, 5, 4.0 if memory else math.inf, gpus=1.5)
    estimates = drawn(data, st.integers(0, 30), jobs)
    ranks = None
    if policy.queue == "fcfs" and data.draw(st.booleans()):
        ranks = drawn(data, st.integers(0, 3), jobs)
    found = simulate(jobs, fixed, FAMILY, policy, Beliefs(estimates, Forecast()), ranks=ranks)
    if ranks is None:
        ranks = estimates if policy.queue == "sjf" else jobs.submit_seconds
    believed = estimates.tolist()
    nothing = [0.0] * len(jobs)
    open_waits = [NAN] * len(jobs)
    slow = SlowRun(
        jobs, fixed, policy, believed, open_waits, nothing, ranks.tolist(), believed=believed
    )
    rules = policy.rules
    as_slow(found, slow, max(rules.waiting_seconds, rules.patience_seconds))


@settings(max_examples=100, deadline=None)
@given(st.data(), st.booleans(), policies(queues=("strict-fcfs",)), st.integers(1, 3))
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


@settings(max_examples=100, deadline=None)
@given(traces(25, 40, memory=True), st.integers(1, 3), st.sampled_from([1.0, 5.0, 12.0, 30.0]))
def test_true_forecasts_come_true_where_nobody_overtakes(jobs, count, limit):
    """Who was told of a wait has just that wait, and nobody waits in vain."""
    policy = waiting_policy("short-waits-wait", limit, queue="strict-fcfs")
    fixed = FixedMachines(count, 6, 8.0)
    told = simulate(jobs, fixed, FAMILY, policy, Beliefs.true_runtimes(jobs, Forecast()))
    foreseen = simulate(jobs, fixed, FAMILY, policy, Beliefs.true_runtimes(jobs, Foresight()))
    assert np.array_equal(told.start_seconds, foreseen.start_seconds)
    waits = told.start_seconds - jobs.submit_seconds
    asked = ~np.isnan(told.forecast_seconds)
    stays = told.place == FIXED
    assert np.array_equal(told.forecast_seconds[stays & asked], waits[stays & asked])
    assert not waits[stays & ~asked].any()
    assert not np.any(told.place == EXPIRED)
    assert np.array_equal(stays[asked], told.forecast_seconds[asked] <= limit)


def test_overdue_jobs_end_any_moment():
    """One that is believed to have ended long ago is expected to make room at once."""
    jobs = TraceJobs(np.array([0.0, 50.0, 51.0]), np.full(3, 100.0), np.ones(3, dtype=np.int64))
    policy = WaitingPolicy(20.0, patience_seconds=math.inf)
    told = Beliefs(np.array([10.0, 10.0, 40.0]), Forecast())
    found = simulate(jobs, FixedMachines(1, 1), FAMILY, policy, told)
    assert found.forecast_seconds[1:].tolist() == [0.0, 10.0]
    assert found.start_seconds.tolist() == [0.0, 100.0, 200.0]


def test_any_order_of_those_who_wait():
    """Ranks decide, and then the order of submission."""
    jobs = TraceJobs(np.arange(5.0), np.full(5, 10.0), np.ones(5, dtype=np.int64))
    ranks = np.array([0.0, 3.0, 1.0, 3.0, 2.0])
    found = simulate(
        jobs, FixedMachines(1, 1), FAMILY, WaitingPolicy(), Beliefs.true_runtimes(jobs), ranks=ranks
    )
    assert found.start_seconds.tolist() == [0.0, 30.0, 10.0, 40.0, 20.0]
    for wrong in (np.zeros(4), np.full(5, math.nan)):
        with pytest.raises(InputError, match="rank for each job"):
            simulate(
                jobs,
                FixedMachines(1, 1),
                FAMILY,
                WaitingPolicy(),
                Beliefs.true_runtimes(jobs),
                ranks=wrong,
            )
    with pytest.raises(InputError, match="order of its own"):
        simulate(
            jobs,
            FixedMachines(1, 1),
            FAMILY,
            WaitingPolicy(queue="strict-fcfs"),
            Beliefs.true_runtimes(jobs),
            ranks=ranks,
        )


def test_endless_beliefs_and_no_machines():
    """Behind jobs that are believed to be endless nobody is told to wait; with none, all rent."""
    jobs = TraceJobs(np.arange(4.0), np.full(4, 5.0), np.ones(4, dtype=np.int64))
    endless = Beliefs(np.full(4, math.inf), Forecast())
    for queue in ("fcfs", "strict-fcfs"):
        policy = WaitingPolicy(20.0, queue=queue)
        found = simulate(jobs, FixedMachines(1, 1), FAMILY, policy, endless)
        assert found.place.tolist() == [FIXED, RENTED, RENTED, RENTED]
        nothing = simulate(jobs, FixedMachines(0), FAMILY, policy, endless)
        assert np.all(nothing.place == RENTED)


def test_an_extended_plan_is_the_plan_made_anew():
    """Thousands of jobs in a strict queue: as when each forecast starts from what runs and waits.

    Nobody is told of the last job, so that a wrong belief about it only makes forecasts slow.
    """
    random = np.random.default_rng(11)
    count = 3_000
    jobs = TraceJobs(
        np.sort(np.floor(random.random(count) * 20_000.0)),
        np.floor(random.exponential(120.0, count)),
        random.integers(1, 9, count),
        np.floor(random.random(count) * 8.0),
        random.integers(0, 9, count) / 4.0,
    )
    fixed = FixedMachines(8, 8, 12.0, gpus=3.0)
    almost = jobs.runtime_seconds.copy()
    almost[-1] += 1.0
    for policy in (
        waiting_policy("short-waits-wait", 300.0, queue="strict-fcfs"),
        WaitingPolicy(400.0, 20.0, 100.0, conserving=False, queue="strict-fcfs"),
    ):
        fast = simulate(jobs, fixed, FAMILY, policy, Beliefs.true_runtimes(jobs, Forecast()))
        slow = simulate(jobs, fixed, FAMILY, policy, Beliefs(almost, Forecast()))
        for name in ("start_seconds", "place", "machine", "forecast_seconds"):
            np.testing.assert_array_equal(getattr(fast, name), getattr(slow, name))
        assert 0.1 < np.mean(fast.place == RENTED) < 0.9
        assert np.isfinite(fast.forecast_seconds).sum() > 500
