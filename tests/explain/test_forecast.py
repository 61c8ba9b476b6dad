"""Forecasts: the compiled futures are those of the event engine, and say what they should."""

from __future__ import annotations

import copy
import math
import time
from dataclasses import replace

import numpy as np
import pytest

from believed_draws import draw_runtimes, forecast_running, forecast_waiting
from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.distributions.basic import Uniform
from foresail.explain import futures as module
from foresail.explain.arrivals import draw_arrivals
from foresail.explain.forecast import Range, width_causes
from foresail.explain.outlook import front_of, outlook_of
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.event import Ended, EndedBecause, Held, NodeDrained, Outcome, Submitted
from foresail.model.job import (
    DeadlineValue,
    Dependency,
    DependencyKind,
    Job,
    Stage,
    StartConditions,
)
from foresail.record.job_life import EndedAttempt
from foresail.record.log_text import MemoryLog
from foresail.record.records import Manifest
from foresail.simulator.driver import simulate_forward
from toys import Requested


class UpToRequested(Requested):
    """Believes that a job needs anything up to what it asks for."""

    def predict(self, job, now):
        return Uniform(0.1 * job.requested_seconds, job.requested_seconds)


def standing(scheduler, events, *, now=0.0, cluster=None, predictor=None, log=None):
    build, _, correction = parse_policy(f"{scheduler},requested,requested").build()
    controller = Controller(
        cluster or Cluster.of_processors(8),
        build,
        predictor or UpToRequested(),
        correction,
        log=log,
    )
    controller.step(0.0, events)
    if now:
        controller.step(now, [])
    return controller


def jobs(seed, count, after=0.2, partitions=(None,)):
    random = np.random.default_rng(seed)
    for number in range(count):
        job = Job.gang(
            f"j{number}",
            0.0,
            int(random.integers(1, 9)),
            float(random.integers(10, 200)),
            "ann",
        )
        before = int(random.integers(max(1, number)))
        waits = (f"j{before}",) if number and random.random() < after else ()
        partition = partitions[random.integers(len(partitions))]
        yield Submitted(0.0, replace(job, after=waits, partition=partition))


def simulated(controller, scheduler, seed):
    """When jobs start in the one future of a seed, by the event engine and the policy itself."""
    build, _, correction = parse_policy(f"{scheduler},requested,requested").build()
    running = controller.running.values()
    drawn = draw_runtimes(controller.pending, running, controller.now, 1, seed)
    fork = controller.fork(build, copy.deepcopy(controller.predictor), correction)
    runtimes = {job_id: float(values[0]) for job_id, values in drawn.items()}
    outcomes = simulate_forward(fork, runtimes)
    return {each.job_id: each.start_seconds for each in outcomes}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "scheduler", ["easy(plan=requested)", "easy(queue=requested,plan=requested)", "in_order"]
)
@pytest.mark.parametrize(
    ("cpus", "partitions"),
    [
        ({"all": 8}, (None,)),
        ({"a": 8, "b": 8}, ("a", "b", None)),
        ({"a": 5, "b": 8, "c": 3}, (None, None, "b")),
    ],
    ids=["one", "equal", "unequal"],
)
def test_a_future_is_what_the_event_engine_makes_of_its_runtimes(scheduler, seed, cpus, partitions):
    """Gangs, dependencies, jobs that run already, partitions of their own or any that they fit."""
    sizes = {name: Resources(cpus=float(count)) for name, count in cpus.items()}
    cluster = Cluster(tuple(Partition(name, total) for name, total in sizes.items()))
    controller = standing(scheduler, jobs(seed, 60, 0.2, partitions), now=3.0, cluster=cluster)
    assert len(controller.running) > 0
    expected = simulated(controller, scheduler, seed)
    found = forecast_waiting(outlook_of(controller), scenarios=1, seed=seed)
    assert set(found) == {each.job.job_id for each in controller.pending}
    for job_id, forecast in found.items():
        assert forecast.start.median == pytest.approx(expected[job_id])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scheduler", ["easy(queue=requested,plan=requested)", "in_order"])
