"""Estimates from all that is known at submission: nothing of the future is in them."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from made_evaluations import random_jobs

pytest.importorskip("sklearn")

SCRIPT = Path(__file__).resolve().parents[2] / "studies" / "knowledge" / "estimating.py"
DAY = 86_400.0


@pytest.fixture
def estimating(monkeypatch):
    """The module."""
    spec = importlib.util.spec_from_file_location("estimating_study", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def workload():
    """Jobs over ten weeks, which all start at once."""
    made = random_jobs(700, seed=5)
    submit = np.sort(np.random.default_rng(1).uniform(0.0, 70 * DAY, 700))
    columns = {"submit_seconds": submit, "recorded_wait_seconds": np.zeros(700)}
    runtime = np.random.default_rng(2).lognormal(7.0, 1.5, 700)
    columns |= {"runtime_seconds": runtime, "requested_seconds": 2.0 * runtime.max() + 0.0 * submit}
    return made.with_jobs(
        made.jobs.with_columns(**{name: pl.Series(each) for name, each in columns.items()})
    )


def later(workload, now):
    """The same jobs, of which those that run on past an instant run ten times as long."""
    jobs = workload.jobs
    end = jobs["submit_seconds"] + jobs["runtime_seconds"]
    longer = jobs["runtime_seconds"] * pl.Series(np.where(end > now, 10.0, 1.0))
    return workload.with_jobs(jobs.with_columns(runtime_seconds=longer))


def test_only_what_has_ended_is_seen_and_learned(estimating, workload):
    """What happens after a submission changes neither what is seen of the job nor its estimate."""
    now = 50 * DAY
    before = workload.jobs["submit_seconds"].to_numpy() < now
    medians = np.full(len(workload), 1000.0)
    other = later(workload, now)
    assert not np.array_equal(workload.runtime_seconds, other.runtime_seconds)
    for one in (workload, other):
        assert before.sum() > 2 * estimating.FEWEST_JOBS
        seen = estimating.features(one, medians)[before]
        told = [
            estimating.estimated(one, medians, learn)[before]
            for learn in estimating.ESTIMATORS.values()
        ]
        if one is workload:
            first, first_predicted = seen, told
    np.testing.assert_array_equal(seen, first)
    np.testing.assert_array_equal(told, first_predicted)
    assert all((each != 1000.0).any() for each in told)


def test_what_is_seen_of_three_jobs(estimating, workload):
    """Worked out by hand: the third job comes while the second runs and after the first."""
    user = workload.jobs["user"][0]
    jobs = workload.jobs.head(3).with_columns(
        user=pl.lit(user),
        submit_seconds=pl.Series([0.0, 30.0, 200.0]),
        runtime_seconds=pl.Series([100.0, 1000.0, 5.0]),
        requested_seconds=pl.Series([6000.0, 2000.0, 50.0]),
    )
    first, second, third = estimating.seen(workload.with_jobs(jobs))
    assert first == estimating.Seen(math.inf, math.inf, 0, 0, 0, (6000.0,), ())
    assert second == estimating.Seen(30.0, math.inf, 1, 1, 0, (6000.0, 2000.0), ())
    asked = (6000.0, 2000.0, 50.0)
    assert third == estimating.Seen(170.0, 100.0, 0, 1, 1, asked, (100.0,))


def test_scores_become_seconds_of_the_same_rank(estimating):
    """The highest score is the longest runtime, the middle one the middle."""
    runtime = np.array([5.0, 900.0, 40.0])
    score = estimating.in_seconds(
        lambda rows: -rows[:, 0], np.array([[1.0], [2.0], [3.0]]), runtime
    )
    np.testing.assert_allclose(score(np.array([[1.0], [2.0], [3.0], [9.0]])), [900, 40, 5, 5])


def test_pairs_find_the_order(estimating):
    """Where one number tells the runtime, a score by pairs has the order of that number."""
    random = np.random.default_rng(4)
    table = random.normal(size=(2000, 4))
    table[:, 0] = random.integers(0, 5, 2000)
    runtime = np.exp(table[:, 2])
    told = estimating.pairwise(table, runtime)(table)
    ranks = [np.argsort(np.argsort(each)) for each in (told, runtime)]
    assert np.corrcoef(*ranks)[0, 1] > 0.95
