"""Jobs that ended long ago are forgotten: nothing that is decided changes, and nothing piles up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.live.recovery import KnownRun
from foresail.model.cluster import Cluster
from foresail.model.conventions import STANDARD
from foresail.model.event import Cancelled, Ended, Held, Released, Submitted
from foresail.model.job import Job
from foresail.model.outcome import EndedBecause, Outcome
from foresail.record.log import NullLog
from foresail.record.log_text import record_line
from foresail.record.records import Forgotten, Manifest

CLUSTER = Cluster.of_processors(8)
KEPT = 10


class Log:
    """The log of a run in memory, and what a recovery of it would know."""

    def __init__(self):
        self.known = KnownRun()
        self.lines = []
        self.append(Manifest("toy", CLUSTER, STANDARD))

    def append(self, record):
        self.lines.append(record_line(record))
        self.known.take(self.lines[-1], len(self.lines), "log")

    def commit(self):
        pass


def recovered(lines):
    known = KnownRun()
    for number, line in enumerate(lines, 1):
        known.take(line, number, "log")
    return known


def begun(policy, log):
    return Controller(CLUSTER, *parse_policy(policy).build(), STANDARD, log)


def events_of_a_long_run(seed):
    """Jobs that come, are held, released, cancelled, preempted by loss and waited for."""
    random, last = np.random.default_rng(seed), ""
    for second in range(0, 30_000, 3):
        now, wishes = float(second), []
        if random.random() < 0.04:
            after = (last,) if random.random() < 0.3 else ()
            last = f"j{second}"
            job = Job.gang(last, now, int(random.integers(1, 6)), 60.0, "ann")
            wishes.append(Submitted(now, replace(job, after=after)))
        wishes += [kind(now, random.random()) for kind in (Held, Released, Cancelled)]
        yield now, wishes, random.random(2)


def run(controller, seed, between):
    """Instructions of a long run; ``between`` steps something is done with the controller."""
    ends, told = {}, []
    for now, wishes, chances in events_of_a_long_run(seed):
        events = []
        for job_id in [job_id for job_id, end in ends.items() if end <= now]:
            del ends[job_id]
            lost = chances[0] < 0.05
            why = EndedBecause.LOST if lost else EndedBecause.COMPLETED
            attempt = controller.running[job_id].attempt
            events.append(Ended(now, Outcome(job_id, 0.0, now, why, None, attempt)))
        for wish in wishes:
            if isinstance(wish, Submitted):
                known = controller.state.of(wish.job.after[0]) if wish.job.after else "pending"
                after = wish.job.after if known in ("pending", "running") else ()
                events.append(Submitted(now, replace(wish.job, after=after)))
            elif wish.job_id < 0.05 and controller.pending:
                waiting = controller.pending[int(20 * wish.job_id * len(controller.pending))]
                events.append(type(wish)(now, waiting.job.job_id))
        told += controller.step(now, events)
        for job_id in controller.running.keys() - ends.keys():
            ends[job_id] = now + 10.0 + 47.0 * (hash((now, len(ends))) % 7)
        controller = between(controller)
    return told, controller


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("policy", ["easy,requested,requested", "conservative,requested,requested"])
def test_a_run_that_forgets_and_is_recovered_decides_as_one_that_does_neither(policy, seed):
    told, _ = run(begun(policy, NullLog()), seed, lambda controller: controller)
    log, sizes = Log(), []

    def forget(controller):
        if len(controller.state.ended) > 2 * KEPT:
            controller.forget_ended(KEPT)
            known = recovered(log.known.compaction.lines())
            sizes.append((len(log.known.compaction), len(known.run.jobs.submitted)))
            assert known.run.jobs.submitted.keys() == log.known.run.jobs.submitted.keys()
            assert set(known.run.state.ended) == set(controller.state.ended)
            controller = begun(policy, log)
            controller.take_over(known.run)
        return controller

    again, _ = run(begun(policy, log), seed, forget)
    assert again == told
    assert len(sizes) > 5
    assert max(sizes[5:]) < (3 * sizes[0][0], 0)
    whole = recovered(log.lines)
    assert whole.run.jobs.submitted.keys() == log.known.run.jobs.submitted.keys()


def test_what_is_waited_for_is_not_forgotten():
    log = Log()
    controller = begun("easy,requested,requested", log)
    for number in range(6):
        after = {5: ("0", "4")}.get(number, ())
        job = replace(Job.gang(str(number), 0.0, 1, 60.0), after=after)
        controller.step(0.0, [Submitted(0.0, job)])
    for number in range(4):
        outcome = Outcome(str(number), 0.0, 5.0, EndedBecause.COMPLETED, 0)
        controller.step(5.0, [Ended(5.0, outcome)])
    controller.forget_ended(1)
    assert list(controller.state.ended) == ["0", "3"]
    controller.forget_ended(1)
    assert sum('"kind":"forgotten"' in line for line in log.lines) == 1
    outcome = Outcome("4", 0.0, 6.0, EndedBecause.COMPLETED, 0)
    controller.step(6.0, [Ended(6.0, outcome)])
    assert list(controller.running) == ["5"]


def test_of_jobs_that_are_read_about_nothing_is_forgotten():
    """The record is for the run that goes on; whoever reads its log still learns everything."""
    log = Log()
    controller = begun("easy,requested,requested", log)
    controller.step(0.0, [Submitted(0.0, Job.gang("1", 0.0, 1, 60.0))])
    outcome = Outcome("1", 0.0, 5.0, EndedBecause.COMPLETED, 0)
    controller.step(5.0, [Ended(5.0, outcome)])
    jobs = recovered(log.lines).run.jobs
    jobs.take(Forgotten(2, ("1",)))
    assert jobs.ended == {"1": outcome}
    jobs.forget(["1"])
    assert (jobs.submitted, jobs.ended, jobs.past) == ({}, {}, [])
