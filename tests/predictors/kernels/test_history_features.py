"""The twenty features against a slow reference that looks everything up in lists."""

import math

import numpy as np
import pytest

from compiled import take
from foresail.kernels.compile import bare_step
from foresail.kernels.steps import PREDICTOR_STEP
from foresail.predictors.kernels import history
from foresail.predictors.kernels.history import leave, record, started, write_features
from random_history import END, START, SUBMIT, random_history

UNKNOWN_SECONDS = 86_400.0


class SlowUser:
    """A user's ended and running jobs, in lists."""

    def __init__(self):
        self.ended = []  # (end, runtime, cpus)
        self.running = {}  # index -> (start, cpus)


def slow_features(job, now, user):
    """Spec section 5, line by line."""
    runtimes = [runtime for _, runtime, _ in user.ended]
    requests = [cpus for _, _, cpus in user.ended]
    elapsed = [now - start for start, _ in user.running.values()]
    held = [cpus for _, cpus in user.running.values()]
    latest = [*runtimes[::-1], 0.0, 0.0, 0.0]

    def mean(values, empty=0.0):
        return sum(values) / len(values) if values else empty

    limit = job.requested_seconds
    if limit is None:
        limit = max(runtimes, default=UNKNOWN_SECONDS)
    day = 2 * math.pi * (now % 86_400) / 86_400
    week = 2 * math.pi * (now % 604_800) / 604_800
    return [
        limit,
        latest[0],
        latest[1],
        latest[2],
        mean(runtimes[-2:]),
        mean(runtimes[-3:]),
        mean(runtimes),
        job.cpus,
        mean(requests),
        job.cpus / mean(requests) if requests else 1.0,
        mean(held),
        len(held),
        max(elapsed, default=0.0),
        sum(elapsed),
        sum(held),
        now - user.ended[-1][0] if user.ended else 0.0,
        math.cos(day),
        math.sin(day),
        math.cos(week),
        math.sin(week),
    ]


@bare_step(PREDICTOR_STEP)
def predict(inputs):
    write_features(inputs)


@bare_step(PREDICTOR_STEP)
def observe(inputs):
    leave(inputs)
    record(inputs)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_features_equal_slow_reference(seed):
    """Over a random event sequence, every job's features at submission are the reference's."""
    past = random_history(seed)
    specs = past.specs()
    users = np.zeros((10, history.USER_COLUMNS))
    jobs = np.full((len(past.jobs), history.JOB_COLUMNS), np.nan)
    arrays = (specs, np.zeros(1), users, jobs, np.zeros((1, 1)))
    slow: dict[str | None, SlowUser] = {}
    seen_running = 0
    for now, kind, i in past.events:
        job = past.jobs[i]
        user = slow.setdefault(job.user, SlowUser())
        if kind == SUBMIT:
            take(predict, i, now, math.nan, *arrays)
            expected = slow_features(job, now, user)
            assert jobs[i, history.FIRST_FEATURE :] == pytest.approx(expected, rel=1e-12, abs=1e-12)
            seen_running = max(seen_running, len(user.running))
        elif kind == START:
            take(started, i, now, math.nan, *arrays)
            user.running[i] = (now, job.cpus)
        elif kind == END:
            take(observe, i, now, past.runtime[i], *arrays)
            del user.running[i]
            user.ended.append((now, past.runtime[i], job.cpus))
    assert seen_running > 3


@pytest.mark.parametrize(
    ("now", "expected"),
    [(21_600.0, [0, 1, 0.974928, 0.222521]), (302_400.0, [-1, 0, -1, 0])],
)
def test_golden_times_of_day_and_week(now, expected):
    """Spec section 5: the clock's four features."""
    jobs = np.zeros((1, history.JOB_COLUMNS))
    specs = np.array([[now, 1.0, 60.0, 0.0, -1, -1, -1]])
    users = np.zeros((2, history.USER_COLUMNS))
    take(predict, 0, now, math.nan, specs, np.zeros(1), users, jobs, np.zeros((1, 1)))
    assert jobs[0, -4:] == pytest.approx(expected, abs=1e-6)
