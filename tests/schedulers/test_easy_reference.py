"""The schedule that EASY would have made: what is told of it in time, rows that are used again."""

from __future__ import annotations

import numpy as np
import pytest

from foresail.distributions.basic import Point
from foresail.kernels.steps import Shares
from foresail.model.cluster import Cluster
from foresail.model.job import Job
from foresail.model.view import PendingJob
from foresail.schedulers import _reference
from foresail.schedulers._reference import EasyReference

CPUS = 16
SHARES = Shares(0.7, 0.9)


def long_run(jobs, seed):
    """What happens to jobs, in order: when, what, and what is told of it."""
    random = np.random.default_rng(seed)
    at = 0.0
    events = []
    for number in range(jobs):
        at += float(random.exponential(160.0))
        job_id, cpus = str(number), int(random.integers(1, CPUS + 1))
        request = float(random.integers(60, 900))
        started = at + float(random.exponential(200.0)) * (random.random() < 0.7)
        ended = started + request * float(random.random())
        job = Job.gang(job_id, at, cpus, request)
        pending = PendingJob(job, number, Point(request / 2), request)
        events.append((at, 0, "entered", pending))
        fate = random.random()
        if fate < 0.9:
            events.append((started, 1, "started", job_id))
        if fate < 0.1:
            events.append(((started + ended) / 2, 2, "requeued", job_id))
        events.append((max(ended, at), 3, "left", job_id))
    return [(now, what, told) for now, _, what, told in sorted(events, key=lambda each: each[:2])]


def dues_of_a_long_run(jobs, seed):
    """Whose turn came when; and how many rows there were at most and in the end."""
    reference = EasyReference(Cluster.of_processors(CPUS), SHARES)
    dues = []
    for now, what, told in long_run(jobs, seed):
        dues += [(now, *each) for each in reference.found(now)]
        getattr(reference, what)(told, now)
    return dues, len(reference._parts[0]._at.jobs)


@pytest.mark.parametrize("seed", range(4))
def test_rows_that_are_used_again_change_nothing(monkeypatch, seed):
    dues, rows = dues_of_a_long_run(2_000, seed)
    monkeypatch.setattr(_reference, "_FEW", 4_096)
    assert dues_of_a_long_run(2_000, seed) == (dues, 4_096)
    assert len(dues) > 1_000
    assert rows <= 1_024


@pytest.mark.parametrize("seed", range(4))
def test_who_waits_is_told_in_time(seed):
    """Asked again when it says so, it tells of each job that waits before that is due."""
    reference = EasyReference(Cluster.of_processors(CPUS), SHARES)
    waiting, told_between = set(), 0
    for now, what, told in long_run(1_000, seed):
        while (asked := reference.next_seconds()) <= now:
            for job_id, due in reference.found(asked):
                told_between += asked < now
                assert job_id not in waiting or due.due_seconds >= asked
            assert reference.next_seconds() > asked
        for job_id, due in reference.found(now):
            assert job_id not in waiting or due.due_seconds >= now
        getattr(reference, what)(told, now)
        if what in ("entered", "requeued"):
            waiting.add(told.job.job_id if what == "entered" else told)
        else:
            waiting.discard(told)
    assert told_between > 0


def test_a_job_that_goes_back_is_due_when_it_was():
    """The tick of a job that has started is of no use, until it waits again."""
    reference = EasyReference(Cluster.of_processors(CPUS), SHARES)
    for job_id, now in (("a", 0.0), ("b", 0.0), ("c", 390.0)):
        job = Job.gang(job_id, now, CPUS, 1000.0)
        reference.entered(PendingJob(job, 0, Point(5000.0), 1000.0), now)
    reference.started("a", 390.0)
    reference.left("a", 400.0)
    dues = dict(reference.found(401.0))
    assert dues["c"].due_seconds == 671.0  # patient for 0.7 times the 400 s of b
    reference.started("b", 401.0)
    assert reference.next_seconds() == 671.0
    reference.started("c", 402.0)
    assert reference.next_seconds() == np.inf
    reference.requeued("c", 403.0)
    assert reference.next_seconds() == 671.0
    assert reference.found(671.0) == []
    assert reference.next_seconds() == np.inf
