"""Waiting policies under schedulers of the replay: against the compiled queue, and by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.cloud.waiting.jobs import FixedMachines, TraceJobs, proportional_family
from foresail.cloud.waiting.kernels.waiting import AFTER_TRIAL, EXPIRED, FIXED, RENTED, TRIED
from foresail.cloud.waiting.metrics import measured
from foresail.cloud.waiting.simulating import (
    Beliefs,
    Foresight,
    WaitingPolicy,
    simulate,
    waiting_policy,
)
from foresail.control.policy import parse_policy
from foresail.distributions.basic import Point
from foresail.model.errors import InputError
from foresail.model.protocols import Predictor
from foresail.simulator.replay import replay
from foresail_studies.waiting.renting_scheduler import ReplayScheduling
from made_evaluations import as_part, made_workload, random_jobs

FAMILY = proportional_family()
POLICIES = (
    "all-jobs-wait",
    "no-jobs-wait",
    "all-jobs-wait-threshold",
    "short-waits-wait",
    "long-jobs-wait",
    "compound",
    "speculative",
    "weighing",
)
CONSERVING = "easy(reservations=0)"
"""The first that fits goes."""


def made(seed: int, count: int = 40, widest: int = 9):
    """A busy hour of jobs of users with limits."""
    random = np.random.default_rng(seed)
    runtime = random.exponential(300.0, count)
    return made_workload(
        {
            "submit_seconds": np.sort(random.uniform(0.0, 50.0 * count, count)),
            "runtime_seconds": runtime,
            "requested_seconds": runtime * random.uniform(1.0, 5.0, count) + 1.0,
            "user": [str(each) for each in random.integers(0, 3, count)],
            "tasks": random.integers(1, widest, count),
        }
    )


def told(workload, name: str, foresight: bool) -> Beliefs:
    """What a policy goes by: the truth, an oracle of waits, and waits at random to be weighed."""
    runtime = workload.runtime_seconds
    if name == "weighing":
        waits = np.random.default_rng(1).exponential(400.0, len(workload))
        return Beliefs(runtime, waits, np.full(len(workload), 0.05))
    return Beliefs(
        runtime, Foresight() if foresight and name in ("short-waits-wait", "compound") else None
    )


def under(scheduler: str, workload, fixed, policy, beliefs, **more):
    scheduling = ReplayScheduling(workload, parse_policy(scheduler))
    jobs = TraceJobs.of_workload(workload)
    return scheduling.simulate(jobs, fixed, FAMILY, policy, beliefs, **more)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from(POLICIES),
    st.sampled_from([("fcfs", CONSERVING), ("strict-fcfs", "fcfs")]),
    st.booleans(),
)
def test_as_the_compiled_queue(seed, name, ways, conserving):
    """On one machine, orders that both know: the same starts, places and examples for models."""
    queue, scheduler = ways
    workload = made(seed)
    policy = replace(waiting_policy(name, 400.0, 100.0, queue), conserving=conserving)
    beliefs = told(workload, name, foresight=queue == "fcfs")
    fixed = FixedMachines(1, 8 + seed % 3, own_price_per_core_hour=0.01)
    jobs = TraceJobs.of_workload(workload)
    compiled = simulate(jobs, fixed, FAMILY, policy, beliefs, features_every=3)
    found = under(scheduler, workload, fixed, policy, beliefs, features_every=3)
    assert found.place.tolist() == compiled.place.tolist()
    np.testing.assert_allclose(found.start_seconds, compiled.start_seconds)
    known = np.isin(compiled.place[::3], (FIXED, EXPIRED))
    np.testing.assert_allclose(found.features[known], compiled.features[known], atol=1e-6)


@pytest.mark.parametrize(
    "scheduler",
    ["easy", "easy++", "conservative", "foresail", "fcfs"],
)
def test_when_all_wait_it_is_the_plain_replay(scheduler):
    """With whole seconds, so that much happens at one instant; compiled, and event by event."""
    workload = random_jobs(200, weeks=0.02)
    plain = replay(workload, parse_policy(scheduler)).jobs["start_seconds"]
    beliefs = Beliefs(workload.runtime_seconds)
    for policy, every in (
        ("all-jobs-wait", 0),
        ("all-jobs-wait", 400),
        ("all-jobs-wait-threshold", 0),
    ):
        found = under(
            scheduler,
            workload,
            FixedMachines(4, 16),
            waiting_policy(policy, 1e9),
            beliefs,
            features_every=every,
        )
        assert found.start_seconds.tolist() == plain.to_list()
        assert (found.place == FIXED).all()


def hand_drawn(patience: float, name: str = "all-jobs-wait-threshold"):
    """Four cores; limits are right.

    1 runs on three cores from 0 to 100. 2 wants all four. 3 (1 core, 80 s) and 4 (1 core, 90 s)
    come at 10; 5 (4 cores) at 20.
    """
    workload = made_workload(
        {
            "submit_seconds": [0.0, 5.0, 10.0, 10.0, 20.0],
            "runtime_seconds": [100.0, 50.0, 80.0, 90.0, 30.0],
            "requested_seconds": [100.0, 50.0, 80.0, 90.0, 30.0],
            "tasks": [3, 4, 1, 1, 4],
        }
    )
    policy = waiting_policy(name, patience, 60.0)
    beliefs = Beliefs(workload.runtime_seconds)
    found = under("easy", workload, FixedMachines(1, 4), policy, beliefs)
    return found.start_seconds.tolist(), found.place.tolist()


def test_by_hand():
    """3 is backfilled; 4 must not delay 2; who waits for long, and who is short, is rented."""
    starts, places = hand_drawn(1000.0)
    assert starts == [0.0, 100.0, 10.0, 150.0, 240.0]
    assert places == [FIXED] * 5
    # 2 gives up at 65: then nobody holds 4 up, but the core is 3's until 90. 4 goes at 70.
    starts, places = hand_drawn(60.0)
    assert starts == [0.0, 65.0, 10.0, 70.0, 80.0]
    assert places == [FIXED, EXPIRED, FIXED, EXPIRED, EXPIRED]
    # 2 gives up at 82, 4 takes the core of 3 at 90, and 5 waits for it in vain.
    starts, places = hand_drawn(85.0)
    assert starts == [0.0, 90.0, 10.0, 90.0, 105.0]
    assert places == [FIXED, EXPIRED, FIXED, FIXED, EXPIRED]
    # Short jobs are rented: 2 and 5, so that 3 takes the core that is free, and 4 follows.
    starts, places = hand_drawn(1000.0, "long-jobs-wait")
    assert starts == [0.0, 5.0, 10.0, 90.0, 20.0]
    assert places == [FIXED, RENTED, FIXED, FIXED, RENTED]
    # 2 is tried from 5 to 55 and is done; 4 is tried until 70 and comes back; 5 is done.
    starts, places = hand_drawn(1000.0, "speculative")
    assert starts == [0.0, 5.0, 10.0, 90.0, 20.0]
    assert places == [FIXED, TRIED, FIXED, FIXED + AFTER_TRIAL, TRIED]


@settings(max_examples=15, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from(POLICIES),
    st.sampled_from(
        ["easy", "easy-sjbf", "conservative", "foresail", "prio", "easy(queue=shortest),recent"]
    ),
    st.integers(1, 4),
)
def test_nothing_lost_and_never_too_much(seed, name, scheduler, count):
    """Every job runs once, after it came and within its patience, and the machines hold it."""
    workload = made(seed, widest=14)
    fixed = FixedMachines(count, 5)
    policy = waiting_policy(name, 400.0, 100.0)
    found = under(scheduler, workload, fixed, policy, told(workload, name, foresight=True))
    start, end = found.start_seconds, found.start_seconds + workload.runtime_seconds
    waited = start - TraceJobs.of_workload(workload).submit_seconds
    assert (waited >= -1e-6).all()
    assert (waited <= policy.rules.patience_seconds + 100.0 + 1e-6).all()
    on_fixed = found.place % AFTER_TRIAL == FIXED
    for moment in start[on_fixed]:
        busy = on_fixed & (start <= moment) & (moment < end)
        assert workload.cpus[busy].sum() <= fixed.total_cores
    assert (found.place[workload.cpus > fixed.total_cores] == RENTED).all()
    result = measured(found, fixed, policy)
    assert result.jobs == len(workload)
    assert 0.0 <= result.rented_work <= 1.0


class Witness(Predictor):
    """A predictor that keeps what it is told of ends."""

    def __init__(self) -> None:
        self.ends: dict[str, float] = {}

    def predict(self, job, now):
        return Point(100.0)

    def observe(self, job, outcome):
        assert job.job_id == outcome.job_id not in self.ends
        assert [*self.ends.values()] == sorted(self.ends.values())
        self.ends[job.job_id] = outcome.end_seconds


@pytest.mark.parametrize("name", ["compound", "all-jobs-wait-threshold", "speculative"])
def test_predictors_learn_of_rented_jobs(name):
    """Every job that the machines could have held, once, in the order in which all end."""
    workload = made(4)
    witness = Witness()
    policy = replace(parse_policy("easy"), predictor=as_part(witness))
    found = ReplayScheduling(workload, policy).simulate(
        TraceJobs.of_workload(workload),
        FixedMachines(1, 8),
        FAMILY,
        waiting_policy(name, 400.0, 100.0),
        Beliefs(workload.runtime_seconds),
    )
    assert len({*found.place.tolist()}) > 1
    ends = found.start_seconds + workload.runtime_seconds
    expected = dict(zip(workload.jobs["job_id"].to_list(), ends.tolist(), strict=True))
    assert witness.ends == pytest.approx(expected)


def test_machines_as_nodes():
    """Tasks lie on several machines where each finds room, under schedulers that know nodes."""
    workload = made_workload(
        {
            "submit_seconds": [0.0, 1.0, 2.0, 3.0],
            "runtime_seconds": [10.0] * 4,
            "tasks": [4, 2, 1, 1],
            "cpus_per_task": [1.0, 2.0, 3.0, 2.0],
        }
    )
    policy = waiting_policy("all-jobs-wait")
    beliefs = Beliefs(workload.runtime_seconds)
    for scheduler in ("prio", "3sigma(preemption=no)"):
        found = under(scheduler, workload, FixedMachines(2, 3), policy, beliefs)
        # 1 leaves one core on each of them, or two on one; 2 needs two machines with two cores.
        assert found.place.tolist() == [FIXED] * 4, scheduler
        assert found.start_seconds[0] == 0.0
        assert (found.start_seconds[1:] >= 2.0).all()
        # No machine holds a task of three cores: it is rented.
        small = under(scheduler, workload, FixedMachines(3, 2), policy, beliefs)
        assert small.place.tolist() == [FIXED, FIXED, RENTED, FIXED], scheduler


def test_memory_counts_where_the_scheduler_counts_it():
    """Two jobs of one core that need a whole machine's memory: one after the other on nodes."""
    workload = made_workload(
        {
            "submit_seconds": [0.0, 1.0, 2.0],
            "runtime_seconds": [10.0] * 3,
            "memory_bytes_per_task": [8.0, 8.0, 9.0],
        }
    )
    beliefs = Beliefs(workload.runtime_seconds)
    fixed = FixedMachines(1, 4, memory_bytes=8.0)
    found = {
        scheduler: under(scheduler, workload, fixed, waiting_policy("all-jobs-wait"), beliefs)
        for scheduler in ("prio", "easy")
    }
    assert found["prio"].start_seconds.tolist() == [0.0, 10.0, 2.0]
    assert found["easy"].start_seconds.tolist() == [0.0, 1.0, 2.0]
    assert found["prio"].place.tolist() == found["easy"].place.tolist() == [FIXED, FIXED, RENTED]


