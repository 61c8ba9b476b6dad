"""What schedulers promise, on random workloads: capacity, reservations that hold, bounded waits."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from fixed_predictor import workload_of
from foresail.control.loop import Controller
from foresail.control.policy import is_compiled, parse_policy
from foresail.model.cluster import Cluster
from foresail.model.decision import ReasonCode
from foresail.model.errors import ForesailError
from foresail.model.protocols import Scheduler
from foresail.model.registry import entries
from foresail.model.view import PendingJob
from foresail.simulator.engine import simulate_events
from foresail.traces.workload import Workload
from made_scenarios import simulate

PROCESSORS = 12
SCHEDULERS = [
    *(each.name for each in entries("scheduler") if is_compiled(parse_policy(each.name))),
    "easy(order=shortest)",
    "easy(reservations=0)",
    "easy(reservations=4,queue=smallest_area)",
    "conservative(queue=shortest)",
]


def limited(seed: int, jobs: int = 80, shortest: int = 1) -> Workload:
    """Jobs whose requests are upper bounds of their runtimes."""
    draw = random.Random(seed)
    rows, submit = [], 0
    for _ in range(jobs):
        submit += draw.choice([0, 0, 3, 15])
        runtime = draw.randint(shortest, draw.choice([4, 60]))
        rows.append((submit, draw.randint(1, PROCESSORS), runtime, runtime + draw.choice([0, 30])))
    users = [draw.choice(["ann", "bob", "cid"]) for _ in rows]
    return workload_of(rows, PROCESSORS, users)


def in_use(jobs) -> list[float]:
    """Cpus in use after every change; at equal times ends come first."""
    changes = [
        change
        for start, end, cpus in jobs.select("start_seconds", "end_seconds", "cpus").iter_rows()
        if end > start
        for change in ((start, 1, cpus), (end, 0, -cpus))
    ]
    return np.cumsum([cpus for _, _, cpus in sorted(changes)]).tolist()


@pytest.mark.parametrize("predictor", ["requested", "clairvoyant", "recent", "similar"])
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_capacity_and_work(scheduler, predictor):
    """No more cpus than there are; every job starts once, not early, and runs its runtime."""
    policy = parse_policy(f"{scheduler},{predictor},doubling")
    for seed in range(3):
        workload = limited(seed, shortest=0)
        jobs = simulate(workload, policy).jobs
        assert max(in_use(jobs)) <= PROCESSORS
        assert jobs["job_id"].to_list() == workload.jobs["job_id"].to_list()
        assert (jobs["start_seconds"] >= jobs["submit_seconds"]).all()
        run = (jobs["end_seconds"] - jobs["start_seconds"]).to_numpy()
        assert (run == workload.runtime_seconds).all()


def test_without_reservations_no_job_waits_beside_enough_free_cpus():
    """Whoever fits, starts: at a job's start there was too little room at every earlier instant."""
    for seed in range(5):
        jobs = simulate(limited(seed), parse_policy("easy(reservations=0)")).jobs
        start, end, cpus, submit = (
            jobs[name].to_numpy()
            for name in ("start_seconds", "end_seconds", "cpus", "submit_seconds")
        )
        for job in range(len(jobs)):
            for instant in {*submit, *end}:
                if submit[job] <= instant < start[job]:
                    held = cpus[(start <= instant) & (end > instant)].sum()
                    assert PROCESSORS - held < cpus[job]


@pytest.mark.parametrize("order", ["fcfs", "shortest", "widest"])
def test_easy_that_knows_runtimes_never_delays_the_head(order):
    """With true runtimes the head's reservation never moves later."""
    for seed in range(10):
        schedule = simulate(limited(seed), parse_policy(f"easy(order={order}),clairvoyant"))
        assert schedule.meta.counters["delayed_heads"] == 0


def test_easy_that_underestimates_does_delay_the_head():
    """The counter of the test before does count."""
    policy = parse_policy("easy(order=shortest,plan=1)")
    assert simulate(limited(1), policy).meta.counters["delayed_heads"] > 0


class Watched(Scheduler):
    """A scheduler, and a function that is shown every view with the decision made of it."""

    def __init__(self, scheduler, watch) -> None:
        self.scheduler = scheduler
        self.planned_seconds = scheduler.planned_seconds
        if hasattr(scheduler, "reference"):
            self.reference = scheduler.reference
        self.watch = watch

    def decide(self, view):
        decision = self.scheduler.decide(view)
        self.watch(view, decision)
        return decision


def watched(text, workload, watch):
    """Run a policy, watching its scheduler; its schedule's jobs."""
    scheduler, predictor, correction = parse_policy(text).build()
    cluster = Cluster.of_processors(workload.processors)
    controller = Controller(cluster, Watched(scheduler, watch), predictor, correction)
    return simulate_events(workload, controller, text).jobs