def test_memory_and_gpus_count_in_a_future_as_they_do_in_the_event_engine(scheduler, seed):
    """Cpus there are for all; what is short is something else."""
    draw = np.random.default_rng(seed)
    cluster = Cluster((Partition("all", Resources(500.0, 100.0, 2.0)),))
    events = []
    for event in jobs(seed, 40):
        request = Resources(
            1.0, float(draw.choice([0.0, 30.0, 70.0])), float(draw.choice([0, 0, 1, 2]))
        )
        job = replace(event.job, stages=(Stage(1, request),))
        events.append(Submitted(0.0, job))
    controller = standing(scheduler, events, now=3.0, cluster=cluster)
    assert len(controller.running) > 0
    expected = simulated(controller, scheduler, seed)
    found = forecast_waiting(outlook_of(controller), scenarios=1, seed=seed)
    assert len(found) > 20
    for job_id, forecast in found.items():
        assert forecast.start.median == pytest.approx(expected[job_id])


def test_a_queue_for_gpus_is_no_queue_for_cpus():
    """What would come of a job without gpus starts now; one with has its turn."""
    cluster = Cluster((Partition("all", Resources(64.0, 0.0, 2.0)),))
    of_gpus = [
        Job(f"g{number}", 0.0, (Stage(1, Resources(1.0, gpus=2.0)),), 100.0, "ann")
        for number in range(5)
    ]
    controller = standing("easy", [Submitted(0.0, job) for job in of_gpus], cluster=cluster)
    asked = [Job.gang("cpus", 0.0, 4, 900.0, "ann"), replace(of_gpus[0], job_id="gpus")]
    found = forecast_waiting(outlook_of(controller, asked), scenarios=300)
    assert found["cpus"].start.high == 0.0
    assert 180.0 < found["gpus"].start.median < 370.0


@pytest.mark.parametrize("scheduler", ["easy(plan=requested)", "in_order"])
def test_a_future_of_many_jobs_is_what_the_event_engine_makes_of_it(scheduler):
    """So many that ranks are closed now and then, and that most are not looked at each time."""
    cluster = Cluster((Partition("all", Resources(cpus=8.0)),))
    controller = standing(scheduler, jobs(5, 900, 0.2, (None,)), now=3.0, cluster=cluster)
    expected = simulated(controller, scheduler, 5)
    found = forecast_waiting(outlook_of(controller), scenarios=1, seed=5)
    assert len(found) > 800
    starts = {job_id: each.start.median for job_id, each in found.items()}
    assert starts == pytest.approx({job_id: expected[job_id] for job_id in found})


def test_futures_are_drawn_alike_in_lots(monkeypatch):
    """With arrivals; there is a table of a lot alone."""
    controller = standing("easy(plan=requested)", jobs(3, 60, 0.2, (None,)), now=3.0)
    outlook = outlook_of(controller)
    whole = forecast_waiting(outlook, scenarios=25, seed=3)
    tables = []
    futures = module._Simulated._futures
    monkeypatch.setattr(module, "_MOST_AT_ONCE", 8 * len(outlook.waiting))
    monkeypatch.setattr(
        module._Simulated, "_futures", lambda *given: tables.append(futures(*given)) or tables[-1]
    )
    assert forecast_waiting(outlook, scenarios=25, seed=3) == whole
    assert [len(each.home) for each in tables] == [8, 8, 8, 1]


def test_four_times_as_many_jobs_take_some_four_times_as_long():
    """And not sixteen times, as where each start looks at all that wait."""
    events = [Submitted(0.0, Job.gang(f"{n}", 0.0, 1 + n % 4, 100.0, "ann")) for n in range(12_000)]
    outlook = replace(outlook_of(standing("easy", events)), rule=None)
    forecast_waiting(replace(outlook, waiting=outlook.waiting.some(range(100))), scenarios=4)

    def seconds(count):
        begin = time.process_time()
        some = outlook.waiting.some(range(min(count, len(outlook.waiting))))
        forecast_waiting(replace(outlook, waiting=some), scenarios=4)
        return time.process_time() - begin

    assert seconds(12_000) < 8.0 * min(seconds(3_000) for _ in range(3))


