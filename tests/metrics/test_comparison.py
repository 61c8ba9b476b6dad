"""Paired comparisons, their bootstrap intervals, and the quality of predictions."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import polars as pl
import pytest

from foresail.metrics.comparison import Metric, compare, held_up, movers, paired
from foresail.metrics.jobs import per_job, prediction_quality
from foresail.metrics.summary import summaries
from foresail.model.errors import InputError
from made_schedules import made_schedule, oracle_schedules, random_workload, waits_schedule

DAY = 86400.0


def _weekly(seed: int, weeks: int = 40, shorter: float = 0.0):
    """Waits whose level differs from week to week; the other schedule takes a part of it away."""
    generator = np.random.default_rng(seed)
    level = np.repeat(generator.exponential(3600, weeks), 30)
    workload = random_workload(weeks * 30, seed).with_columns(
        submit_seconds=pl.Series(np.repeat(np.arange(weeks) * 7 * DAY, 30))
    )
    noise = generator.exponential(1.0, level.size)
    before = waits_schedule(workload, level * noise, processors=64)
    after = waits_schedule(workload, level * noise * (1 - shorter), processors=64, policy="other")
    return before, after


def test_same_schedule_changes_nothing():
    """A schedule against itself: every difference and its interval are zero."""
    before, _ = _weekly(1)
    comparison = compare(before, before)
    assert {change.metric for change in comparison.changes} == set(get_args(Metric))
    for change in comparison.changes:
        assert change.difference.value == 0
        assert change.ratio.value == 1
        if change.difference.is_known:
            assert (change.difference.low, change.difference.high) == (0, 0)


def test_paired_interval_is_narrower_than_the_spread():
    """A tenth off every wait: the ratio is certain although the weeks differ wildly."""
    before, after = _weekly(2, shorter=0.1)
    change = compare(before, after).change("mean_wait_seconds")
    assert change.ratio.value == pytest.approx(0.9)
    assert (change.ratio.low, change.ratio.high) == pytest.approx((0.9, 0.9))
    assert change.other.high - change.other.low > 0.3 * change.other.value
    assert change.difference.high < 0


def test_interval_of_a_mean_agrees_with_theory():
    """For equal weeks the interval is about 1.96 standard errors of the weekly means."""
    before, after = _weekly(3, weeks=200)
    change = compare(before, after, replicates=4000).change("mean_wait_seconds")
    weekly = per_job(after)["wait_seconds"].to_numpy().reshape(200, 30).mean(axis=1)
    error = weekly.std() / math.sqrt(200)
    assert change.other.low == pytest.approx(change.other.value - 1.96 * error, rel=0.05)
    assert change.other.high == pytest.approx(change.other.value + 1.96 * error, rel=0.05)


def test_interval_of_a_quantile_agrees_with_plain_resampling():
    """The grid of quantiles gives the interval of a slow bootstrap over the jobs themselves."""
    before, after = _weekly(4, weeks=30)
    change = compare(before, after).change("p90_wait_seconds")
    waits = per_job(after)["wait_seconds"].to_numpy().reshape(30, 30)
    generator = np.random.default_rng(0)
    plain = [np.quantile(waits[generator.integers(0, 30, 30)].ravel(), 0.9) for _ in range(2000)]
    low, high = np.quantile(plain, [0.025, 0.975])
    assert change.other.low == pytest.approx(low, rel=0.1)
    assert change.other.high == pytest.approx(high, rel=0.1)


def test_intervals_cover():
    """Of thirty logs drawn from the same source, the 95 % interval holds the truth in most."""
    held = 0
    for seed in range(30):
        before, after = _weekly(seed, weeks=40)
        held += (
            compare(before, after, replicates=200).change("mean_wait_seconds").other.contains(3600)
        )
    assert held >= 24


def test_seed_decides():
    """The same seed gives the same interval, another one another."""
    before, after = _weekly(5, shorter=0.5)
    first, second, third = (
        compare(before, after, seed=seed).change("p99_bounded_slowdown").other for seed in (1, 1, 2)
    )
    assert first == second
    assert first != third


def test_short_logs():
    """Fewer than five weeks are cut into days; fewer than five days get no interval."""
    days = waits_schedule(
        random_workload(200).with_columns(submit_seconds=pl.Series(np.arange(200) * 8000.0)),
        np.arange(200.0),
    )
    comparison = compare(days, days)
    assert (comparison.blocks, comparison.block_seconds) == (19, DAY)
    hour = made_schedule(
        {"submit_seconds": [0.0, 1.0], "start_seconds": [5.0, 6.0], "end_seconds": [9.0, 9.0]}
    )
    comparison = compare(hour, hour)
    assert comparison.blocks == 0
    assert not any(change.other.is_known for change in comparison.changes)


def test_no_wait_has_no_ratio():
    """Where the baseline does not wait, the ratio of waits is unknown, not infinite."""
    still = made_schedule(
        {"submit_seconds": [0.0, 1.0], "start_seconds": [0.0, 1.0], "end_seconds": [9.0, 9.0]}
    )
    later = made_schedule(
        {"submit_seconds": [0.0, 1.0], "start_seconds": [0.0, 4.0], "end_seconds": [9.0, 12.0]}
    )
    change = compare(still, later).change("mean_wait_seconds")
    assert math.isnan(change.ratio.value)
    assert change.difference.value == 1.5


def test_jobs_of_one_schedule_only():
    """Jobs are matched by id; what only one schedule has is counted and left out."""
    columns = {"submit_seconds": [0.0, 1.0], "start_seconds": [0.0, 1.0], "end_seconds": [9.0, 9.0]}
    left = made_schedule({"job_id": ["a", "b"], **columns})
    right = made_schedule({"job_id": ["b", "c"], **columns})
    comparison = compare(left, right)
    assert (comparison.jobs, comparison.unmatched_jobs) == (1, 2)
    with pytest.raises(InputError, match="no job in common"):
        compare(left, made_schedule({"job_id": ["x", "y"], **columns}))


def test_held_up_by_hand():
    """More than 1.1 times as long and an hour: not at the limit; the mean is of those alone."""
    workload = random_workload(4, 1)
    before = waits_schedule(workload, np.array([0.0, 10_000.0, 0.0, 36_000.0]), processors=64)
    waits = np.array([3600.0, 14_601.0, 7200.0, 100.0])
    after = waits_schedule(workload, waits, processors=64, policy="other")
    found = held_up(paired(before, after))
    assert (found.share, found.mean_seconds) == (0.5, (4601.0 + 7200.0) / 2)
    none = held_up(paired(before, before))
    assert (none.share, none.mean_seconds) == (0.0, 0.0)


def test_summaries_are_against_the_first():
    """The baseline is against nothing; gains and longest wait are ratios of the two summaries."""
    before, after = _weekly(4, weeks=3, shorter=0.5)
    first, other = summaries([before, after])
    assert math.isnan(first.held_up_share)
    assert math.isnan(first.slowdown_saved_share)
    assert other.longest_wait_ratio == pytest.approx(0.5)
    assert other.slowdown_saved_share == pytest.approx(
        1 - other.average_bounded_slowdown / first.average_bounded_slowdown
    )
    assert other.held_up_share == 0.0
    assert math.isnan(summaries([after])[0].held_up_share)


def test_movers():
    """Who gained and who lost, most first; jobs that stay are in neither."""
    columns = {"submit_seconds": [0.0] * 4, "end_seconds": [100.0] * 4}
    before = made_schedule({**columns, "start_seconds": [10.0, 20.0, 30.0, 40.0]})
    after = made_schedule({**columns, "start_seconds": [10.0, 5.0, 29.0, 60.0]})
    gained, lost = movers(paired(before, after))
    assert gained["job_id"].to_list() == ["2", "3"]
    assert gained["difference_seconds"].to_list() == [-15, -1]
    assert lost["job_id"].to_list() == ["4"]


def test_prediction_quality_by_hand():
    """Five jobs of 100 s: error, factor two, both tails, and the stated range."""
    schedule = made_schedule(
        {
            "submit_seconds": [0.0] * 5,
            "start_seconds": [0.0] * 5,
            "end_seconds": [100.0] * 5,
            "predicted_seconds": [100.0, 60.0, 300.0, 10.0, None],
            "predicted_low_seconds": [90.0, 20.0, 150.0, None, None],
            "predicted_high_seconds": [110.0, 80.0, 500.0, None, None],
        },
        processors=5,
    )
    told = prediction_quality(per_job(schedule))
    assert told.predicted_jobs == 4
    assert told.mean_absolute_error_seconds == (0 + 40 + 200 + 90) / 4
    assert (told.within_factor_two, told.under_predicted, told.over_predicted) == (0.5, 0.5, 0.25)
    assert told.interval_jobs == 3
    assert (told.covered, told.below_interval, told.above_interval) == pytest.approx([1 / 3] * 3)


def test_no_predictions():
    """Without predictions every figure is unknown, and says so."""
    schedule = made_schedule(
        {"submit_seconds": [0.0], "start_seconds": [0.0], "end_seconds": [1.0]}
    )
    told = prediction_quality(per_job(schedule))
    assert told.predicted_jobs == 0
    assert math.isnan(told.mean_absolute_error_seconds)


def test_published_errors():
    """Clairvoyant predictions have no error; the two-job mean errs on both sides."""
    easy, clairvoyant, _, plus = oracle_schedules("KTH-SP2")
    assert prediction_quality(per_job(clairvoyant)).mean_absolute_error_seconds == 0
    assert prediction_quality(per_job(easy)).under_predicted == 0
    assert 0.3 < prediction_quality(per_job(plus)).under_predicted < 0.6
