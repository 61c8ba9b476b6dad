"""Futures by the compiled replay are those of the event engine, job by job."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import numpy as np
import pytest

from believed_draws import forecast_waiting
from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.distributions.basic import Uniform
from foresail.explain import futures
from foresail.explain import replayed_futures as module
from foresail.explain.arrivals import DrawnArrivals
from foresail.explain.futures import stand_in_reason, starts_in_futures
from foresail.explain.job_columns import columns_of
from foresail.explain.outlook import RecentJob, outlook_of
from foresail.explain.replayed_futures import (
    ReplayedFutures,
    affordable_futures,
    unknown_to_replay,
)
from foresail.model.cluster import Cluster
from foresail.model.event import Ended, EstimateExpired, Outcome, Submitted
from foresail.model.job import Job
from foresail.record.log_text import MemoryLog
from foresail.record.records import Manifest
from foresail.simulator.driver import simulate_forward
from toys import Requested

POLICIES = (
    "easy,requested,incremental",
    "easy,requested,doubling",
    "easy(order=shortest),requested,quantile",
    "easy(queue=shortest,plan=q75)",
    "easy(reservations=3),requested,incremental",
    "easy(age_limit_seconds=300)",
    "in_order(queue=-wait/predicted)",
    "conservative,requested,incremental",
    "guarded_backfilling",
    "guarded_backfilling(patience=0.3),requested,incremental",
)


class Short(Requested):
    """Believes in a third of what is requested, more or less, so that estimates expire."""

    def predict(self, job, now):
        return Uniform(0.2 * job.requested_seconds, 0.5 * job.requested_seconds)


def job(number, submit, random):
    seconds = float(random.integers(50, 900))
    return Job.gang(
        f"j{number}", submit, int(random.integers(1, 9)), seconds, f"u{random.integers(5)}"
    )


def standing(policy, seed, count=70, now=400.0):
    """A run that has gone on for some minutes; jobs take what they requested."""
    random = np.random.default_rng(seed)
    scheduler, _, correction = parse_policy(policy).build()
    log = MemoryLog(Manifest(policy, Cluster.of_processors(16)))
    controller = Controller(Cluster.of_processors(16), scheduler, Short(), correction, log=log)
    submits = np.sort(random.uniform(0.0, now, count)).round(2)
    events = [Submitted(each, job(at, each, random)) for at, each in enumerate(submits.tolist())]
    while True:
        ends = [
            (each.start_seconds + each.job.requested_seconds, 0, each.job.job_id)
            for each in controller.running.values()
        ]
        expired = [
            (each.expected_end_seconds, 1, each.job.job_id)
            for each in controller.running.values()
            if each.expected_end_seconds < each.start_seconds + each.job.requested_seconds
        ]
        coming = [(events[0].time, 2, "")] if events else []
        time, what, job_id = min([*ends, *expired, *coming, (math.inf, 3, "")])
        if time > now:
            break
        if what == 0:
            begun = controller.running[job_id].start_seconds
            controller.step(time, [Ended(time, Outcome(job_id, begun, time))])
        elif what == 1:
            controller.step(time, [EstimateExpired(time, job_id)])
        else:
            controller.step(time, [events.pop(0)])
    controller.step(now, [])
    assert len(controller.pending) > 20
    assert len(controller.running) > 1
    return controller


def true_runtimes(controller, arrivals=()):
    jobs = [each.job for each in (*controller.pending, *controller.running.values())]
    return {each.job_id: each.requested_seconds for each in (*jobs, *arrivals)}


def by_events(policy, controller, arrivals=()):
    scheduler, _, correction = parse_policy(policy).build()
    fork = controller.fork(scheduler, copy.deepcopy(controller.predictor), correction)
    outcomes = simulate_forward(fork, true_runtimes(controller, arrivals), arrivals)
    return {each.job_id: each.start_seconds for each in outcomes}


def drawn(outlook):
    lasting = [[each.job.requested_seconds for each in outlook.waiting]] * 2
    ends = [[each.start_seconds + each.job.requested_seconds for each in outlook.running]] * 2
    return np.array(lasting), np.array(ends)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("policy", POLICIES)
def test_starts_are_those_of_the_event_engine(policy, seed):
    """With true runtimes; estimates expire and are corrected, jobs come to be due."""
    controller = standing(policy, seed)
    outlook = outlook_of(controller)
    assert unknown_to_replay(outlook) is None
    starts = starts_in_futures(outlook, *drawn(outlook), np.random.default_rng(0))
    expected = by_events(policy, controller)
    ids = [*outlook.waiting.jobs.places]
    assert starts[0] == pytest.approx([expected[job_id] for job_id in ids])
    assert starts[1].tolist() == starts[0].tolist()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("policy", POLICIES)
def test_jobs_that_come_are_taken_as_the_event_engine_does(policy, seed):
    """The futures differ by what comes; each is by itself."""
    controller = standing(policy, seed)
    random = np.random.default_rng(100 + seed)
    outlook = outlook_of(controller)
    kept = [job(f"c{at}", 400.0, random) for at in range(40)]
    recent = tuple(
        _recent(controller.as_if_submitted(each), each.requested_seconds) for each in kept
    )
    outlook = replace(outlook, recent=recent)
    seconds = np.sort(random.uniform(401.0, 3000.0, (2, 40)).round(2))
    numbers = np.array([random.permutation(40) for _ in range(2)])
    runtimes = np.array([[kept[at].requested_seconds for at in row] for row in numbers])
    futures = ReplayedFutures(outlook, DrawnArrivals(seconds, numbers), runtimes)
    starts = futures.starts(*drawn(outlook), 0, 2)
    ids = [*outlook.waiting.jobs.places]
    for future in range(2):
        coming = [
            replace(kept[at], job_id=f"n{place}", submit_seconds=time)
            for place, (at, time) in enumerate(
                zip(numbers[future].tolist(), seconds[future].tolist(), strict=True)
            )
        ]
        expected = by_events(policy, controller, coming)
        assert starts[future] == pytest.approx([expected[job_id] for job_id in ids])


def _recent(pending, runtime):
    return RecentJob(pending, "all", 0.0, 400.0, runtime)


@pytest.mark.parametrize("policy", POLICIES)
def test_what_would_be_submitted_is_asked_as_if_it_were(policy):
    """Now, and for schedulers that compare with nothing, later."""
    controller = standing(policy, 1)
    now = replace(job("now", 400.0, np.random.default_rng(7)), submit_seconds=400.0)
    later = replace(now, job_id="later", submit_seconds=900.0)
    for other in [now] if "guarded" in policy else [now, later]:
        outlook = outlook_of(controller, [other])
        assert unknown_to_replay(outlook) is None
        starts = starts_in_futures(outlook, *drawn(outlook), np.random.default_rng(0))
        ids = [*outlook.waiting.jobs.places]
        expected = by_events(policy, controller, [other])
        assert starts[0] == pytest.approx([expected[job_id] for job_id in ids])


def test_what_fits_nowhere_never_starts_and_holds_up_nobody():
    controller = standing("easy", 0)
    wide = Job.gang("wide", 400.0, 17, 10.0)
    found = forecast_waiting(outlook_of(controller, [wide]), scenarios=3)
    assert math.isinf(found["wide"].start.low)
    assert found["wide"].never == 1.0
    without = forecast_waiting(outlook_of(controller), scenarios=3)
    assert {each: found[each] for each in without} == dict(without)


def test_of_more_work_fewer_futures_are_replayed_which_are_the_first(monkeypatch):
    outlook = outlook_of(standing("guarded_backfilling", 0))
    lasting, ends = (np.repeat(each[:1], 100, axis=0) for each in drawn(outlook))
    lasting *= np.linspace(0.5, 1.0, 100)[:, None]
    whole = starts_in_futures(outlook, lasting, ends, np.random.default_rng(0))
    monkeypatch.setattr(module, "_PROCESSOR_SECONDS", 1e6)
    seconds = 1e6 / affordable_futures(outlook, 0)
    monkeypatch.setattr(module, "_PROCESSOR_SECONDS", 40.5 * seconds)
    some = starts_in_futures(outlook, lasting, ends, np.random.default_rng(0))
    assert len(whole) == 100
    assert some.tolist() == whole[:40].tolist()
    assert affordable_futures(outlook, 2 * len(outlook.waiting)) == 0


def test_what_a_simpler_rule_stands_in_for_is_said():
    """Several partitions, jobs that wait for others, and too many jobs; else nothing."""
    outlook = outlook_of(standing("easy", 0))
    (room,), (first, *others) = outlook.room.values(), outlook.waiting
    assert stand_in_reason(outlook) is None
    assert stand_in_reason(outlook, 100_000) == "so many jobs"
    assert stand_in_reason(replace(outlook, rule=None)) == "such a policy or so many jobs"
    assert stand_in_reason(replace(outlook, room={"a": room, "b": room})) == "several partitions"

    def with_first(**changes):
        instead = replace(first, job=replace(first.job, **changes))
        waiting = replace(outlook.waiting, jobs=columns_of([instead, *others]))
        return replace(outlook, waiting=waiting)

    after = (others[0].job.job_id,)
    assert stand_in_reason(with_first(after=after)) == "jobs that wait for others"


def test_threads_that_draw_ask_for_no_higher_priority_than_there_is(monkeypatch):
    """An ordinary user may only lower it: under ``nice -n 15`` a 10 is refused."""
    asked = []
    monkeypatch.setattr(futures.os, "getpriority", lambda kind, who: 15)
    monkeypatch.setattr(futures.os, "setpriority", lambda kind, who, nice: asked.append(nice))
    futures._let_others_first()
    assert asked == [15]