def test_two_jobs_drawn_by_hand():
    """One runs for 10 s to 100 s more or less; one waits for it, one for both."""
    events = [Submitted(0.0, Job.gang(name, 0.0, 8, 100.0, "ann")) for name in "abc"]
    found = forecast_waiting(outlook_of(standing("easy", events)), scenarios=4_000)
    assert found["b"].start.low == pytest.approx(19.0, abs=3.0)
    assert found["b"].start.median == pytest.approx(55.0, abs=3.0)
    assert found["b"].start.high == pytest.approx(91.0, abs=3.0)
    assert found["c"].start.median == pytest.approx(110.0, abs=4.0)
    assert found["c"].end.median == pytest.approx(165.0, abs=5.0)


@pytest.mark.parametrize("seed", [0, 1, 7, 10, 13, 21])
def test_jobs_that_come_to_be_due_go_first_as_under_the_guard(seed):
    """With runtimes as they are believed, turns are foreseen, and noticed as they come."""
    scheduler = "guarded_backfilling(queue=requested,patience=0.3)"
    controller = standing(scheduler, jobs(seed, 60, 0.0), now=3.0, predictor=Requested())
    expected = simulated(controller, scheduler, seed)
    outlook = replace(outlook_of(controller), rule=None)
    never_due = replace(outlook.waiting, due=np.full(len(outlook.waiting), math.inf))

    def starts(outlook):
        found = forecast_waiting(outlook, scenarios=1, seed=seed)
        return {job_id: each.start.median for job_id, each in found.items()}

    assert starts(outlook) == pytest.approx(
        {job_id: expected[job_id] for job_id in starts(outlook)}
    )
    unguarded = starts(replace(outlook, waiting=never_due))
    assert np.mean([abs(unguarded[each] - expected[each]) for each in unguarded]) > 200.0


def test_who_is_due_goes_before_shorter_ones_and_is_not_put_off():
    """Four of eight cpus are held until 100; "wide" needs all.

    Until it is due "short" goes ahead of it; after that "long", which would run beyond 100, does
    not.
    """
    events = [Submitted(0.0, Job.gang("runs", 0.0, 4, 100.0, "ann"))]
    controller = standing("easy(plan=requested)", events, predictor=Requested())
    waiting = [
        Submitted(1.0, Job.gang(name, 1.0, cpus, seconds, "ann"))
        for name, cpus, seconds in (("short", 4, 6.0), ("long", 4, 200.0), ("wide", 8, 10.0))
    ]
    controller.drain()
    controller.step(1.0, waiting)
    outlook = replace(outlook_of(controller), rule=None)

    def starts(**due):
        dues = np.array([due.get(each.job.job_id, math.inf) for each in outlook.waiting])
        changed = replace(outlook.waiting, due=dues)
        found = forecast_waiting(replace(outlook, waiting=changed), scenarios=1)
        return {job_id: each.start.median for job_id, each in found.items()}

    assert starts() == {"short": 1.0, "long": 7.0, "wide": 207.0}
    assert starts(wide=5.0) == {"short": 1.0, "wide": 100.0, "long": 110.0}
    assert starts(wide=0.0) == {"short": 1.0, "wide": 100.0, "long": 110.0}
    assert starts(wide=0.0, long=8.0) == {"short": 1.0, "wide": 100.0, "long": 110.0}


def dues_ahead(controller):
    waiting = outlook_of(controller).waiting
    return dict(zip(waiting.jobs.places, waiting.due.tolist(), strict=True))


def test_dues_are_foreseen_without_disturbing_the_run():
    """None under EASY; under the guard one for each job that fits, known ones as they are."""
    assert set(dues_ahead(standing("easy", jobs(0, 20))).values()) == {math.inf}
    controller = standing("guarded_backfilling", jobs(0, 40, 0.0))
    controller.step(300.0, [Submitted(300.0, Job.gang("late", 300.0, 1, 10.0, "ann"))])
    dues = dues_ahead(controller)
    assert set(dues) == {each.job.job_id for each in controller.pending}
    assert dues == dues_ahead(controller)
    known = {each.job.job_id: each.due for each in controller.pending if each.due is not None}
    assert known
    assert all(dues[job_id] == due.due_seconds for job_id, due in known.items())


