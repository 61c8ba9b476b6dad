"""Pilots: how many, which, and what they tell."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.schedulers.kernels import pilots

FIRST = 3 * 100
NONE = pilots.Prior(np.nan, np.nan, np.nan, np.nan)


def ratio_after(scores, asked=FIRST):
    numbers = np.zeros(pilots.PILOT_NUMBERS)
    numbers[pilots.TRIALS] = 100
    numbers[pilots.MARGIN] = 1.1
    numbers[pilots.ASKED] = asked
    table = pilots.no_outcomes(100)
    for ratio, score in scores.items():
        pilots.learn_ratio(table, ratio, score)
    return pilots.ratio_percent(numbers, table)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ({2: 1.00, 3: 1.05, 4: 1.2}, 2),
        ({2: 0.90, 3: 1.05, 4: 1.2}, 1),
        ({2: 1.2, 3: 1.0, 4: 0.9}, 5),
        ({2: 1.1, 3: 1.0, 4: 1.05}, 3),
        ({}, 3),
        ({2: 1.0, 4: 1.0}, 2),
        ({2: 1.0, 3: 1.0, 4: 1.0}, 3),
        ({1: 0.5, 2: 0.9, 3: 1.05}, 1),
        ({2: 0.5}, 2),
    ],
)
def test_golden_10_2(scores, expected):
    """Spec slearn 10.2, and what it leaves open: ties, and scores that are not there yet."""
    assert ratio_after(scores) == expected


@pytest.mark.parametrize(
    ("asked", "expected"), [(0, 3), (99, 3), (100, 2), (199, 2), (200, 4), (299, 4)]
)
def test_the_first_ratios(asked, expected):
    """3, 2 and 4 percent in turn, whatever the scores (11.4)."""
    assert ratio_after({2: 0.1}, asked) == expected


def test_outcomes_are_forgotten():
    """The score is the mean of the last ones kept."""
    table = pilots.no_outcomes(2)
    for outcome in (9.0, 1.0, 2.0):
        pilots.learn_ratio(table, 3, outcome)
    assert table[3, pilots.SCORE] == 1.5


@pytest.mark.parametrize(
    ("tasks", "percent", "expected"),
    [(100, 3, 3), (150, 3, 4), (50, 3, 1), (150, 1, 1), (150, 10, 15), (3, 3, 1), (2, 100, 2)],
)
def test_numbers_of_pilots(tasks, percent, expected):
    """Spec slearn, section 3.2."""
    assert pilots.pilot_count(percent, tasks) == expected


@given(st.integers(1, 40), st.data(), st.integers(0, 2**32 - 1), st.integers(0, 10**9))
def test_pilots_are_drawn_without_replacement(tasks, data, seed, job):
    """The order keeps all tasks, and the same names give the same draw."""
    count = data.draw(st.integers(0, tasks))
    order, again = np.arange(tasks), np.arange(tasks)
    pilots.draw_pilots(order, tasks, count, seed, job)
    pilots.draw_pilots(again, tasks, count, seed, job)
    assert sorted(order.tolist()) == list(range(tasks))
    assert order.tolist() == again.tolist()


def test_each_task_is_as_likely_a_pilot():
    """Over 20,000 jobs, each of ten tasks is one of three pilots in 3 of 10 of them."""
    counts = np.zeros(10)
    for job in range(20_000):
        order = np.arange(10)
        pilots.draw_pilots(order, 10, 3, 7, job)
        counts[order[:3]] += 1
    np.testing.assert_allclose(counts / 20_000, 0.3, atol=0.015)


def test_golden_6_1():
    """Spec slearn 6.1: the posterior mean with and without a prior."""
    told = np.array([1.2, 0.8, 1.6])
    assert pilots.posterior_mean(told, 0.4**2, 1.0, 0.5**2) == pytest.approx(1.1648351648, abs=1e-9)
    assert pilots.posterior_mean(told, 0.4**2, 1.0, np.inf) == pytest.approx(1.2)


def test_golden_10_4():
    """Spec slearn 10.4: the first stage is sampled, the others are as it says of history."""
    assert pilots.total_seconds(120.0, 80.0, 250.0, 2.0) == 495.0
    assert pilots.total_seconds(120.0, 0.0, 250.0, 2.0) == 370.0
    assert pilots.total_seconds(120.0, np.nan, np.nan, 2.0) == 360.0


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [
        (pilots.MEAN, 4.0),
        (pilots.POSTERIOR, 4.0),
        (pilots.LOG_POSTERIOR, 4.0),
    ],
)
def test_statistics(statistic, expected):
    """Without a prior the posterior is the mean."""
    numbers = np.zeros(pilots.PILOT_NUMBERS)
    numbers[pilots.STATISTIC] = statistic
    told = np.array([9.0, 1.0, 2.0])
    assert pilots.task_seconds(numbers, told, NONE) == expected
    assert told.tolist() == [9.0, 1.0, 2.0]


@pytest.mark.parametrize("statistic", [pilots.POSTERIOR, pilots.LOG_POSTERIOR])
def test_a_prior_counts_for_less_the_more_pilots_there_are(statistic):
    """With the variation that other jobs have shown."""
    numbers = np.zeros(pilots.PILOT_NUMBERS)
    numbers[pilots.STATISTIC] = statistic
    pilots.learn_variation(numbers, 2.0, 4.0, 10.0)
    assert numbers[pilots.VARIATION] == pytest.approx(0.5)
    found = [
        pilots.task_seconds(
            numbers,
            np.full(count, 10.0),
            pilots.Prior(2.0, 4.0, np.log(2.0), 1.0),
        )
        for count in (1, 2, 8, 64)
    ]
    assert found == sorted(found)
    assert 2.0 < found[0] < found[-1] < 10.0


def test_history_is_surer_where_jobs_differ_less_than_their_tasks():
    """By the variances over the number of pilots; unknown ones leave it to the pilots."""
    numbers = np.zeros(pilots.PILOT_NUMBERS)
    assert not pilots.history_is_surer(numbers, 10.0, 0.0, 1)
    pilots.learn_variation(numbers, 2.0, 4.0, 10.0)  # half of the square of the mean
    assert pilots.history_is_surer(numbers, 10.0, 49.0, 1)
    assert not pilots.history_is_surer(numbers, 10.0, 51.0, 1)
    assert not pilots.history_is_surer(numbers, 10.0, 26.0, 2)
    assert not pilots.history_is_surer(numbers, 10.0, np.nan, 1)


def test_the_posterior_of_logarithms():
    """Halfway between them (as a ratio) where both are as sure; a certain prior is not moved."""
    told = np.array([8.0])
    assert pilots.log_posterior_median(told, np.expm1(1.0), np.log(2.0), 1.0) == pytest.approx(4.0)
    assert pilots.log_posterior_median(told, 1.0, np.log(2.0), 0.0) == pytest.approx(2.0)
    assert pilots.log_posterior_median(told, 0.0, np.log(2.0), 0.0) == 8.0
    assert pilots.log_posterior_median(np.zeros(1), 1.0, np.log(2.0), 1.0) == 0.0
