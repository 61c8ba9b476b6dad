"""Memory and gpus count as cpus do: nothing is exceeded, nobody starves, nobody waits in vain."""

from __future__ import annotations

import heapq
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.model.cluster import Cluster, Partition, Resources
from foresail.model.decision import ReasonCode, Start
from foresail.model.event import Ended, EndedBecause, Outcome, Submitted
from foresail.model.job import Job, Stage

TOTAL = Resources(8.0, 100.0, 2.0)
POLICIES = ("easy", "easy(order=shortest,reservations=3)", "conservative", "guarded", "fcfs")


def job(number, at, seconds, cpus=1, memory=0.0, gpus=0, tasks=1):
    """A job that takes as long as it asks for, of equal tasks."""
    request = Resources(cpus / tasks, memory / tasks, gpus / tasks)
    return Job(str(number), at, (Stage(tasks, request),), seconds, "ann")


def run(jobs, policy="easy", total=TOTAL, look=lambda controller: None):
    """Starts by id; at every moment all that runs fits, and nothing that fits not is started."""
    cluster = Cluster((Partition("all", total),))
    controller = Controller(cluster, *parse_policy(f"{policy},requested,requested").build())
    to_come = [(each.submit_seconds, 1, int(each.job_id)) for each in jobs]
    heapq.heapify(to_come)
    starts = {}
    while to_come:
        now, events = to_come[0][0], []
        while to_come and to_come[0][0] == now:
            _, kind, number = heapq.heappop(to_come)
            if kind == 1:
                events.append(Submitted(now, jobs[number]))
            else:
                because = EndedBecause.COMPLETED
                outcome = Outcome(str(number), starts[str(number)], now, because, 0, 1)
                events.append(Ended(now, outcome))
        for instruction in controller.step(now, events):
            if isinstance(instruction, Start):
                starts[instruction.job_id] = now
                end = now + jobs[int(instruction.job_id)].requested_seconds
                heapq.heappush(to_come, (end, 0, int(instruction.job_id)))
        held = sum((each.job.total for each in controller.running.values()), Resources())
        assert held.fits_in(total)
        look(controller)
    assert controller.counters.refusals == 0
    return starts


def easy_starts(jobs, total=TOTAL):
    """The same under EASY as a textbook has it, with every resource where that has processors."""
    waiting, running, starts = [], [], {}
    for now in sorted({each.submit_seconds for each in jobs}):
        moments = [now]
        later = min((j.submit_seconds for j in jobs if j.submit_seconds > now), default=1e9)
        waiting += [each for each in jobs if each.submit_seconds == now]
        while moments:
            moment = moments.pop()
            running = [(end, each) for end, each in running if end > moment]
            free = total - sum((each.total for _, each in running), Resources())
            while waiting and waiting[0].total.fits_in(free):
                first = waiting.pop(0)
                starts[first.job_id], free = moment, free - first.total
                running.append((moment + first.requested_seconds, first))
            if waiting:
                room, shadow = free, None
                for shadow, _ in sorted(running, key=lambda each: each[0]):
                    ended = (e.total for end, e in running if end <= shadow)
                    room = sum(ended, free)
                    if waiting[0].total.fits_in(room):
                        break
                spare = room - waiting[0].total
                for each in waiting[1:]:
                    late = moment + each.requested_seconds > shadow
                    if each.total.fits_in(free) and (not late or each.total.fits_in(spare)):
                        waiting.remove(each)
                        starts[each.job_id], free = moment, free - each.total
                        spare = spare - each.total if late else spare
                        running.append((moment + each.requested_seconds, each))
            soonest = min((end for end, _ in running), default=1e9)
            if soonest < later:
                moments.append(soonest)
    return starts


ASKED = st.tuples(
    st.integers(0, 3),
    st.integers(1, 30),
    st.integers(1, 8),
    st.sampled_from([0.0, 0.0, 10.0, 40.0, 60.0, 100.0]),
    st.sampled_from([0, 0, 0, 1, 2]),
)


def jobs_of(asked):
    jobs, at = [], 0
    for number, (gap, seconds, cpus, memory, gpus) in enumerate(asked):
        at += 3 * gap
        jobs.append(job(number, float(at), float(seconds), cpus, memory, gpus))
    return jobs


@given(st.lists(ASKED, max_size=15))
def test_easy_is_what_the_textbook_says_where_cpus_are_many(asked):
    """Else the first that lacks cpus is promised a start as well as the first that lacks more."""
    jobs, total = jobs_of(asked), replace(TOTAL, cpus=200.0)
    assert run(jobs, total=total) == easy_starts(jobs, total)


