"""How durations, numbers and shares are said."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.model.words import (
    count,
    duration,
    exact_duration,
    exact_size,
    folded,
    from_now,
    number,
    parse_duration,
    percent,
    signed,
)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (0.4, "0.4 s"),
        (90, "90 s"),
        (119.6, "2 min"),
        (1500, "25 min"),
        (3599, "1 h"),
        (3600, "1 h"),
        (7800, "2 h 10 min"),
        (36000, "10 h"),
        (172800, "2 d"),
        (273600, "3 d 4 h"),
        (9e6, "104 d"),
        (-840, "−14 min"),
        (math.nan, "–"),
        (None, "–"),
        (math.inf, "∞"),
    ],
)
def test_durations(seconds, said):
    """Durations are said as people say them."""
    assert duration(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-0.0993, "0.1 s ago"),
        (-0.04, "now"),
        (0.0, "now"),
        (0.0993, "in 0.1 s"),
        (9.876, "in 9.9 s"),
        (-7800.0, "2 h 10 min ago"),
        (math.inf, "in ∞"),
    ],
)
def test_moments_are_said_to_tenths_of_a_second(seconds, said):
    """Whoever reads it has needed longer than the rest."""
    assert from_now(seconds) == said


@given(st.floats(0, 1e9))
def test_no_duration_rounds_to_the_next_unit(seconds):
    """Never 60 min, 24 h of a day, or scientific notation."""
    said = duration(seconds)
    assert " 60 min" not in f" {said}"
    assert " 24 h" not in said
    assert "e" not in said.replace("year", "")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "0"),
        (0.0123, "0.0123"),
        (92.5765, "92.6"),
        (9.999, "10"),
        (999.7, "1,000"),
        (28481, "28,481"),
        (-3.25, "−3.25"),
        (math.nan, "–"),
    ],
)
def test_numbers(value, said):
    """Three digits, whole numbers in full."""
    assert number(value) == said


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0, "0 %"),
        (0.714, "71.4 %"),
        (0.0745, "7.4 %"),
        (0.00137, "0.1 %"),
        (0.00004, "0.004 %"),
        (0.99999, "100 %"),
        (1, "100 %"),
        (-0.5, "−50 %"),
        (12.5, "1,250 %"),
        (math.nan, "–"),
    ],
)
def test_shares(share, said):
    """One decimal is enough, and small shares are not said to be none."""
    assert percent(share) == said


def test_counts_and_signs():
    """One job, two jobs; a plus where it matters."""
    assert (count(1, "job"), count(28481, "job")) == ("1 job", "28,481 jobs")
    assert count(2, "policy", "policies") == "2 policies"
    assert (signed("14 min"), signed("−14 min")) == ("+14 min", "−14 min")


@given(st.text("ab,()", max_size=80), st.integers(5, 30))
def test_folding_loses_nothing(text, width):
    """Lines are as wide as allowed, hold all of the text, and are broken after commas."""
    lines = folded(text, width)
    assert "".join(lines) == text
    assert max(map(len, lines)) <= width
    if all(len(piece) < width for piece in text.split(",")):
        assert all(line.endswith(",") for line in lines[:-1])


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (90, "1 min 30 s"),
        (60, "1 min"),
        (0.25, "0.25 s"),
        (7199, "1 h 59 min 59 s"),
        (90061.001, "1 d 1 h 1 min 1.001 s"),
        (0.0, "0 s"),
        (59.9999, "1 min"),
    ],
)
def test_what_was_asked_for_is_repeated_exactly(seconds, said):
    assert exact_duration(seconds) == said


@given(st.integers(1, 10**12))
def test_an_exact_duration_is_read_back(milliseconds):
    assert parse_duration(exact_duration(milliseconds / 1000)) == pytest.approx(
        milliseconds / 1000, abs=1e-3, rel=0
    )


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (1500 * 2**20, "1,500 MiB"),
        (2 * 2**30, "2 GiB"),
        (2**20 + 2**19, "1.5 MiB"),
        (2**20 + 1, "1.00000095367432 MiB"),
    ],
)
def test_sizes_that_were_asked_for_are_exact(size, said):
    assert exact_size(size) == said
