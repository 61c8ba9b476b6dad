"""Jobs that name no partition run in any that they fit in, and hold up none that they do not."""

from __future__ import annotations

import heapq
import random
from dataclasses import replace

import pytest

from foresail.checks.rules import tiny_pending, tiny_running, tiny_view
from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.distributions.basic import Point
from foresail.kernels.steps import Shares
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import ReasonCode, Start
from foresail.model.errors import InputError
from foresail.model.event import PREDICTSIM, STANDARD, Ended, EndedBecause, Outcome, Submitted
from foresail.model.job import Job, Stage
from foresail.model.view import PendingJob
from foresail.schedulers._queue_table import QueueTable, Summaries
from foresail.schedulers._reference import EasyReference

POLICIES = (
    "easy",
    "easy(reservations=0)",
    "easy(order=shortest,reservations=3)",
    "easy(queue=slowdown,order=shortest,age_limit_seconds=60)",
    "easy(order=max(q50,10)/probe)",
    "guarded(patience=0.1)",
    "conservative",
    "fcfs",
)


def partitions(**cpus):
    """A cluster of partitions with so many cpus each."""
    return Cluster(tuple(Partition(name, Resources(cpus=float(n))) for name, n in cpus.items()))


LEFT_AND_RIGHT = partitions(left=2, right=4)


def job(job_id, cpus, seconds, partition=None, at=0.0):
    """A job that takes as long as it asks for."""
    return replace(Job.gang(job_id, at, cpus, seconds, "ann"), partition=partition)


class Run:
    """A cluster under a policy, moment by moment; jobs run as long as they ask for, or a share."""

    def __init__(self, policy="easy", cluster=LEFT_AND_RIGHT, share=1.0, conventions=STANDARD):
        parts = parse_policy(f"{policy},requested,requested").build()
        self.loop = Controller(cluster, *parts, conventions)
        self._share = share
        self._to_come = []
        self.starts = {}

    def at(self, now, *jobs):
        """Submit jobs now, in this order; who starts, and where."""
        return self.step(now, [Submitted(now, replace(each, submit_seconds=now)) for each in jobs])

    def step(self, now, events):
        """Hand on what happens now; who starts, and where."""
        started = {}
        for each in self.loop.step(now, events):
            if isinstance(each, Start):
                ((place, _),) = each.placement.tasks_by_partition
                started[each.job_id] = place
                seconds = self.loop.running[each.job_id].job.requested_seconds * self._share
                heapq.heappush(self._to_come, (now + seconds, each.job_id))
        self.starts.update({job_id: (now, place) for job_id, place in started.items()})
        return started

    def until(self, end):
        """Let jobs end until then, those of one moment at once; who starts, and where."""
        started = {}
        while self._to_come and self._to_come[0][0] <= end:
            now, events = self._to_come[0][0], []
            while self._to_come and self._to_come[0][0] == now:
                job_id = heapq.heappop(self._to_come)[1]
                begin = self.starts[job_id][0]
                outcome = Outcome(job_id, begin, now, EndedBecause.COMPLETED)
                events.append(Ended(now, outcome))
            started |= self.step(now, events)
        return started

    @property
    def plan(self):
        """Planned starts and their places."""
        return {
            each.job_id: (each.start_seconds, each.placement.tasks_by_partition[0][0])
            for each in self.loop._planned
        }

    def code(self, job_id):
        """Why a job waits."""
        return self.loop.reasons()[job_id].code


@pytest.mark.parametrize("policy", POLICIES)
def test_a_wide_job_runs_in_the_partition_that_it_fits_in(policy):
    """It does not fit in the first, and waits for the second while that is full."""
    run = Run(policy)
    assert run.at(0.0, job("named", 4, 10.0, "right"), job("wide", 4, 10.0)) == {"named": "right"}
    assert run.until(10.0) == {"wide": "right"}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_job_goes_where_there_is_room_now(policy):
    """The first partition is tried first; the second has room when that has none."""
    run = Run(policy)
    assert run.at(0.0, job("a", 2, 10.0), job("b", 2, 10.0)) == {"a": "left", "b": "right"}