@given(st.lists(ASKED, max_size=15))
def test_the_first_that_waits_starts_when_it_was_promised_or_before(asked):
    promised = {}

    def look(controller):
        if controller.pending:
            first = controller.pending[0].job.job_id
            promised.setdefault(first, controller.plan[first])

    starts = run(jobs_of(asked), look=look)
    assert all(starts[each] <= promised[each] for each in promised)


@pytest.mark.parametrize("policy", POLICIES)
def test_all_run_and_nothing_is_exceeded(policy):
    """Under every queue scheduler; that nothing is refused and exceeded, ``run`` looks at."""

    @given(st.lists(ASKED, max_size=15))
    def runs(asked):
        assert len(run(jobs_of(asked), policy)) == len(asked)

    runs()


@pytest.mark.parametrize("policy", ["easy", "guarded"])
@pytest.mark.parametrize("large", [{"memory": 70.0}, {"gpus": 2}])
def test_who_asks_for_much_is_not_starved_by_small_ones_that_keep_coming(policy, large):
    """Two small ones run at any time, of memory or gpus, for ever; cpus are always free."""
    small = {"memory": 40.0} if "memory" in large else {"gpus": 1}
    jobs = [job(number, 5.0 * number, 10.0, **small) for number in range(60)]
    jobs[4] = job(4, 20.0, 10.0, **large)
    assert run(jobs, policy)["4"] <= 60.0


@pytest.mark.parametrize("policy", POLICIES[:-1])
def test_a_queue_for_gpus_does_not_keep_cpus_idle(policy):
    """Jobs that need no gpu start beside it at once, though they came later and run longer."""
    of_gpus = [job(number, 0.0, 50.0, gpus=2) for number in range(3)]
    others = [job(number, 1.0, 500.0, 3) for number in (3, 4)]
    starts = run([*of_gpus, *others], policy)
    assert (starts["3"], starts["4"]) == (1.0, 1.0)
    assert sorted(starts[each] for each in "012") == [0.0, 50.0, 100.0]


def test_where_nobody_overtakes_all_wait_behind_one_that_lacks_a_gpu():
    jobs = [job(0, 0.0, 50.0, gpus=2), job(1, 1.0, 5.0, gpus=1), job(2, 2.0, 5.0)]
    assert run(jobs, "fcfs") == {"0": 0.0, "1": 50.0, "2": 50.0}


def test_tasks_share_what_a_job_asks_for():
    """Three tasks on one gpu are no rounding error too much."""
    jobs = [job(number, 0.0, 10.0, 3, 99.9, 1, tasks=3) for number in range(2)]
    assert run(jobs, total=Resources(8.0, 2 * 99.9, 2.0)) == {"0": 0.0, "1": 0.0}


def test_it_is_said_what_is_lacking_and_when_it_should_be_there():
    told = []

    def look(controller):
        told.append(controller.reasons())

    jobs = [
        job(0, 0.0, 50.0, memory=6 * 2.0**30, gpus=2),
        job(1, 1.0, 5.0, gpus=1),
        job(2, 2.0, 500.0, gpus=1),
        job(3, 3.0, 5.0, memory=5 * 2.0**30),
        job(4, 4.0, 5.0, 8),
    ]
    run(jobs, total=Resources(8.0, 2.0**33, 2.0), look=look)
    reasons = told[4]
    assert (reasons["1"].code, reasons["1"].numbers["start"]) == (ReasonCode.RESERVED, 50.0)
    assert reasons["2"].sentence == "needs 1 gpu and 0 are free"
    assert reasons["3"].sentence == "needs 5 GiB of memory and 2 GiB is free"
    assert reasons["4"].numbers["start"] == 50.0
    assert reasons["1"].sentence == "next in line: 1 cpu and 1 gpu should be free at 50 s"


def test_whose_turn_comes_by_gpus_is_told_what_it_waits_for():
    """EASY would have come to no job of two gpus before the one ahead of it has ended."""
    told = []
    jobs = [job(number, 0.0, 50.0, gpus=2) for number in range(3)]
    run(jobs, "guarded", look=lambda controller: told.append(controller.reasons()))
    assert told[0]["2"].code is not ReasonCode.AMONG_FIRST
    assert told[0]["2"].sentence == "needs 2 gpus and 0 are free"