@pytest.mark.parametrize("order", ["fcfs", "shortest", "-wait", "largest_area"])
@pytest.mark.parametrize("predictor", ["requested", "clairvoyant"])
def test_conservative_never_breaks_a_promise(order, predictor):
    """Estimates that are upper bounds: reservations only move forward, in whatever order."""
    for seed in range(4):
        promised: dict[str, float] = {}

        def watch(view, decision, promised=promised):
            starts = {start.job_id: view.now for start in decision.starts}
            planned = {each.job_id: each.start_seconds for each in decision.plan} | starts
            assert planned.keys() == {each.job.job_id for each in view.pending}
            for job_id, start in planned.items():
                assert start <= promised.get(job_id, math.inf)
                promised[job_id] = start

        watched(f"conservative(queue={order}),{predictor}", limited(seed), watch)
        assert len(promised) == 80


def going_first(view) -> list[PendingJob]:
    """Jobs that are due, in order of due times; those that will be, behind them."""
    told = [each for each in view.pending if each.due is not None]
    return sorted(told, key=lambda each: (each.due.due_seconds, each.arrival))


def overdue_seconds(pending: PendingJob) -> float:
    """When a job goes first whatever others hold that were due."""
    due_seconds = pending.due.due_seconds
    return due_seconds + 0.5 * (due_seconds - pending.job.submit_seconds)


@pytest.mark.parametrize("queue", ["max(q50, 10) / probe", "cpus", "-submit"])
def test_guarded_starts_a_due_job_by_its_first_reservation(queue):
    """Requests that are upper bounds: who goes first is told a start, and starts no later.

    That is so once it is overdue by half of its wait: before, others may go first for a while.
    """
    told = 0
    for seed in range(6):
        promised: dict[str, float] = {}

        def watch(view, decision, promised=promised):
            planned = {each.job_id: each.start_seconds for each in decision.plan}
            started = {start.job_id for start in decision.starts}
            due = [each for each in going_first(view) if each.due.due_seconds <= view.now]
            for job_id in started:
                assert view.now <= promised.get(job_id, math.inf)
            left = [each for each in due if each.job.job_id not in started]
            if left and view.now >= overdue_seconds(left[0]):
                first = left[0].job.job_id
                assert planned[first] <= promised.get(first, math.inf)
                promised[first] = planned[first]
                assert decision.reasons[first].code is ReasonCode.GOES_FIRST

        watched(f"guarded(queue={queue},patience=0.3,bound=0.5),recent", limited(seed), watch)
        told += len(promised)
    assert told > 10


@pytest.mark.parametrize("queue", ["max(q50, 10) / probe", "cpus", "-submit"])
def test_guarded_does_not_put_off_the_job_that_is_due_next(queue):
    """Nothing that starts before others are due moves the latest start of the next that is.

    That is what it was told or, if that cannot be kept, when running jobs' limits leave room.
    """

    def latest(pending, now, holds):
        times = [now, *(end for end, _ in holds)]
        room = (
            time
            for time in sorted(times)
            if PROCESSORS - sum(cpus for end, cpus in holds if end > time) >= pending.job.cpus
        )
        return max(pending.due.latest_seconds, next(room))

    compared = 0
    for seed in range(6):

        def watch(view, decision):
            nonlocal compared
            started = {start.job_id for start in decision.starts}
            coming = [each for each in going_first(view) if each.due.due_seconds > view.now]
            begun = [each for each in view.pending if each.job.job_id in started]
            if not coming or coming[0] in begun:
                return
            if any(each.due and each.due.due_seconds <= view.now for each in begun):
                return
            holds = [(each.expected_end_seconds, each.job.cpus) for each in view.running]
            more = [(view.now + each.planned_seconds, each.job.cpus) for each in begun]
            before = latest(coming[0], view.now, holds)
            assert latest(coming[0], view.now, holds + more) <= before
            compared += bool(begun)

        watched(f"guarded(queue={queue},patience=0.6,bound=0.8),recent", limited(seed), watch)
    assert compared


def test_equal_jobs_start_in_order_of_submission():
    """Jobs that no order tells apart keep their order, under every scheduler that has an order.

    To those that plan by value a job submitted later is another one: it is worth more for longer.
    """
    workload = workload_of([(0, 3, 10, 20)] * 9 + [(5, 3, 10, 20)] * 4, PROCESSORS)
    by_value = {"3sigma", "tetrisched", "distsched", "external"}
    for entry in entries("scheduler"):
        if entry.name not in by_value:
            jobs = simulate(workload, parse_policy(f"{entry.name},requested")).jobs
            assert jobs["start_seconds"].is_sorted()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("easy(reservations=-1)", "0 or more"),
        ("easy(age_limit_seconds=0)", "seconds above 0"),
        ("guarded(patience=-1)", "0 or more"),
        ("guarded(bound=nan)", "0 or more"),
        ("easy(plan=wait)", "without now, wait and probe"),
        ("guarded(plan=q50 / probe)", "without now, wait and probe"),
        ("conservative(plan=sumbit)", "did you mean 'submit'"),
    ],
)
def test_parameters_out_of_range(text, words):
    """Refused when the policy is built, saying what was expected."""
    with pytest.raises(ForesailError, match=words):
        parse_policy(text).build()