@pytest.mark.parametrize("policy", POLICIES)
def test_no_job_starts_twice_and_named_ones_stay_where_they_are(policy):
    run = Run(policy, partitions(left=4, right=4))
    named = [job("l", 2, 10.0, "left"), job("r", 2, 10.0, "right")]
    others = [job(f"any{number}", 2, 10.0) for number in range(3)]
    started = run.at(0.0, *named, *others)
    assert started == {"l": "left", "r": "right", "any0": "left", "any1": "right"}
    assert run.until(10.0) == {"any2": "left"}


def test_the_head_of_another_partition_is_not_delayed():
    """A job fills a gap there if it ends in time, and not if it does not."""
    run = Run()
    run.at(0.0, job("l", 2, 100.0, "left"), job("r", 2, 10.0, "right"))
    run.at(1.0, job("head", 4, 5.0, "right"))
    assert run.plan == {"head": (10.0, "right")}
    assert run.at(2.0, job("long", 2, 9.0), job("short", 2, 8.0)) == {"short": "right"}
    assert run.plan == {"head": (10.0, "right"), "long": (100.0, "left")}
    assert run.until(10.0) == {"head": "right"}
    assert run.until(15.0) == {"long": "right"}


def test_the_earliest_promise_counts_and_the_other_partition_goes_on():
    """The head is promised to the second; in the first a job starts that would delay it there."""
    run = Run(cluster=partitions(left=4, right=4))
    run.at(0.0, job("l", 3, 50.0, "left"), job("r", 3, 20.0, "right"))
    assert run.at(1.0, job("head", 4, 10.0), job("long", 1, 500.0, "left")) == {"long": "left"}
    assert run.plan == {"head": (20.0, "right")}
    assert run.code("head") is ReasonCode.RESERVED
    assert run.at(2.0, job("behind", 1, 30.0, "right")) == {}
    assert run.code("behind") is ReasonCode.WOULD_DELAY
    assert run.until(20.0) == {"head": "right"}


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_who_is_behind_goes_on_at_the_moment_in_which_the_head_starts_elsewhere(policy):
    """The first partition would hold room for the head, which starts in the second."""
    run = Run(policy, partitions(left=4, right=4))
    run.at(0.0, job("l", 3, 50.0, "left"))
    started = run.at(1.0, job("head", 2, 10.0), job("long", 1, 500.0, "left"))
    assert started == {"head": "right", "long": "left"}


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_promises_are_made_by_each_partition_to_another_job(policy):
    """The first job that waits is promised to the first that is free, the next to the other."""
    run = Run(policy, partitions(left=4, right=4))
    run.at(0.0, job("l", 4, 50.0, "left"), job("r", 4, 20.0, "right"))
    run.at(1.0, job("first", 4, 60.0), job("next", 4, 10.0))
    assert run.plan == {"first": (20.0, "right"), "next": (50.0, "left")}


def test_a_kept_promise_is_not_broken_for_a_job_of_two_partitions():
    """Conservative: who came later, and could have been promised both, is behind it in each."""
    run = Run("conservative", partitions(left=4, right=4), share=0.5)
    run.at(0.0, job("l", 4, 60.0, "left"), job("r", 4, 40.0, "right"))
    run.at(1.0, job("any", 4, 10.0), job("named", 4, 30.0, "right"), job("other", 4, 30.0))
    assert run.plan == {"any": (40.0, "right"), "named": (50.0, "right"), "other": (60.0, "left")}
    run.until(20.0)  # half as long as it asked for
    assert run.starts["any"] == (20.0, "right")
    assert run.plan == {"named": (30.0, "right"), "other": (60.0, "left")}


def test_first_come_first_served_is_one_line():
    """Under fcfs nobody overtakes a job that waits for both partitions."""
    run = Run("fcfs", partitions(left=4, right=4))
    run.at(0.0, job("l", 3, 50.0, "left"), job("r", 3, 20.0, "right"))
    started = run.at(1.0, job("head", 4, 10.0), job("a", 1, 1.0, "left"), job("b", 1, 1.0))
    assert started == {}
    assert run.code("a") is run.code("b") is ReasonCode.BEHIND
    assert run.until(20.0) == {"head": "right", "a": "left"}


