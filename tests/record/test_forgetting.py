"""Jobs that ended long ago are forgotten: nothing that is decided changes, and nothing piles up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.distributions.basic import Point
from foresail.live.run_log import KnownRun
from foresail.model.cluster import Cluster, Resources
from foresail.model.decision import Placement
from foresail.model.event import (
    STANDARD,
    Cancelled,
    Ended,
    EndedBecause,
    Held,
    Outcome,
    Part,
    Released,
    Submitted,
)
from foresail.model.job import Dependency, DependencyKind, Job, Stage, StartConditions
from foresail.model.view import PendingJob
from foresail.record.log_text import record_line
from foresail.record.records import Forgotten, Manifest, NullLog
from foresail.record.state import State

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
            array = StartConditions(array=f"a{second // 600}", most_at_once=2)
            conditions = array if random.random() < 0.5 else None
            if random.random() < 0.2:
                conditions = StartConditions(singleton=True, begin_seconds=now + 20.0)
            job = replace(job, after=after, name="lone", conditions=conditions)
            wishes.append(Submitted(now, job))
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
                known = (
                    controller.state.stage_of(wish.job.after[0]) if wish.job.after else "pending"
                )
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
@pytest.mark.parametrize(
    "policy",
    ["easy,requested,requested", "conservative,requested,requested", "easy,recent,incremental"],
)
def test_a_run_that_forgets_and_is_recovered_decides_as_one_that_does_neither(policy, seed):
    told, _ = run(begun(policy, NullLog()), seed, lambda controller: controller)
    log, sizes = Log(), []

    def forget(controller):
        if len(controller.state.ended) > 2 * KEPT:
            controller.forget_ended(KEPT)
            known = recovered(log.known.compaction.lines())
            sizes.append((len(log.known.compaction), len(known.run.history.submitted)))
            assert known.run.history.submitted.keys() == log.known.run.history.submitted.keys()
            assert set(known.run.state.ended) == set(controller.state.ended)
            controller = begun(policy, log)
            controller.take_over(known.run)
        return controller

    again, _ = run(begun(policy, log), seed, forget)
    assert again == told
    assert len(sizes) > 5
    assert max(sizes[5:]) < (3 * sizes[0][0], 0)
    whole = recovered(log.lines)
    assert whole.run.history.submitted.keys() == log.known.run.history.submitted.keys()


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
    run = recovered(log.lines).run
    jobs = run.history
    run.take(Forgotten(2, ("1",)))
    assert jobs.ended == {"1": outcome}
    run.forget(["1"])
    assert (jobs.submitted, jobs.ended, jobs.past) == ({}, {}, [])


ALL = Placement.whole("all", 1)
IN_PARTS = (
    Stage(2, Resources(1.0), "map", together=False),
    Stage(1, Resources(1.0), "reduce", after=("map",)),
)


def holding(thing):
    """Names of all that something keeps and that has anything in it."""
    names = vars(thing) if hasattr(thing, "__dict__") else type(thing).__slots__
    return {
        name for name in names if hasattr(kept := getattr(thing, name), "__len__") and len(kept)
    }


def submit(state, job_id, now, **options):
    job = replace(Job.gang(job_id, now, 1, 60.0), **options)
    assert state.submit(PendingJob(job, state.submissions, Point(60.0), 60.0), now) == []


def end(state, unit, now, because=EndedBecause.COMPLETED):
    job_id, stage, tasks = (unit, "", ()) if isinstance(unit, str) else unit
    state.end(Outcome(job_id, 0.0, now, because, stage=stage, tasks=tasks), now)


def test_of_a_job_that_has_ended_the_state_knows_how_alone():
    """However it lived: lost and begun again, in parts, held, cancelled, after what has ended."""
    state = State(CLUSTER, starts_tasks=True)
    nothing = holding(state)
    submit(state, "whole", 0.0)
    state.start("whole", ALL, 0.0)
    end(state, "whole", 1.0, EndedBecause.LOST)
    assert state.start("whole", ALL, 2.0).attempt == 2
    end(state, "whole", 3.0)
    submit(state, "after", 4.0, after=("whole",))
    state.start("after", ALL, 4.0)
    state.cancel("after", 5.0)
    end(state, "after", 5.0, EndedBecause.CANCELLED)
    submit(state, "parts", 6.0, stages=IN_PARTS)
    first, second, last = (
        Part("parts", "map", (0,)),
        Part("parts", "map", (1,)),
        Part("parts", "reduce"),
    )
    state.start(first, ALL, 6.0)
    end(state, first, 7.0, EndedBecause.LOST)
    assert state.start(first, ALL, 8.0).attempt == 2
    assert state.start(second, ALL, 8.0).attempt == 1
    for part in (first, second):
        end(state, part, 9.0)
    state.start(last, ALL, 9.0)
    end(state, last, 10.0)
    submit(state, "held", 11.0)
    state.hold("held", 11.0)
    state.cancel("held", 12.0)
    assert set(state.ended) == {"whole", "after", "parts", "held"}
    assert holding(state) == nothing | {"ended", "_line"}
    state.forget(list(state.ended))
    assert holding(state) == nothing


def test_folds_know_of_ended_jobs_what_their_attempts_tell_and_of_forgotten_ones_nothing():
    log = Log()
    _, controller = run(begun("easy,requested,requested", log), 0, lambda controller: controller)
    waiting = [Cancelled(30_000.0, each.job.job_id) for each in controller.pending]
    ends = [
        Ended(30_000.0, Outcome(job_id, 0.0, 30_000.0, attempt=each.attempt))
        for job_id, each in controller.running.items()
    ]
    controller.step(30_000.0, [*waiting, *ends])
    known = log.known.run
    assert len(known.history.past) > 200
    assert holding(known.history) == {"submitted", "past", "ended", "withdrawn"}
    assert holding(known.state) == holding(controller.state)
    controller.forget_ended(0)
    assert holding(known.history) == set()
    assert holding(known) == {"policy", "learned_of"}
    assert holding(known.state) == holding(State(CLUSTER))
    assert len(list(log.known.compaction.lines())) < 5


def test_what_a_job_has_waited_for_is_forgotten_with_it_and_nothing_comes_of_the_rest():
    """One of an array has failed and is forgotten; that the other completes withdraws nobody."""
    dependency = Dependency(DependencyKind.AFTER_NOT_OK, ("a_0", "a_1"))
    conditions = StartConditions(dependencies=(dependency,), singleton=True)
    late = replace(Job.gang("late", 0.0, 1, 10.0, "ann"), after=("a_0", "a_1", "ok"))
    jobs = [Job.gang(name, 0.0, 1, 10.0, "ann") for name in ("a_0", "a_1", "ok")]
    log = Log()
    controller = begun("fcfs,requested,requested", log)
    controller.step(0.0, [Submitted(0.0, replace(each, name="x")) for each in jobs])
    late = replace(late, name="y", conditions=conditions)
    ends = [
        Ended(5.0, Outcome("a_0", 0.0, 5.0, EndedBecause.FAILED)),
        Ended(5.0, Outcome("a_1", 0.0, 5.0)),
        Ended(5.0, Outcome("ok", 0.0, 5.0)),
    ]
    controller.step(5.0, [*ends, Submitted(5.0, late)])
    assert "late" in controller.running
    controller.forget_ended(2)
    known = recovered(log.known.compaction.lines())
    assert "late" in known.run.state.running
    kept = known.run.history.submitted["late"]
    assert (kept.after, kept.conditions) == (("ok",), StartConditions(singleton=True))
