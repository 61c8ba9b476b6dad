"""The fewest of the youngest jobs are stopped, as if one after the other were left out."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.control.policy import parse_policy
from foresail.distributions.basic import Point
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import Placement
from foresail.model.job import DeadlineValue, Job, Stage
from foresail.model.placing import Rooms
from foresail.model.view import ClusterView, PendingJob, RunningJob
from foresail.schedulers.stopping import Priority, PriorityParameters
from foresail.simulator.conditions import ClusterConditions
from made_scenarios import simulate_on_nodes
from made_workloads import workload

_NODES = [Node(f"n{number}", Resources(cpus=8.0)) for number in range(6)]
_CLUSTER = Cluster((Partition("all", Resources(cpus=48.0), tuple(_NODES)),))


def _job(name, tasks, cpus, urgent):
    value = DeadlineValue(100.0) if urgent else None
    return Job(name, 0.0, (Stage(tasks, Resources(cpus=cpus)),), value=value)


def _one_by_one(view):
    """Who starts and is stopped, with a look for places after every single victim."""
    room, stopped, starts = Rooms().at(view), [], []
    victims = [each for each in view.running if each.job.deadline_seconds is None]
    for job in sorted((each.job for each in view.pending), key=lambda job: job.value is None):
        placement = room.placement(job)
        if placement is not None:
            room.take(job, placement)
            starts.append((job.job_id, placement))
            continue
        gone = 0
        while job.value is not None and placement is None and gone < len(victims):
            gone += 1
            room.add(victims[-gone].job, victims[-gone].placement)
            placement = room.placement(job)
        for each in victims[len(victims) - gone :]:
            room.take(each.job, each.placement)
        if placement is not None:
            room.take(job, placement)
            stopped += [victims.pop().job.job_id for _ in range(gone)]
    return starts, stopped


@given(
    running=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4), st.booleans()), max_size=14),
    pending=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 8), st.booleans()), max_size=8),
)
def test_the_fewest_of_the_youngest_are_stopped(running, pending):
    free = {each.name: 8.0 for each in _NODES}
    jobs = []
    for number, (node, cpus, urgent) in enumerate(running):
        if free[f"n{node}"] >= cpus:
            free[f"n{node}"] -= cpus
            place = Placement((("all", 1),), ((f"n{node}", 1),))
            job = _job(f"r{number}", 1, float(cpus), urgent)
            jobs.append(RunningJob(job, 0.0, number, place, Point(9.0), 9.0))
    waiting = [
        PendingJob(_job(f"p{number}", tasks, float(cpus), urgent), number, Point(9.0), 9.0)
        for number, (tasks, cpus, urgent) in enumerate(pending)
    ]
    rooms = {name: Resources(cpus=cpus) for name, cpus in free.items()}
    total = {"all": Resources(cpus=sum(free.values()))}
    view = ClusterView(0.0, _CLUSTER, total, tuple(waiting), tuple(jobs), rooms)
    decided = Priority(PriorityParameters()).decide(view)
    found = [(each.job_id, each.placement) for each in decided.starts]
    assert (found, [each.job_id for each in decided.preemptions]) == _one_by_one(view)


def _urgent_jobs_over_a_long_one(policy):
    """A job of 1000 s on the whole machine, and one with a deadline every 200 s; its starts."""
    jobs = {"long": {"tasks": 4, "runtime_seconds": 1000.0}}
    for number in range(30):
        at = 200.0 * (number + 1)
        limits = {"submit_seconds": at, "deadline_seconds": at + 120.0}
        jobs[f"u{number}"] = {"tasks": 4, "runtime_seconds": 60.0, **limits}
    cycle = {"conditions": ClusterConditions(10.0)} if policy.startswith("3sigma") else {}
    schedule = simulate_on_nodes(workload(jobs), parse_policy(policy), **cycle)
    runs = schedule.jobs.filter(job_id="long").sort("start_seconds")
    return runs["end_seconds"].to_numpy() - runs["start_seconds"].to_numpy()


@pytest.mark.parametrize("policy", ["priority", "3sigma"])
def test_a_stopped_job_runs_twice_as_long_before_it_is_stopped_again(policy):
    assert len(_urgent_jobs_over_a_long_one(policy)) > 20
    lasted = _urgent_jobs_over_a_long_one(f"{policy}(back_off_seconds=60)")
    assert lasted[-1] == 1000.0
    assert 1 < len(lasted) <= 3 + math.log2(1000 / 60)
    for attempt, seconds in enumerate(lasted[1:-1]):
        assert seconds >= 60.0 * 2**attempt


def test_the_first_stop_waits_for_nothing_and_the_next_for_no_event():
    """The urgent job that comes while the other is protected starts when that is over."""
    lasted = _urgent_jobs_over_a_long_one("priority(back_off_seconds=150)")
    assert lasted[:3].tolist() == [200.0, 150.0, 300.0]