def test_it_fits_in_what_it_asks_for_besides_cpus():
    """A job with a gpu goes to the partition that has some."""
    cluster = Cluster(
        (
            Partition("cpus", Resources(cpus=8.0)),
            Partition("gpus", Resources(cpus=4.0, gpus=2.0)),
        )
    )
    stage = Stage(2, Resources(cpus=1.0, gpus=1.0))
    trained = replace(Job.gang("trained", 0.0, 2, 10.0), stages=(stage,))
    assert Run(cluster=cluster).at(0.0, trained) == {"trained": "gpus"}


def test_too_wide_for_each():
    """It could only run in both at once, and says so; others pass it by."""
    run = Run()
    assert run.at(0.0, job("huge", 5, 10.0), job("a", 1, 10.0)) == {"a": "left"}
    reason = run.loop.reasons()["huge"]
    assert (reason.code, reason.numbers) == (ReasonCode.TOO_WIDE, {"cpus": 5, "total": 4})


def test_the_guard_knows_jobs_of_any_partition():
    """What EASY would have done with them is known in the one that they fit in, the emptiest."""
    reference = EasyReference(partitions(left=2, right=4, spare=4), Shares(0.0, 0.0))
    waiting = [
        job("wide", 4, 10.0),
        job("also", 4, 10.0),
        job("third", 4, 10.0, "right"),
        job("fourth", 3, 10.0),
    ]
    for number, each in enumerate(waiting):
        reference.entered(PendingJob(each, number, Point(10.0), 10.0), 0.0)
        reference.started(each.job_id, 0.0)
    homes = {job_id: reference._parts.index(part) for job_id, part in reference._home.items()}
    assert homes == {"wide": 1, "also": 2, "third": 1, "fourth": 2}
    for each in waiting:
        reference.left(each.job_id, 5.0)
    assert [part.work for part in reference._parts] == [0, 0, 0]


def random_jobs(draw, names, count):
    """Jobs of any width, of which half name a partition, and when they come."""
    now = 0.0
    for number in range(count):
        now += draw.choice((0.0, 0.0, 1.0, 7.0))
        name = draw.choice((None, None, *names))
        yield now, job(str(number), draw.randint(1, 9), draw.choice((3.0, 20.0, 60.0)), name)


