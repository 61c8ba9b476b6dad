"""Green hours: the best start against trying them all, and what waiting saves."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.cloud.waiting.carbon import (
    CarbonIntensity,
    green_metrics,
    green_starts,
)
from foresail.cloud.waiting.jobs import TraceJobs
from foresail.model.errors import InputError

HOUR = 3600.0


def one_job(submit, runtime):
    """A trace of one job."""
    return TraceJobs(np.array([submit]), np.array([runtime]), np.array([1]))


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=6),
    st.integers(0, 20),
    st.integers(0, 20),
)
def test_grams_are_the_integral(values, start, length):
    """Whole steps, summed one by one, round and round."""
    carbon = CarbonIntensity(np.array(values, dtype=float))
    expected = sum(values[hour % len(values)] for hour in range(start, start + length))
    assert float(carbon.grams(start * HOUR, length * HOUR)) == pytest.approx(expected)


def test_grams_of_parts_of_steps():
    """Half an hour at 2 and a quarter at 6."""
    carbon = CarbonIntensity(np.array([2.0, 6.0]))
    assert float(carbon.grams(HOUR / 2, 0.75 * HOUR)) == pytest.approx(1.0 + 1.5)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 9), min_size=2, max_size=6),
    st.floats(0.0, 6.0),
    st.lists(st.floats(0.0, 4.0), min_size=1, max_size=3),
    st.floats(0.0, 8.0),
    st.sampled_from([0.0, 0.5]),
)
def test_no_start_is_better(values, submit, runtimes, patience, value):
    """On a fine grid of starts, with several runtimes and a price of delay."""
    carbon = CarbonIntensity(np.array(values, dtype=float))
    rows = np.array([runtimes]) * HOUR

    def cost(start):
        grams = carbon.grams(start, rows[0]).mean()
        return float(grams) + value * (start / HOUR - submit)

    jobs = one_job(submit * HOUR, 1.0)
    start = float(green_starts(jobs, carbon, rows, patience * HOUR, value)[0])
    assert submit * HOUR <= start <= (submit + patience) * HOUR * (1 + 1e-12) + 1e-6
    tried = np.linspace(submit, submit + patience, 41) * HOUR
    assert cost(start) <= min(cost(each) for each in tried) + 1e-6


def test_waiting_for_the_night_saves():
    """Two grams by night instead of four by day; a dear delay makes nobody wait."""
    carbon = CarbonIntensity(np.array([4.0] * 12 + [2.0] * 12))
    jobs = one_job(6 * HOUR, 2 * HOUR)
    start = green_starts(jobs, carbon, jobs.runtime_seconds, 24 * HOUR)
    assert start.tolist() == [12 * HOUR]
    grams, at_once = (
        0.5 * carbon.grams(each, jobs.runtime_seconds) for each in (start, jobs.submit_seconds)
    )
    result = green_metrics(grams, at_once, start - jobs.submit_seconds)
    assert (result.grams, result.grams_at_once) == pytest.approx((2.0, 4.0))
    assert result.saved == pytest.approx(0.5)
    assert result.mean_wait_seconds == 6 * HOUR
    assert green_starts(jobs, carbon, jobs.runtime_seconds, 5 * HOUR).tolist() == [11 * HOUR]
    dear = green_starts(jobs, carbon, jobs.runtime_seconds, 24 * HOUR, grams_per_hour=1.0)
    assert dear.tolist() == [6 * HOUR]


def test_nobody_waits_for_nothing():
    """Under one intensity all start at once, late in the series too; once round is far enough."""
    random = np.random.default_rng(3)
    submit = np.sort(random.uniform(0.0, 4000 * 24 * HOUR, 500))
    jobs = TraceJobs(submit, random.exponential(HOUR, 500), np.ones(500, np.int64))
    flat = CarbonIntensity(np.full(24, 333.3))
    assert green_starts(jobs, flat, jobs.runtime_seconds, 24 * HOUR).tolist() == submit.tolist()
    early = replace(jobs, submit_seconds=submit - 3e9)
    starts = green_starts(early, flat, jobs.runtime_seconds, 24 * HOUR)
    assert starts.tolist() == early.submit_seconds.tolist()
    wavy = CarbonIntensity(random.uniform(100.0, 300.0, 24))
    day, year = (
        green_starts(jobs, wavy, jobs.runtime_seconds, days * 24 * HOUR) for days in (1, 365)
    )
    assert year.tolist() == day.tolist()


def test_wrong_input():
    """Each is named."""
    with pytest.raises(InputError, match="grams_per_kwh"):
        CarbonIntensity(np.array([-1.0]))
    with pytest.raises(InputError, match="step_seconds"):
        CarbonIntensity(np.array([1.0]), 0.0)
    carbon = CarbonIntensity(np.array([1.0]))
    jobs = one_job(0.0, 1.0)
    with pytest.raises(InputError, match="patience_seconds"):
        green_starts(jobs, carbon, jobs.runtime_seconds, -1.0)
    with pytest.raises(InputError, match="believed_runtimes"):
        green_starts(jobs, carbon, np.ones(2), 1.0)