def test_jobs_do_not_wait_for_others():
    """Dependencies are left out, as in the compiled simulation."""
    workload = made_workload(
        {"submit_seconds": [0.0, 1.0], "runtime_seconds": [10.0, 5.0], "after_jobs": [None, "1"]}
    )
    beliefs = Beliefs(workload.runtime_seconds)
    found = under("easy", workload, FixedMachines(1, 4), waiting_policy("all-jobs-wait"), beliefs)
    assert found.start_seconds.tolist() == [0.0, 1.0]


def test_what_cannot_be_asked():
    """Gpus that nobody counts."""
    gpus = made_workload(
        {"submit_seconds": [0.0, 1.0], "runtime_seconds": [1.0, 1.0], "gpus_per_task": [1.0, 0.0]}
    )
    machine = FixedMachines(1, 8, gpus=2)
    scheduling = ReplayScheduling(gpus, parse_policy("easy"))
    family = tuple(replace(each, gpus=1.0) for each in FAMILY)
    with pytest.raises(InputError, match="no gpus"):
        scheduling.simulate(
            TraceJobs.of_workload(gpus), machine, family, WaitingPolicy(), Beliefs(np.ones(2))
        )


def test_no_machines():
    """All are rented one at once."""
    workload = made(3)
    beliefs = Beliefs(workload.runtime_seconds)
    found = under("easy", workload, FixedMachines(0, 8), waiting_policy("all-jobs-wait"), beliefs)
    assert (found.place == RENTED).all()
    assert found.start_seconds.tolist() == workload.jobs["submit_seconds"].to_list()