def test_what_ends_on_a_drained_node_makes_room_for_nobody():
    """Two nodes of 4 cpus, both taken: who waits starts when the one not drained is free."""
    nodes = tuple(Node(name, Resources(4.0, 1.0)) for name in ("n1", "n2"))
    cluster = Cluster((Partition("all", Resources(8.0, 2.0), nodes),))
    requested = {"one": 100.0, "two": 300.0, "waits": 10.0}
    events = [
        Submitted(0.0, Job.gang(name, 0.0, 4, seconds, "ann"))
        for name, seconds in requested.items()
    ]
    controller = standing("priority", events, cluster=cluster)
    (drained, _), *_ = controller.running["one"].placement.tasks_by_node
    controller.step(10.0, [NodeDrained(10.0, drained)])
    found = forecast_waiting(outlook_of(controller), scenarios=60)
    ends = forecast_running([controller.running["two"]], 10.0)["two"].end
    assert found["waits"].start.median == pytest.approx(ends.median, rel=0.25)


def test_an_undivided_machine_is_there_again_when_it_should_be():
    """What runs on makes room for nobody before."""
    jobs = [Submitted(0.0, Job.gang(each, 0.0, 5, 100.0, "ann")) for each in ("runs", "waits")]
    controller = standing("easy", jobs, cluster=Cluster.of_processors(8))
    controller.step(1.0, [NodeDrained(1.0, "all", "op", 500.0)])
    found = forecast_waiting(outlook_of(controller), scenarios=20)["waits"]
    assert found.start == Range(500.0, 500.0, 500.0)


@pytest.mark.parametrize("policy", ["easy", "guarded_backfilling", "priority"])
def test_what_is_out_of_use_until_some_time_is_there_from_then_on(policy):
    """Of two nodes one is drained: who needs both begins when it should be used again."""
    nodes = tuple(Node(f"n{number}", Resources(4.0, 2.0)) for number in range(2))
    cluster = Cluster((Partition("all", Resources(8.0, 4.0), nodes),))
    jobs = [Job.gang("narrow", 0.0, 4, 50.0, "ann"), Job.gang("wide", 0.0, 8, 60.0, "ann")]
    drained = NodeDrained(0.0, "n1", "op", 500.0)
    found = {}
    for until in (None, 500.0):
        controller = standing(policy, [replace(drained, until_seconds=until)], cluster=cluster)
        controller.step(1.0, [Submitted(1.0, job) for job in jobs])
        found[until] = forecast_waiting(outlook_of(controller), scenarios=20)["wide"]
        assert simulated(controller, policy, 0).get("wide") == until
    assert (found[None].never, found[None].start.low) == (1.0, math.inf)
    assert found[500.0].start == Range(500.0, 500.0, 500.0)


def test_how_long_starts_take_and_nodes_that_fail_make_jobs_hold_their_place_for_longer():
    """Of twenty attempts that began 2 s late half were lost: what runs and waits runs in vain."""
    jobs = [Submitted(0.0, Job.gang(each, 0.0, 8, 100.0)) for each in "ab"]
    log = MemoryLog(Manifest("easy", Cluster.of_processors(8)))
    controller = standing("easy", jobs, log=log)
    (running,) = controller.running.values()
    outlook = outlook_of(controller)
    plain = forecast_waiting(outlook)["b"].start.median
    found = {}
    for because in (EndedBecause.COMPLETED, EndedBecause.LOST):
        ends = [EndedBecause.COMPLETED, because] * 10
        outcomes = [Outcome("a", 2.0, 102.0, each) for each in ends]
        controller.state.history.past[:] = [EndedAttempt(running, each, 1.0) for each in outcomes]
        found[because] = forecast_waiting(outlook_of(controller))["b"].start
    assert found[EndedBecause.COMPLETED].median == plain + 2.0 + 2.0
    assert found[EndedBecause.LOST].high > plain + 50.0


def test_what_is_held_or_too_wide_never_starts():
    events = [
        Submitted(0.0, Job.gang("wide", 0.0, 9, 10.0, "ann")),
        Submitted(0.0, Job.gang("held", 0.0, 1, 10.0, "ann")),
        Held(0.0, "held"),
        Submitted(0.0, replace(Job.gang("third", 0.0, 1, 10.0, "ann"), after=("second",))),
        Submitted(0.0, replace(Job.gang("second", 0.0, 1, 10.0, "ann"), after=("held",))),
    ]
    found = forecast_waiting(outlook_of(standing("easy", events)), scenarios=5)
    never = Range(math.inf, math.inf, math.inf)
    others = [found[each] for each in ("wide", "held", "second", "third")]
    assert [each.start for each in others] == [never] * 4
    assert [each.never for each in others] == [1.0] * 4


