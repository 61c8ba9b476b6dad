"""The compiled simulation of waiting policies: against a slow one, formulas, and what must hold."""

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
    rents,
)
from foresail.cloud.waiting.kernels.waiting import AFTER_TRIAL, EXPIRED, FIXED, RENTED, TRIED
from foresail.cloud.waiting.simulating import (
    QUEUES,
    Beliefs,
    Foresight,
    WaitingPolicy,
    simulate,
    waiting_policy,
)
from foresail.model.errors import InputError, UnknownNameError
from foresail_studies.waiting.formulas import (
    Load,
    all_jobs_wait,
    all_jobs_wait_up_to,
    compound,
    long_jobs_wait,
    no_jobs_wait,
    short_waits_wait,
)
from foresail_studies.waiting.metrics import measured
from foresail_studies.waiting.models import short_waits_wait_conserving

FAMILY = proportional_family()
WITH_GPUS = (*FAMILY, RentedType("gpus", 8, 64.0 * GIB, 2.0, 4.0))
PLACES = {FIXED: "fixed", RENTED: "rented", EXPIRED: "expired", TRIED: "tried"}


def names(place):
    """Places as the reference names them."""
    return [PLACES[TRIED if code == TRIED else code % AFTER_TRIAL] for code in place.tolist()]


@st.composite
def policies(draw):
    """Any settings."""
    limits = st.sampled_from([0.0, 1.0, 5.0, 12.0, math.inf])
    return WaitingPolicy(
        waiting_seconds=draw(limits),
        short_seconds=draw(st.sampled_from([0.0, 3.0, 10.0])),
        patience_seconds=draw(st.none() | limits),
        speculation_seconds=draw(st.sampled_from([0.0, 0.0, 4.0])),
        conserving=draw(st.booleans()),
        queue=draw(st.sampled_from(("fcfs", "strict-fcfs", "sjf"))),
    )


@settings(max_examples=400, deadline=None)
@given(st.data(), st.booleans(), st.booleans(), policies(), st.integers(0, 3))
def test_as_the_slow_simulation(data, memory, gpus, policy, count):
    """Every job starts when and where the obvious simulation starts it."""
    jobs = data.draw(traces(40, 60, memory, gpus))
    fixed = FixedMachines(count, 5, 4.0 if memory else math.inf, gpus=1.5)

    def drawn(values):
        return np.array(
            data.draw(st.lists(values, min_size=len(jobs), max_size=len(jobs))), dtype=float
        )

    estimates = drawn(st.integers(0, 30))
    waits = drawn(st.sampled_from([0.0, 2.0, 20.0]))
    lost = drawn(st.sampled_from([0.0, 0.0, 1.0]))
    found = simulate(jobs, fixed, WITH_GPUS, policy, Beliefs(estimates, waits), lost)
    ranks = estimates if policy.queue == "sjf" else jobs.submit_seconds
    start, place = SlowRun(
        jobs, fixed, policy, estimates.tolist(), waits.tolist(), lost.tolist(), ranks.tolist()
    ).run()
    assert names(found.place) == place
    assert found.start_seconds.tolist() == start


@settings(max_examples=150, deadline=None)
@given(traces(40, 60, memory=True), policies(), st.integers(0, 4))
def test_nothing_is_lost_or_used_twice(jobs, policy, count):
    """Every job runs, no machine ever holds more than it has, and money adds up."""
    fixed = FixedMachines(count, 6, 8.0, price_per_hour=1.0)
    found = simulate(jobs, fixed, FAMILY, policy, Beliefs.true_runtimes(jobs))
    assert np.all(found.start_seconds >= jobs.submit_seconds)
    on_fixed = found.machine >= 0
    assert np.array_equal(on_fixed, (found.place % AFTER_TRIAL == FIXED) & (found.place != TRIED))
    ends = found.start_seconds + jobs.runtime_seconds
    for time in found.start_seconds[on_fixed]:
        held = on_fixed & (found.start_seconds <= time) & (time < ends)
        cores = np.bincount(found.machine[held], jobs.cores[held], minlength=count)
        memory = np.bincount(found.machine[held], jobs.memory_bytes[held], minlength=count)
        assert cores.max(initial=0) <= 6
        assert memory.max(initial=0) <= 8.0
    if jobs.submit_seconds[0] < jobs.submit_seconds[-1]:
        result = measured(found, fixed, policy)
        assert result.total_cost == pytest.approx(
            result.fixed_cost + result.rented_cost + result.trial_cost
        )
        price = rents(jobs.requests, FAMILY)[jobs.requests.of_job]
        rented = (found.place % AFTER_TRIAL != FIXED) & (found.place != TRIED)
        spent = float((price * jobs.runtime_seconds)[rented].sum() / 3600.0)
        assert result.rented_cost == pytest.approx(spent)


