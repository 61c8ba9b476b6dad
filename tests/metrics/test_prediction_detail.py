"""Sharpness over time and the worst predicted users, by hand."""

from __future__ import annotations

import pytest

from foresail.metrics.jobs import per_job
from foresail.metrics.prediction import sharpness, worst_predicted_users
from made_schedules import made_schedule


@pytest.fixture
def jobs():
    """Two days, three users; the last job's prediction is a single number."""
    return per_job(
        made_schedule(
            {
                "submit_seconds": [0.0, 10.0, 86400.0, 86500.0],
                "start_seconds": [0.0, 10.0, 86400.0, 86500.0],
                "end_seconds": [100.0, 210.0, 86450.0, 86600.0],
                "user": ["ann", "bob", "ann", "eve"],
                "predicted_seconds": [100.0, 500.0, 40.0, 9000.0],
                "predicted_low_seconds": [50.0, 100.0, 30.0, 9000.0],
                "predicted_high_seconds": [150.0, 700.0, 70.0, 9000.0],
            }
        )
    )


def test_sharpness_is_width_over_prediction(jobs):
    """Median width 350 s of median prediction 300 s on the first day, 40 s of 40 s on the next."""
    table = sharpness(jobs, 0.0, 86400.0)
    assert table["from_seconds"].to_list() == [0.0, 86400.0]
    assert table["jobs"].to_list() == [2, 1]
    assert table["median_width_seconds"].to_list() == [350.0, 40.0]
    assert table["relative_width"].to_list() == pytest.approx([350 / 300, 1.0])


def test_worst_users_are_those_with_most_error(jobs):
    """Bob is 300 s off, Ann 10 s in sum; Eve's prediction states no range."""
    table = worst_predicted_users(jobs)
    assert table["user"].to_list() == ["bob", "ann"]
    assert table["absolute_error_seconds"].to_list() == [300.0, 10.0]
    assert table["share_of_error"].to_list() == pytest.approx([300 / 310, 10 / 310])
    assert table["too_short"].to_list() == [0.0, 0.5]
    assert worst_predicted_users(jobs, most=1)["user"].to_list() == ["bob"]