@pytest.mark.parametrize("conventions", [STANDARD, PREDICTSIM], ids=["standard", "predictsim"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(3))
def test_all_that_fit_run_once_and_within_what_there_is(policy, conventions, seed):
    """No partition has more than its cpus in use, and only what fits in none is left."""
    draw = random.Random(seed)
    sizes = {"left": draw.randint(2, 5), "middle": draw.randint(1, 4), "right": 8}
    run = Run(policy, partitions(**sizes), share=draw.choice((1.0, 0.6)), conventions=conventions)
    jobs = list(random_jobs(draw, sizes, 80))
    for now, each in jobs:
        run.until(now)
        run.at(now, each)
    while run._to_come:
        run.until(run._to_come[0][0])
    fitting = {
        each.job_id
        for _, each in jobs
        if each.cpus <= (sizes[each.partition] if each.partition else max(sizes.values()))
    }
    assert run.starts.keys() == fitting
    assert run.loop.counters.refusals == 0
    by_id = {each.job_id: each for _, each in jobs}
    spans = []
    for job_id, (begin, place) in run.starts.items():
        each = by_id[job_id]
        assert place == (each.partition or place)
        spans.append((begin, begin + each.requested_seconds * run._share, each.cpus, place))
    for begin, _, _, where in spans:
        held = sum(n for a, b, n, place in spans if place == where and a <= begin < b)
        assert held <= sizes[where]
    assert len({place for *_, place in spans}) == 3


@pytest.mark.parametrize("seed", range(5))
def test_the_first_in_line_is_never_put_off(seed):
    """Under EASY, with limits that hold, its promise only becomes better."""
    draw = random.Random(seed)
    run = Run("easy", partitions(left=6, right=9), share=draw.choice((0.3, 0.8)))
    promised = {}
    compared = 0
    for now, each in random_jobs(draw, ("left", "right"), 120):
        for moment in sorted({now, *(end for end, _ in run._to_come if end <= now)}):
            run.until(moment)
            if moment == now and not (each.partition == "left" and each.cpus > 6):
                run.at(now, each)
            waiting = [each.job.job_id for each in run.loop.pending]
            if waiting and waiting[0] in run.plan:
                start, _ = run.plan[waiting[0]]
                compared += waiting[0] in promised
                assert start <= promised.get(waiting[0], start)
                promised[waiting[0]] = start
    assert compared > 20


@pytest.mark.parametrize(
    "policy",
    [
        *(each for each in POLICIES if "probe" not in each and "guarded" not in each),
        "guarded(queue=q50)",
    ],
)
def test_a_pass_made_again_is_one_over_other_jobs(policy):
    """As if those had not been there who start elsewhere, and those ran who have started.

    The order is that of the moment: who is a probe there is one for both passes.
    """
    draw = random.Random(policy)
    compiled = parse_policy(policy).scheduler.build().compiled()
    compared = 0
    for _ in range(60):
        now, width = 50.0, draw.randint(4, 20)
        running = [tiny_running("r", width // 2, now + draw.randint(1, 60))]
        pending = [
            tiny_pending(str(n), draw.randint(1, width), draw.choice((5.0, 20.0, 90.0)), arrival=n)
            for n in range(12)
        ]
        view = tiny_view(pending, running, processors=width, now=now)
        table = QueueTable(compiled, view.cluster.partitions[0], Summaries())
        passed = table.pass_over(view, {})
        elsewhere = {slot for slot in range(12) if draw.random() < 0.3} - {*passed.starts}
        again = table.pass_again(passed, elsewhere, {})
        assert again.starts[: len(passed.starts)] == passed.starts
        gone = elsewhere | {*passed.starts}
        left = [each for slot, each in enumerate(pending) if slot not in gone]
        for order, slot in enumerate(passed.starts, 1):
            job = pending[slot].job
            running.append(
                tiny_running(
                    job.job_id,
                    int(job.cpus),
                    now + job.requested_seconds,
                    start_seconds=now,
                    start_order=order,
                )
            )
        other = tiny_view(left, running, processors=width, now=now)
        fresh = QueueTable(compiled, view.cluster.partitions[0], Summaries())
        expected = fresh.pass_over(other, {})
        names = [fresh.jobs_by_slot[slot].job.job_id for slot in expected.starts]
        assert [str(slot) for slot in again.starts[len(passed.starts) :]] == names
        promised = {
            fresh.jobs_by_slot[slot].job.job_id: start for slot, start in expected.reserved.items()
        }
        assert {str(slot): start for slot, start in again.reserved.items()} == promised
        assert table.pass_over(view, {}) == passed
        compared += len(names) + len(promised) + len(gone)
    assert compared > 20


NODES = tuple(Node(name, Resources(cpus=4.0)) for name in ("n1", "n2"))


@pytest.mark.parametrize("policy", POLICIES)
def test_nodes_of_two_partitions_have_one_account(policy):
    """Of two jobs as wide as all of them, one for each of the partitions, one starts."""
    run = Run(policy, Cluster((Partition("a,b", Resources(cpus=8.0), NODES),)))
    assert len(run.at(0.0, job("one", 8, 10.0, "a"), job("two", 8, 10.0, "b"))) == 1


def test_a_node_does_not_count_twice():
    """Listed in two partitions, it would let two jobs start that are as wide as both."""
    views = (Partition(name, Resources(cpus=8.0), NODES) for name in ("a", "b"))
    with pytest.raises(InputError, match=r"node n1 would count.*\(found 'a and b'\).*called a,b"):
        Run("easy", Cluster(tuple(views)))