@settings(max_examples=50, deadline=None)
@given(traces(40, 60, memory=False), policies())
def test_extremes(jobs, policy):
    """Without machines all is rented; with enough of them nothing waits and nothing is diverted."""
    nothing = simulate(jobs, FixedMachines(0), FAMILY, policy, Beliefs.true_runtimes(jobs))
    assert np.all(nothing.place == RENTED)
    assert np.array_equal(nothing.start_seconds, jobs.submit_seconds)
    conserving = WaitingPolicy(policy.waiting_seconds, policy.short_seconds, queue=policy.queue)
    plenty = simulate(
        jobs, FixedMachines(len(jobs)), FAMILY, conserving, Beliefs.true_runtimes(jobs)
    )
    assert np.all(plenty.place == FIXED)
    assert np.array_equal(plenty.start_seconds, jobs.submit_seconds)


@settings(max_examples=60, deadline=None)
@given(
    traces(40, 60, memory=True), st.integers(1, 3), st.sampled_from([1.0, 4.0, 9.0]), st.booleans()
)
def test_the_oracle_of_waits_changes_nothing_for_those_who_stay(jobs, count, limit, shortest):
    """Told or not told, the same jobs are rented machines, and the others start as they did."""
    policy = waiting_policy("short-waits-wait", limit, queue="sjf" if shortest else "fcfs")
    fixed = FixedMachines(count, 6, 8.0)
    told = simulate(jobs, fixed, FAMILY, policy, Beliefs.true_runtimes(jobs, Foresight()))
    not_told = simulate(jobs, fixed, FAMILY, policy, Beliefs.true_runtimes(jobs))
    left = not_told.place == EXPIRED
    assert np.array_equal(told.place == RENTED, left | (not_told.place == RENTED))
    assert np.array_equal(told.start_seconds[~left], not_told.start_seconds[~left])
    assert np.allclose(told.start_seconds[left], jobs.submit_seconds[left])
    # An oracle indeed: without those jobs, whoever stays starts as it did.
    stay = ~left
    remaining = TraceJobs(
        jobs.submit_seconds[stay],
        jobs.runtime_seconds[stay],
        jobs.cores[stay],
        jobs.memory_bytes[stay],
    )
    if stay.any():
        alone = simulate(remaining, fixed, FAMILY, policy, Beliefs.true_runtimes(remaining))
        assert np.array_equal(alone.start_seconds, not_told.start_seconds[stay])


JOBS = 600_000
LOAD = Load(0.2, 0.002)


@pytest.fixture(scope="module")
def exponential():
    """Jobs as the formulas have them: Poisson arrivals, exponential runtimes, one core each."""
    random = np.random.default_rng(7)
    return TraceJobs(
        np.cumsum(random.exponential(5.0, JOBS)),
        random.exponential(500.0, JOBS),
        np.ones(JOBS, dtype=np.int64),
    )


def run(jobs, policy, servers, waits=None):
    """Metrics without the first and last tenth."""
    fixed = FixedMachines(servers, 1, price_per_hour=LOAD.fixed_price)
    family = (RentedType("one", 1, 1.0, 1.0),)
    found = simulate(jobs, fixed, family, policy, Beliefs.true_runtimes(jobs, waits))
    return measured(found, fixed, policy, trim=0.1)


def flags(share, seed):
    """Which jobs, at random."""
    return np.random.default_rng(seed).random(JOBS) < share


SWW = waiting_policy("short-waits-wait", 900.0)
REGARDLESS = WaitingPolicy(900.0, conserving=False)


