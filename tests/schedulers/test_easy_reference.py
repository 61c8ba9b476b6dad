"""The schedule that EASY would have made: rows of jobs that are over are used again."""

from __future__ import annotations

import numpy as np
import pytest

from foresail.distributions.point import Point
from foresail.kernels.signatures import Shares
from foresail.model.cluster import Cluster
from foresail.model.job import Job
from foresail.model.view import PendingJob
from foresail.schedulers import _reference
from foresail.schedulers._reference import EasyReference

CPUS = 16
SHARES = Shares(0.7, 0.9)


def dues_of_a_long_run(jobs, seed):
    """Whose turn came when; and how many rows there were at most and in the end."""
    random = np.random.default_rng(seed)
    reference = EasyReference(Cluster.of_processors(CPUS), SHARES)
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
            events.append(((started + ended) / 2, 2, "went_back", job_id))
        events.append((max(ended, at), 3, "left", job_id))
    dues = []
    for now, _, what, told in sorted(events, key=lambda each: each[:2]):
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
