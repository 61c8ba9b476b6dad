"""Ranges of starts that were too narrow are widened until they hold, and too wide ones narrowed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.explain.forecast import LEVELS, Range, WaitingForecasts
from foresail.explain.start_calibration import AskedStart, StartCalibration, quantiles


def told(low, median, high, submitted=0.0, earliest=0.0):
    starts = np.array([[low], [median], [high]])
    ends = starts + np.array([[10.0], [20.0], [30.0]])
    columns = np.zeros(1), np.full(1, np.nan), -np.ones(1), *np.array([[submitted], [earliest]])
    return WaitingForecasts({"job": 0}, starts, ends, starts, *columns)


def asked(made, low, median, high, seconds, has_started=True, submitted=None):
    drawn = Range(low, median, high)
    came = made if submitted is None else submitted
    return AskedStart(came, made, drawn, 1, seconds, has_started)


def asked_at(made, wait, waited=0.0):
    """Return a question about a wait told as 600 to 2400 s."""
    return asked(
        made, made + 600.0, made + 1200.0, made + 2400.0, made + wait, submitted=made - waited
    )


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.5])
@pytest.mark.parametrize("seed", range(3))
def test_four_of_five_starts_come_to_be_within(factor, seed):
    """Waits scatter around what is told, by more or less than its range says."""
    random = np.random.default_rng(seed)
    past, within, narrow = [], [], []
    for number in range(900):
        now, middle = 1e9 + 100.0 * number, float(random.uniform(500.0, 5000.0))
        raw = told(now + middle * 0.8, now + middle, now + middle * 1.25, now)
        start = now + middle * math.exp(factor * 0.174 * random.standard_normal())
        if number > 200 and number % 4 == 0:
            found = StartCalibration(past).corrected(now, raw)["job"].start
            within.append(found.low <= start <= found.high)
            narrow.append(raw["job"].start.low <= start <= raw["job"].start.high)
        past.append(AskedStart(now, now, raw["job"].start, 1, start))
    assert np.mean(within) == pytest.approx(0.8, abs=0.05)
    assert factor == 1.0 or abs(np.mean(narrow) - 0.8) > 0.1


def test_none_change_nothing_and_the_first_ones_little():
    raw = told(1010.0, 1020.0, 1030.0)
    assert StartCalibration().corrected(0.0, raw) == raw
    past = [asked(0.0, 1010.0, 1020.0, 1030.0, 90_000.0)]
    found = StartCalibration(past).corrected(0.0, raw)["job"].start
    assert found.low == pytest.approx(raw["job"].start.low, abs=90.0)
    assert found.median == pytest.approx(1020.0, abs=60.0)
    assert found.high > 1030.0


def test_ranges_stay_in_order_and_are_at_most_three_times_as_wide():
    raw = told(600.0, 1200.0, 2400.0)
    for seconds in (0.0, 600.0, 1200.0, 1e6):
        past = [asked(0.0, 600.0, 1200.0, 2400.0, seconds)] * 300
        found = StartCalibration(past).corrected(0.0, raw)["job"]
        assert 0.0 <= found.start.low <= found.start.median <= found.start.high
        assert found.end.low <= found.end.median <= found.end.high
        assert math.log1p(found.start.high / 60) <= math.log1p(2400 / 60) * 8 + 3


def test_long_ranges_reach_for_four_times_the_drawn_wait_at_most():
    """Starts that were later by days make a wide range of hours no longer than that."""
    late = [asked(0.0, 60.0, 600.0, 36_000.0, 3e6) for _ in range(200)]
    low, median, high = StartCalibration(late).corrected(0.0, told(60.0, 600.0, 36_000.0)).starts
    assert 36_000.0 < high[0] <= 4.0 * 36_060.0
    assert low[0] <= median[0] <= high[0]


def test_what_never_starts_stays_so_and_teaches_nothing():
    never = told(math.inf, math.inf, math.inf)
    past = [asked(0.0, 1.0, 2.0, math.inf, 5.0)] * 50
    assert StartCalibration(past).corrected(0.0, told(1.0, 2.0, 3.0)) == told(1.0, 2.0, 3.0)
    past += [asked(0.0, 1.0, 2.0, 3.0, 5.0)] * 50
    found = StartCalibration(past).corrected(0.0, never)
    assert found == never


def test_long_waits_teach_little_about_short_ones():
    """Those of hours began late; those of a minute as they should."""
    past = []
    for number in range(100):
        past.append(asked(0.0, 30.0, 60.0, 120.0, 30.0 + number))
        past.append(asked(0.0, 9e4, 1e5, 1.1e5, 1.2e5 + 1e3 * number))
    calibration = StartCalibration(past)
    short, long = told(30.0, 60.0, 120.0), told(9e4, 1e5, 1.1e5)
    assert calibration.corrected(0.0, short)["job"].start.high < 180.0
    assert calibration.corrected(0.0, long)["job"].start.high > 1.6e5


def test_later_questions_count_more_than_earlier_ones():
    raw = told(600.0, 1200.0, 2400.0)
    late = [asked_at(1e4 * number, 5000.0) for number in range(200)]
    fine = [asked_at(1e4 * number, 1200.0) for number in range(200)]
    after = StartCalibration(late + fine).corrected(0.0, raw)["job"].start
    before = StartCalibration(fine + late).corrected(0.0, raw)["job"].start
    assert after.median < 1300.0 < 4000.0 < before.median


def test_jobs_that_wait_through_the_same_stretch_count_less_than_others_do():
    """Late starts move ranges the further, the less they are those of one busy time."""
    raw = told(600.0, 1200.0, 2400.0)
    fine = [asked_at(1e4 * number, 1200.0) for number in range(20)]
    together = [asked_at(1e6, 5000.0)] * 60
    apart = [asked_at(1e6 + 1e4 * number, 5000.0) for number in range(60)]
    one = StartCalibration(fine + together).corrected(0.0, raw)["job"].start
    many = StartCalibration(fine + apart).corrected(0.0, raw)["job"].start
    assert one.median < 2000.0 < 3500.0 < many.median


def test_the_median_moves_half_as_far_at_half_of_the_wait():
    submitted = [asked_at(1e4 * number, 2400.0) for number in range(200)]
    half = [asked_at(1e4 * number, 2400.0, waited=1200.0) for number in range(200)]
    moved = StartCalibration(submitted).corrected(0.0, told(600.0, 1200.0, 2400.0))
    kept = StartCalibration(half).corrected(0.0, told(600.0, 1200.0, 2400.0, -1200.0))
    assert moved["job"].start.median == pytest.approx(2400.0, rel=0.05)
    assert 1500.0 < kept["job"].start.median < 1900.0


def test_jobs_that_still_wait_make_ranges_later():
    """Half of those that were asked about have begun; the others wait beyond their ranges."""
    raw = told(600.0, 1200.0, 2400.0)
    begun = [asked(0.0, 600.0, 1200.0, 2400.0, 1200.0)] * 40
    waiting = [asked(0.0, 600.0, 1200.0, 2400.0, 5000.0, has_started=False)] * 40
    both = [each for pair in zip(begun, waiting, strict=True) for each in pair]
    assert StartCalibration(both).corrected(0.0, raw)["job"].start.high > (
        StartCalibration(begun).corrected(0.0, raw)["job"].start.high + 1000.0
    )


@given(
    st.lists(
        st.tuples(st.floats(-3.0, 3.0), st.floats(0.01, 1.0), st.booleans()),
        min_size=1,
        max_size=12,
    )
)
def test_quantiles_are_those_of_kaplan_and_meier(rows):
    """The share that is left falls at each value that is seen by its weight of those at risk."""
    rows = sorted([*rows, (3.5, 1.0, True)], key=lambda row: (row[0], not row[2]))
    expected = []
    for level in LEVELS:
        left = 1.0
        for number, (value, weight, is_seen) in enumerate(rows):
            if is_seen:
                left *= 1.0 - weight / sum(row[1] for row in rows[number:])
            if 1.0 - left >= level - 1e-9:
                expected.append(value)
                break
    values, weights, seen = map(np.array, zip(*rows, strict=True))
    assert quantiles(values, weights[None, :], seen)[0].tolist() == expected


def test_who_has_just_come_is_corrected_by_those_who_had_just_come():
    """Starts of jobs that had come just then were late, those of jobs half way were not."""
    late = [asked(0.0, 600.0, 1200.0, 2400.0, 4000.0)] * 100
    fine = [asked(0.0, 600.0, 1200.0, 2400.0, 1200.0, submitted=-1200.0)] * 100
    calibration = StartCalibration([each for both in zip(late, fine, strict=True) for each in both])
    come = calibration.corrected(0.0, told(600.0, 1200.0, 2400.0))["job"].start
    half = calibration.corrected(0.0, told(600.0, 1200.0, 2400.0, -1200.0))["job"].start
    assert come.median == pytest.approx(4000.0, rel=0.05)
    assert half.median == pytest.approx(1200.0, rel=0.05)


def test_no_correction_is_earlier_than_what_is_known_for_certain():
    """A start that can be from its begin on is as uncertain as the wait from then on."""
    past = [asked_at(5000.0 * number, 300.0) for number in range(200)]
    raw = told(7200.0, 7200.0, 7260.0, earliest=7200.0)
    start = StartCalibration(past).corrected(3600.0, raw)["job"].start
    assert 7200.0 <= start.low <= start.median <= start.high < 7320.0
