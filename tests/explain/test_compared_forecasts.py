"""The comparison of forecasts: scores by slow references, and other methods that know no future."""

from __future__ import annotations

import importlib
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "experiments" / "forecasts"


@pytest.fixture
def script(monkeypatch):
    """A module of the folder by name."""
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module


def made_schedule(script, random, jobs=40, processors=8.0):
    """Jobs that start at whole seconds, with limits that are never too short."""
    submit = np.sort(random.integers(0, 200, jobs)).astype(float)
    start = submit + random.integers(0, 60, jobs)
    runtime = random.integers(1, 40, jobs).astype(float)
    return script("schedules").PastSchedule(
        job_ids=[str(job) for job in range(jobs)],
        submit=submit,
        start=start,
        end=start + runtime,
        cpus=random.integers(1, 5, jobs).astype(float),
        limits=runtime + random.integers(0, 30, jobs),
        users=random.integers(0, 3, jobs),
        queues=random.integers(0, 2, jobs),
        processors=processors,
        steps=submit,
    )


def test_crps_is_the_energy_of_equally_probable_values(script):
    """Twice the integral of pinball losses is E|X - y| - E|X - X'| / 2."""
    random = np.random.default_rng(5)
    values = np.sort(random.exponential(10.0, (6, 9)), axis=1)
    truth = random.exponential(10.0, 6)
    levels = (np.arange(9) + 0.5) / 9
    expected = [
        np.mean([abs(x - y) for x in row]) - np.mean([[abs(a - b) for a in row] for b in row]) / 2
        for row, y in zip(values, truth, strict=True)
    ]
    assert script("scoring").crps(values, truth, levels) == pytest.approx(expected)


def test_scores_are_as_counted_one_by_one(script):
    """Shares, errors and coverage, and no answer is none that holds."""
    random = np.random.default_rng(6)
    stated = np.sort(random.exponential(2_000.0, (200, 3)), axis=1)
    stated[::10] = np.nan
    truth = random.exponential(2_000.0, 200)
    found = script("scoring").score(stated, truth)
    rows = [
        (*row, y)
        for row, y in zip(stated.tolist(), truth.tolist(), strict=True)
        if row[0] == row[0]
    ]
    errors = sorted(abs(middle - y) for _, middle, _, y in rows)
    assert found.asked == 200
    assert found.unknown == pytest.approx(0.1)
    assert found.near[1] == pytest.approx(sum(error <= 600.0 for error in errors) / 180)
    assert found.median_error == pytest.approx((errors[89] + errors[90]) / 2)
    twice = sum(0.5 <= max(middle, 1.0) / max(y, 1.0) <= 2.0 for _, middle, _, y in rows)
    assert found.doubled == pytest.approx(twice / 180)
    inside = sum(low - 1.0 <= y <= high + 1.0 for low, _, high, y in rows)
    assert found.within == pytest.approx(inside / 180)
    point = np.repeat(truth[:, None] + 30.0, 3, axis=1)
    assert script("scoring").score(point, truth).crps == pytest.approx(30.0)


def test_planned_starts_are_those_of_a_profile_by_seconds(script):
    """Conservative backfilling with one number of free processors per second."""
    random = np.random.default_rng(7)
    compared = 0
    for _ in range(20):
        past = made_schedule(script, random, processors=12.0)
        now = float(random.integers(50, 200))
        waits = np.flatnonzero((past.submit <= now) & (past.start > now))
        if not waits.size:
            continue
        found = script("by_limits").planned_starts(past, now, waits)
        free = np.full(4_000, 12.0)
        runs = (past.start <= now) & (past.end > now)
        for job in np.flatnonzero(runs):
            ends = max(past.start[job] + past.limits[job], now + 60.0)
            free[: int(ends - now)] -= past.cpus[job]
        for job, start in zip(waits, found, strict=True):
            width, length = past.cpus[job], int(past.limits[job])
            at = next(s for s in range(3_000) if (free[s : s + length] >= width).all())
            free[at : at + length] -= width
            assert start == now + at
            compared += 1
    assert compared > 50


@pytest.mark.parametrize("method", ["past_waits", "learned_waits"])
def test_other_methods_know_nothing_of_later_starts(script, method, monkeypatch):
    """What comes after a question is asked changes no answer."""
    module = script(method)
    if method == "learned_waits":
        pytest.importorskip("sklearn")
        monkeypatch.setattr(module, "_FEWEST", 30)
    monkeypatch.setattr(script("past_waits"), "_FEWEST", 20)
    random = np.random.default_rng(8)
    past = made_schedule(script, random, jobs=150)
    jobs = np.flatnonzero(past.start - past.submit > 1.0)[60:64]
    asked = past.submit[jobs] + 1.0
    first = module.stated_waits(past, jobs, asked)
    later = past.start > asked[-1]
    past.start[later] += 500.0
    past.end[later] += 700.0
    assert np.isfinite(first).all()
    assert np.array_equal(first, module.stated_waits(past, jobs, asked))


def test_bounds_forget_what_was_before_a_change(script):
    """After waits have become ten times as long, three starts are enough to know."""
    random = np.random.default_rng(9)
    kind = script("past_waits")._Kind()
    for wait in random.uniform(90.0, 110.0, 400):
        kind.observe(wait)
    for wait in (1_000.0, 1_010.0, 990.0):
        kind.observe(wait)
    assert len(kind) == 59
    for wait in random.uniform(900.0, 1_100.0, 100):
        kind.observe(wait)
    assert kind.quantiles(1.0)[1] > 900.0


def test_stand_in_limits_are_the_longest_so_far(script):
    """Of the user, else of the queue, else of all that have ended by then."""
    jobs = pl.DataFrame(
        {
            "submit_seconds": [0.0, 10.0, 200.0, 210.0, 220.0],
            "runtime_seconds": [100.0, 500.0, 5.0, 5.0, 5.0],
            "recorded_wait_seconds": [50.0, None, 0.0, 0.0, 0.0],
            "requested_seconds": [None, 600.0, None, None, None],
            "user": ["a", "b", "a", "c", "c"],
            "queue": ["x", "x", "y", "x", "y"],
        }
    )
    found = script("schedules").stand_in_limits(jobs)
    assert found.tolist() == [86_400.0, 600.0, 100.0, 100.0, 5.0]


def test_joined_forecasts_follow_what_has_held(script):
    """Half of each at first; after many questions nearly the one that was near."""
    truth = np.full(200, 1_000.0)
    near, far = (np.repeat([[low, low + 10.0, low + 20.0]], 200, 0) for low in (990.0, 9_990.0))
    asked = np.arange(200.0) * 2_000.0
    joined = script("joined").joined_waits([near, far], truth, asked, asked + truth)
    off = np.abs(joined[:, 1] - truth)
    assert off[0] > 1_000.0
    assert off[-1] < 50.0
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(off))