@pytest.mark.parametrize(
    ("policy", "waits", "servers", "model"),
    [
        (waiting_policy("all-jobs-wait"), None, 108, all_jobs_wait(LOAD, 108)),
        (waiting_policy("no-jobs-wait"), None, 108, no_jobs_wait(LOAD, 108)),
        (waiting_policy("ajw-t", 900.0), None, 93, all_jobs_wait_up_to(LOAD, 93, 900)),
        (waiting_policy("ajw-t", 60.0), None, 103, all_jobs_wait_up_to(LOAD, 103, 60)),
        (SWW, Foresight(), 93, short_waits_wait(LOAD, 93, 900)),
        (
            REGARDLESS,
            Foresight(false_alarms=flags(0.2, 1)),
            85,
            short_waits_wait(LOAD, 85, 900, over=0.2),
        ),
        (
            SWW,
            Foresight(false_alarms=flags(0.3, 2)),
            95,
            short_waits_wait_conserving(LOAD, 95, 900, over=0.3),
        ),
        (
            SWW,
            Foresight(missed=flags(0.5, 3)),
            93,
            short_waits_wait(LOAD, 93, 900, under=0.5),
        ),
        (
            WaitingPolicy(short_seconds=180.0, conserving=False),
            None,
            104,
            long_jobs_wait(LOAD, 104, 180),
        ),
        (
            WaitingPolicy(900.0, 180.0, conserving=False),
            Foresight(),
            90,
            compound(LOAD, 90, 180, 900),
        ),
    ],
    ids=[
        "ajw", "njw", "ajw-t-93", "ajw-t-103", "sww", "sww-over", "sww-over-conserving",
        "sww-under", "ljw", "compound",
    ],
)  # fmt: skip
def test_formulas_agree_with_simulation(exponential, policy, waits, servers, model):
    """Price within 1 %, wait within 15 % (or a second), on exponential jobs."""
    found = run(exponential, policy, servers, waits)
    assert found.price == pytest.approx(float(model.price), rel=0.01)
    assert found.mean_wait_seconds == pytest.approx(float(model.wait_seconds), rel=0.15, abs=1.0)
    owned = LOAD.fixed_price * servers / (found.fixed_utilisation * servers)
    fixed_share = 1.0 - found.rented_work
    assert found.price == pytest.approx(owned * fixed_share + found.rented_work, rel=2e-3)


def test_speculation_costs_what_the_formula_says(exponential):
    """All jobs tried for 180 s: E[min(X, t)] / E[X] of the work (section 7.1)."""
    policy = WaitingPolicy(speculation_seconds=180.0)
    found = run(exponential, policy, 1)
    share = found.trial_cost / found.on_demand_cost
    assert share == pytest.approx(1.0 - math.exp(-0.36), rel=0.01)


def test_a_queue_in_another_order(exponential):
    """The shortest first wait less on average; at random is as good as in order."""
    waits = {
        queue: run(exponential, WaitingPolicy(queue=queue), 104).mean_wait_seconds
        for queue in QUEUES
    }
    assert waits["sjf"] < 0.7 * waits["fcfs"]
    assert waits["random"] == pytest.approx(waits["fcfs"], rel=0.02)
    assert waits["strict-fcfs"] == waits["fcfs"]  # with one core each, nobody can overtake


def test_smallest_machine_that_fits():
    """By cores and memory; what none holds gets several of the largest."""
    jobs = TraceJobs(
        np.arange(5.0),
        np.ones(5),
        np.array([1, 3, 1, 64, 130]),
        np.array([1.0, 1.0, 9.0, 1.0, 1.0]) * GIB,
    )
    requests = jobs.requests
    prices = rents(requests, FAMILY)[requests.of_job] / 0.0481
    assert prices == pytest.approx([1, 4, 4, 64, 192])


def test_wrong_input():
    """Each is named."""
    one = np.ones(2)
    cores = np.ones(2, dtype=np.int64)
    with pytest.raises(InputError, match="ascending"):
        TraceJobs(np.array([2.0, 1.0]), one, cores)
    with pytest.raises(InputError, match="runtime_seconds"):
        TraceJobs(one, -one, cores)
    with pytest.raises(InputError, match="cores"):
        TraceJobs(one, one, 0 * cores)
    with pytest.raises(InputError, match="length"):
        TraceJobs(one, np.ones(3), cores)
    with pytest.raises(InputError, match="waiting_seconds"):
        WaitingPolicy(-1.0)
    with pytest.raises(UnknownNameError, match="queue"):
        WaitingPolicy(queue="lifo")
    with pytest.raises(UnknownNameError, match="waiting policy"):
        waiting_policy("wait")
    with pytest.raises(InputError, match="count"):
        FixedMachines(-1)
    with pytest.raises(InputError, match="price"):
        RentedType("free", 1, 1.0, 0.0)
    jobs = TraceJobs(one, one, cores)
    with pytest.raises(InputError, match="no machine"):
        simulate(jobs, FixedMachines(1), (), WaitingPolicy(), Beliefs.true_runtimes(jobs))
    with pytest.raises(InputError, match="not one for each job"):
        simulate(jobs, FixedMachines(1), FAMILY, WaitingPolicy(), Beliefs(np.ones(3)))
    found = simulate(jobs, FixedMachines(1), FAMILY, WaitingPolicy(), Beliefs.true_runtimes(jobs))
    with pytest.raises(InputError, match="too few jobs"):
        measured(found, FixedMachines(1), WaitingPolicy())
