"""What stated ranges cover, over time and by user, counted by hand."""

from __future__ import annotations

import polars as pl
import pytest

from foresail.evaluation.replaying import evaluate
from foresail.evaluation.tables import STATED, coverage_by_user, coverage_over_time
from made_evaluations import random_jobs

WEEK = 604_800.0


@pytest.fixture(scope="module")
def evaluation():
    """Ten weeks of jobs of twenty users."""
    return evaluate(random_jobs(600, seed=5, weeks=10.0), "similar")


def test_shares_are_those_counted_one_by_one(evaluation):
    """By week and by user: ends of a range count as inside."""
    rows = evaluation.jobs.to_dicts()
    begin = rows[0]["submit_seconds"]
    weeks = coverage_over_time(evaluation)
    users = coverage_by_user(evaluation)
    for stated, (low, high) in STATED.items():
        for week in weeks.iter_rows(named=True):
            own = [r for r in rows if (r["submit_seconds"] - begin) // WEEK + 1 == week["stretch"]]
            inside = sum(r[low] <= r["actual"] <= r[high] for r in own)
            assert week["jobs"] == len(own)
            assert week[f"covered_{stated}"] == pytest.approx(inside / len(own))
        for user in users.iter_rows(named=True):
            own = [r for r in rows if r["user"] == user["user"]]
            inside = sum(r[low] <= r["actual"] <= r[high] for r in own)
            assert user[f"covered_{stated}"] == pytest.approx(inside / len(own))


def test_the_users_with_most_jobs_come_first(evaluation):
    """As many as asked for; jobs of unknown users are left out."""
    counts = evaluation.jobs["user"].value_counts().sort("count", "user", descending=[True, False])
    assert coverage_by_user(evaluation, 3)["user"].to_list() == counts["user"].head(3).to_list()
    without = evaluation.jobs.with_columns(user=pl.lit(None, dtype=pl.String))
    nameless = type(evaluation)(**{**vars(evaluation), "jobs": without})
    assert coverage_by_user(nameless).height == 0