def test_a_deadline_is_missed_as_often_as_its_job_ends_later():
    due = DeadlineValue(deadline_seconds=100.0)
    job = replace(Job.gang("b", 0.0, 8, 100.0, "ann"), value=due)
    events = [Submitted(0.0, Job.gang("a", 0.0, 8, 100.0, "ann")), Submitted(0.0, job)]
    found = forecast_waiting(outlook_of(standing("easy", events)), scenarios=8_000)["b"]
    # the sum of two runtimes, each even between 10 s and 100 s
    assert found.misses == pytest.approx(1.0 - 0.5 * (80.0 / 90.0) ** 2, abs=0.02)


def test_what_if_it_asked_for_less_and_what_if_it_came_later():
    """The changed job takes the place of the one that waits; another one is beside it."""
    wide = Job.gang("wide", 0.0, 8, 200.0, "ann")
    events = [
        Submitted(0.0, Job.gang("runs", 0.0, 4, 100.0, "ann")),
        Submitted(0.0, wide),
    ]
    controller = standing("easy(plan=requested)", events)
    before = forecast_waiting(outlook_of(controller))["wide"]
    narrow = outlook_of(controller, [Job.gang("wide", 0.0, 4, 200.0, "ann")])
    assert forecast_waiting(narrow)["wide"].start.high == 0.0 < before.start.low
    later = outlook_of(controller, [Job.gang("other", 500.0, 1, 20.0, "ann")])
    found = forecast_waiting(later)
    assert found["other"].start.low == 500.0
    assert found["wide"] == before
    assert {each.job.job_id for each in controller.pending} == {"wide"}


def steady(seconds, count):
    """A stream of short jobs, each of which goes first under this order."""
    log = MemoryLog(Manifest("easy", Cluster.of_processors(8)))
    controller = standing("easy(queue=requested,plan=requested)", [], log=log)
    for number in range(count):
        now = seconds * number
        job = Job.gang(f"s{number}", now, 8, 40.0, "ann")
        controller.step(now, [Submitted(now, job)])
        controller.step(now + 40.0, [Ended(now + 40.0, Outcome(job.job_id, now, now + 40.0))])
    last = seconds * count - 1.0
    controller.step(last, [Submitted(last, Job.gang("r", last, 8, 60.0, "ann"))])
    long = Job.gang("long", last + 0.5, 8, 4_000.0, "ann")
    controller.step(last + 0.5, [Submitted(last + 0.5, long)])
    return controller


def test_arrivals_make_waits_no_shorter_and_come_as_they_came():
    controller = steady(50.0, 400)
    alone = forecast_waiting(outlook_of(controller))["long"]
    crowd = outlook_of(controller, history=controller.state.history)
    assert len(crowd.recent) == 402
    crowded = forecast_waiting(crowd)["long"]
    assert crowded.start.median >= alone.start.median
    assert crowded.start.high > alone.start.high


def test_arrivals_of_a_young_run_vary_and_may_end():
    """In half of the futures when they have gone on for as long again."""
    controller = steady(50.0, 20)
    outlook = outlook_of(controller, history=controller.state.history)
    drawn = draw_arrivals(outlook, 400, 1e6, np.random.default_rng(1))
    comes = np.isfinite(drawn.seconds)
    latest = np.where(comes, drawn.seconds, outlook.now).max(axis=1)
    assert (latest - outlook.now < 1_000.0).mean() == pytest.approx(0.5, abs=0.1)
    going_on = latest > outlook.now + 1_000.0
    at_first = (drawn.seconds < outlook.now + 1_000.0)[going_on].sum(axis=1)
    assert at_first.mean() == pytest.approx(21.0, rel=0.1)
    assert at_first.std() > 1.0


