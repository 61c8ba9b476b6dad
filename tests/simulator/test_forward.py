"""Simulating forward: the rest of a run, from any moment of it, is the rest of that run."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

from believed_draws import draw_runtimes
from foresail.checks.rules import tiny_workload
from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.distributions.basic import Point, Uniform
from foresail.model.cluster import Cluster
from foresail.model.decision import Decision, Placement, Start
from foresail.model.event import IN_CYCLES, PREDICTSIM, STANDARD, Ended, Submitted
from foresail.model.job import Job
from foresail.model.protocols import Predictor
from foresail.record.records import EventTaken, Manifest
from foresail.record.run_fold import RunFold
from foresail.simulator.conditions import IDEAL, ClusterConditions, random_outages
from foresail.simulator.driver import simulate_forward
from foresail.simulator.engine import simulate_events
from foresail.traces.nodes import cluster_of
from made_workloads import busy_workload, random_workload, workload
from toys import Constant, Doubling, Easy, PreemptsOnce, Requested, Scripted


class Forking:
    """A log that notes what ends, and after some steps forks the controller that writes it."""

    def __init__(self, cluster, conventions, every):
        self.records = [Manifest("toy", cluster, conventions)]
        self.every, self.steps = every, 0
        self.ended, self.moments = [], []
        self.controller: Controller | None = None
        self.parts = lambda controller: None

    def append(self, record):
        self.records.append(record)
        if isinstance(record, EventTaken) and isinstance(record.event, Ended):
            self.ended.append(record.event.outcome)

    def commit(self):
        self.steps += 1
        if self.steps % self.every == 0:
            fork = self.controller.fork(*self.parts(self.controller))
            self.moments.append((len(self.ended), fork, len(self.records)))


def with_predictor(build):
    """A fresh scheduler and correction, and a copy of the predictor that has learned."""

    def parts(controller):
        scheduler, _, correction = build()
        return scheduler, copy.deepcopy(controller.predictor), correction

    return parts


def lived(made, cluster, build, conventions=STANDARD, conditions=IDEAL, **options):
    """A run, and where it stood after every so many steps."""
    log = Forking(cluster, conventions, options.pop("every", 15))
    log.parts = options.pop("parts", None) or with_predictor(build)
    log.controller = Controller(cluster, *build(), conventions, log)
    simulate_events(made, log.controller, "toy", conditions=conditions, **options)
    assert len(log.moments) > 1
    return log


def refolded(log, told, build, conventions, truth):
    """A fresh controller that goes on from what the first records lead to."""
    controller = Controller(log.controller.cluster, *build(), conventions)
    if controller.predictor.needs_truth:
        controller.predictor.reveal(truth)
    fold = RunFold(controller.compares_with)
    for record in log.records[:told]:
        fold.take(record)
    controller.take_over(fold)
    return controller


def in_order(outcomes):
    return sorted(outcomes, key=lambda each: (each.end_seconds, each.job_id, each.attempt))


def later(made, now):
    return [job for job in made.specifications() if job.submit_seconds > now]


POLICIES = [
    "fcfs",
    "easy",
    "easy(order=shortest),recent,incremental",
    "conservative,recent,doubling",
    "foresail",
    "guarded(patience=0.1),clairvoyant",
]


@pytest.mark.parametrize("conventions", [STANDARD, PREDICTSIM], ids=lambda each: each.name)
@pytest.mark.parametrize("text", POLICIES)
def test_the_rest_of_a_run(text, conventions):
    """From a fork of its controller, and from its records alone: each attempt as it was."""
    build = parse_policy(text).build
    made = busy_workload(len(text))
    log = lived(made, Cluster.of_processors(made.processors), build, conventions)
    for done, fork, told in log.moments:
        for controller in (fork, refolded(log, told, build, conventions, made.truth())):
            rest = simulate_forward(controller, made.truth(), later(made, controller.now))
            assert in_order(rest) == in_order(log.ended[done:])


@pytest.mark.parametrize("is_rough", [False, True], ids=["ideal", "rough"])
@pytest.mark.parametrize(
    ("text", "cycle", "jobs"),
    [
        ("prio,requested,doubling", None, 80),
        ("prio,recent,incremental", 4.0, 80),
        ("capacity,requested,doubling", 4.0, 80),
        ("tetrisched-ng", 10.0, 15),
        pytest.param("tetrisched", 10.0, 15, marks=pytest.mark.slow),
    ],
)
def test_the_rest_of_a_run_on_nodes(text, cycle, jobs, is_rough):
    """Cycles, deadlines, preemption, promised reservations; delays, noise and nodes that fail."""
    made = random_workload(2, jobs)
    cluster = cluster_of(made.nodes)
    conditions = ClusterConditions(cycle)
    if is_rough:
        outages = random_outages(cluster, 400.0, 150.0, 30.0, 2)
        conditions = ClusterConditions(cycle, 0.5, 0.3, outages, seed=2)
    conventions = STANDARD if cycle is None else IN_CYCLES
    policy = parse_policy(text) if cycle is None else parse_policy(text).in_cycles(cycle)
    log = lived(made, cluster, policy.build, conventions, conditions, every=len(made) // 3)
    because = {each.ended_because.value for each in log.ended}
    assert because >= ({"completed", "lost"} if is_rough else {"completed"})
    for done, fork, told in log.moments:
        again = refolded(log, told, policy.build, conventions, made.truth())
        for controller in (fork, again):
            coming = later(made, controller.now)
            rest = simulate_forward(controller, made.truth(), coming, conditions=conditions)
            assert in_order(rest) == in_order(log.ended[done:])


def test_the_rest_of_a_run_that_is_being_told_to_stop():
    """At the moment of its preemption the job still runs; limits end others."""
    jobs = [(0, 4, 100, 80), (30, 4, 10, None), (40, 1, 50, 20)]
    made = tiny_workload(jobs)
    build = lambda: (PreemptsOnce("1"), Constant(100.0), Doubling())  # noqa: E731
    # a scheduler that has stopped its job does so no more
    log = lived(
        made,
        Cluster.of_processors(4),
        build,
        every=1,
        parts=lambda each: (copy.deepcopy(each.scheduler), Constant(100.0), Doubling()),
        enforce_limits=True,
    )
    assert any(fork.state.stopping for _, fork, _ in log.moments)
    assert {each.ended_because.value for each in log.ended} == {"preempted", "limit", "completed"}
    for done, fork, _ in log.moments:
        coming = later(made, fork.now)
        rest = simulate_forward(fork, made.truth(), coming, enforce_limits=True)
        assert in_order(rest) == in_order(log.ended[done:])


def standing(*jobs, now=100.0, predictor=None):
    """A controller under EASY on 4 cpus at a moment; jobs were submitted at the times given."""
    controller = Controller(
        Cluster.of_processors(4), Easy(), predictor or Requested(), Doubling(), STANDARD
    )
    for time in sorted({job.submit_seconds for job in jobs}):
        arrived = [Submitted(time, job) for job in jobs if job.submit_seconds == time]
        controller.step(time, arrived)
    controller.step(now, [])
    return controller


def test_by_hand():
    """Job a has run 100 of 150 s, b waits for it, and c, which comes at 120, goes before b.

    d has run for longer than it is said to: it ends now.
    """
    jobs = [Job.gang("a", 0.0, 3, 200.0), Job.gang("b", 10.0, 4, 60.0), Job.gang("d", 0.0, 1, 90.0)]
    controller = standing(*jobs)
    rest = simulate_forward(
        controller.fork(Easy(), Requested(), Doubling()),
        {"a": 150.0, "b": 50.0, "c": 20.0, "d": 70.0},
        [Job.gang("c", 120.0, 1, 80.0)],
    )
    assert [(each.job_id, each.start_seconds, each.end_seconds) for each in rest] == [
        ("d", 0.0, 100.0),
        ("c", 120.0, 140.0),
        ("a", 0.0, 150.0),
        ("b", 150.0, 200.0),
    ]
    assert set(controller.running) == {"a", "d"}  # what it was forked from stands where it stood
    assert controller.now == 100.0


def test_what_is_given_nothing_of():
    """A job without a runtime is named; one that never ends is not among those that do."""
    controller = standing(Job.gang("a", 0.0, 4, 200.0), Job.gang("b", 10.0, 4, 60.0))
    fork = controller.fork(Easy(), Requested(), Doubling())
    with pytest.raises(KeyError, match="b"):
        list(simulate_forward(fork, {"a": 150.0}))
    fork = controller.fork(Easy(), Requested(), Doubling())
    assert list(simulate_forward(fork, {"a": math.inf, "b": 1.0})) == []


class Believes(Predictor):
    """One belief about all jobs."""

    def __init__(self, belief):
        self.belief = belief

    def predict(self, job, now):
        return self.belief

    def observe(self, job, outcome):
        pass


def test_draws_are_of_what_is_left_to_believe():
    """Waiting jobs as believed; running ones more than they have run; beyond that, the estimate."""
    jobs = [Job.gang("a", 0.0, 2), Job.gang("late", 60.0, 2), Job.gang("b", 70.0, 4)]
    controller = standing(*jobs, predictor=Believes(Uniform(50.0, 150.0)))
    drawn = draws(controller, 2_000, 7)
    assert set(drawn) == {"a", "late", "b"}
    assert drawn["a"].min() > 100.0
    assert drawn["a"].mean() == pytest.approx(125.0, rel=0.02)
    assert drawn["late"].min() >= 50.0
    assert drawn["b"].mean() == pytest.approx(100.0, rel=0.02)
    alone = draws(standing(jobs[0], predictor=Believes(Uniform(50.0, 150.0))), 2_000, 7)
    np.testing.assert_array_equal(alone["a"], drawn["a"])
    assert (draws(controller, 9, 8)["a"] != drawn["a"][:9]).any()
    surpassed = standing(Job.gang("a", 0.0, 2, 300.0), predictor=Believes(Point(30.0)))
    surpassed.state.correct("a", 120.0)
    assert draws(surpassed, 3, 0)["a"].tolist() == [120.0] * 3


def test_draws_on_slower_nodes_are_of_the_preferred_runtime():
    """It has run for 12 s where it takes 1.5 times as long: more than 8 of its own."""
    made = workload({"a": {"preferred": "partition:r2", "slowdown_elsewhere": 1.5}})
    start = Decision((Start("a", Placement((("r1", 1),), (("n11", 1),))),))
    belief = Believes(Uniform(4.0, 20.0))
    controller = Controller(cluster_of(made.nodes), Scripted(start), belief, Doubling())
    controller.step(0.0, [Submitted(0.0, job) for job in made.specifications()])
    controller.step(12.0, [])
    drawn = draws(controller, 500, 3)["a"]
    assert drawn.min() > 8.0
    assert drawn.max() <= 20.0


def draws(controller, count, seed):
    running = controller.running.values()
    return draw_runtimes(controller.pending, running, controller.now, count, seed)
