"""Ranges of starts that were too narrow are widened until they hold, and too wide ones narrowed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from foresail.explain.forecast import WaitingForecasts
from foresail.explain.start_calibration import StartCalibration


def told(low, median, high):
    starts = np.array([[low], [median], [high]])
    ends = starts + np.array([[10.0], [20.0], [30.0]])
    return WaitingForecasts({"job": 0}, starts, ends, np.zeros(1), np.full(1, np.nan))


@pytest.mark.parametrize("factor", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_four_of_five_starts_come_to_be_within(factor, seed):
    """Waits scatter around what is told, by more or less than its range says."""
    random = np.random.default_rng(seed)
    calibration, within, narrow = StartCalibration(), [], []
    for number in range(1500):
        now, middle = 1e9 + 100.0 * number, float(random.uniform(500.0, 5000.0))
        raw = told(now + middle * 0.8, now + middle, now + middle * 1.25)
        start = now + middle * math.exp(factor * 0.2 * random.standard_normal())
        found = calibration.corrected(now, raw)["job"].start
        if number > 200:
            within.append(found.low <= start <= found.high)
            narrow.append(raw["job"].start.low <= start <= raw["job"].start.high)
        calibration.observe(now, raw["job"].start, start)
    assert np.mean(within) == pytest.approx(0.8, abs=0.05)
    assert factor == 1.0 or abs(np.mean(narrow) - 0.8) > 0.1


def test_few_starts_teach_nothing_and_ranges_stay_in_order():
    calibration = StartCalibration()
    raw = told(10.0, 20.0, 30.0)
    for number in range(29):
        calibration.observe(0.0, raw["job"].start, 1000.0 + number)
    assert calibration.corrected(0.0, raw) == raw
    calibration.observe(0.0, raw["job"].start, 5.0)
    found = calibration.corrected(0.0, raw)["job"]
    assert 0.0 <= found.start.low <= found.start.median <= found.start.high
    assert found.start.high > 900.0
    assert found.end.low <= found.end.median <= found.end.high
    assert found.end.high > 900.0


def test_what_never_starts_stays_so_and_teaches_nothing():
    calibration = StartCalibration()
    never = told(math.inf, math.inf, math.inf)
    for _ in range(50):
        calibration.observe(0.0, never["job"].start, 5.0)
    assert calibration.corrected(0.0, never) == never


def test_only_the_latest_are_remembered():
    calibration = StartCalibration()
    raw = told(10.0, 20.0, 30.0)
    for start in [1e6] * 500 + [20.0] * 500:
        calibration.observe(0.0, raw["job"].start, start)
    assert calibration.corrected(0.0, raw)["job"].start.high < 40.0