@pytest.mark.parametrize("at_once", [1, 70])
def test_arrivals_are_the_same_in_pieces(at_once, monkeypatch):
    """However many futures are drawn at once."""
    controller = steady(50.0, 20)
    outlook = outlook_of(controller, history=controller.state.history)
    whole = draw_arrivals(outlook, 40, 3e3, np.random.default_rng(1))
    monkeypatch.setattr("foresail.explain.arrivals._AT_ONCE", at_once)
    pieces = draw_arrivals(outlook, 40, 3e3, np.random.default_rng(1))
    assert np.array_equal(pieces.seconds, whole.seconds)
    assert np.array_equal(pieces.numbers, whole.numbers)
    assert np.ptp(np.isfinite(whole.seconds).sum(axis=1)) > 0


def test_how_a_running_job_goes_on():
    """Half of what was believed is over: the rest is even; it may be ended where it asked to."""
    job = replace(Job.gang("a", 0.0, 1, 80.0, "ann"), value=DeadlineValue(deadline_seconds=90.0))
    controller = standing("easy", [Submitted(0.0, job)], predictor=Even())
    running = [*controller.running.values()]
    found = forecast_running(running, 50.0)["a"]
    assert found.end.median == pytest.approx(75.0, abs=3.0)
    assert found.end.high == pytest.approx(80.0)
    assert found.overruns == pytest.approx(0.4, abs=0.08)
    assert found.misses == 0.0  # it is ended at 80 s
    late = forecast_running(running, 200.0)["a"]
    assert late.end.low >= 200.0
    assert (late.overruns, late.misses) == (1.0, 1.0)


class Even(Requested):
    def predict(self, job, now):
        return Uniform(0.0, 100.0)


def test_conditions_of_jobs_hold_in_every_future():
    """A begin, an array of which two run at once, singletons, and who waits for a begin alone."""
    dependency = Dependency(DependencyKind.AFTER, ("late",))
    begin = StartConditions(begin_seconds=40.0)
    told = {
        "late": begin,
        "with": StartConditions(dependencies=(dependency,)),
        **{f"a{at}": StartConditions(array="a", most_at_once=2) for at in range(5)},
        **{f"s{at}": StartConditions(singleton=True) for at in range(3)},
    }
    one = Job.gang("", 0.0, 1, 10.0, "ann")
    events = [
        Submitted(0.0, replace(one, job_id=job_id, name=job_id[0], conditions=conditions))
        for job_id, conditions in told.items()
    ]
    events[1] = replace(events[1], job=replace(events[1].job, after=("late",)))
    controller = standing(
        "in_order", events, cluster=Cluster.of_processors(20), predictor=Requested()
    )
    forecasts = forecast_waiting(outlook_of(controller), scenarios=2)
    starts = {job_id: each.start.median for job_id, each in forecasts.items()}
    expected = {"late": 40.0, "a2": 10.0, "a3": 10.0, "a4": 20.0, "s1": 10.0, "s2": 20.0}
    assert {job_id: starts[job_id] for job_id in expected} == expected
    assert starts["with"] == 0.0
    by_events = simulated(controller, "in_order", 0)
    assert {job_id: by_events[job_id] for job_id in starts} == {**starts, "with": 40.0}


def test_what_a_start_mostly_depends_on():
    """The first wait is the second job's end but for noise, the other has to do with none."""
    random = np.random.default_rng(1)
    lefts = np.exp(random.standard_normal((300, 3)) + 5.0)
    waits = np.exp(random.standard_normal((300, 2)) + 5.0)
    waits[:, 0] = lefts[:, 1] * np.exp(0.1 * random.standard_normal(300))
    assert width_causes(waits, lefts).tolist() == [1.0, -1.0]
    assert width_causes(waits, np.zeros((300, 0))).tolist() == [-1.0, -1.0]
    assert width_causes(np.full((300, 1), np.inf), lefts).tolist() == [-1.0]


def test_the_front_of_a_queue_starts_as_it_does_with_all_behind_it():
    """Without backfilling nothing behind them matters; what waits for others is not among them."""
    controller = standing("in_order", jobs(0, 20, 0.0))
    last = replace(Job.gang("last", 0.0, 1, 10.0, "ann"), after=("j19",))
    whole = outlook_of(controller, [last])
    front = front_of(whole, 5)
    found = forecast_waiting(front, scenarios=3)
    assert len(found) == 5
    assert "last" not in forecast_waiting(front_of(whole, 100), scenarios=3)
    assert {each: found[each] for each in found} == {
        each: forecast_waiting(whole, scenarios=3)[each] for each in found
    }
