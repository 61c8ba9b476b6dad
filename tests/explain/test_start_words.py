"""Words for ranges of moments: by the clock, never narrower than they are; and chances."""

from __future__ import annotations

import time

import pytest

from foresail.explain.start_words import chance_by, range_cell, range_words

NOON = time.mktime((2026, 11, 27, 12, 0, 0, 0, 0, -1))
"""A Friday."""


def moments(*after):
    """A range of so many seconds after noon."""
    return {
        key: None if each is None else NOON + each
        for key, each in zip(("p10", "p50", "p90"), after, strict=True)
    }


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (
            (7_800, 10_800, 16_200),
            "between 14:10 and 16:30, most likely about 15:00; 1 in 10 later",
        ),
        ((21_190, 21_195, 21_200), "about 17:53"),
        ((10, 20, 40), "in 10 s to 40 s, most likely about 20 s; 1 in 10 later"),
        ((0, 3, 40), "within 40 s, most likely about 3 s; 1 in 10 later"),
        ((20, 20, 20), "in about 20 s"),
        ((0, 0, 0.5), "now"),
        ((None, None, None), "at no known time"),
        ((7_800, 10_800, None), "not before 14:10, most likely about 15:00; 1 in 10 never"),
        ((30, 600, 7_000), "between now and 14:00, most likely about 12:10; 1 in 10 later"),
        (
            (36_000, 50_400, 57_600),
            "between 22:00 and Sat 04:00, most likely about Sat 02:00; 1 in 10 later",
        ),
        (
            (68_400, 72_000, 79_200),
            "between Sat 07:00 and 10:00, most likely about 08:00; 1 in 10 later",
        ),
        (
            (864_000, 950_400, 1_036_800),
            "between 7 Dec 12:00 and 9 Dec 12:00, most likely about 8 Dec 12:00; 1 in 10 later",
        ),
    ],
)
def test_a_range_is_said_as_people_read_it(after, words):
    assert range_words(moments(*after), NOON) == words


def test_a_range_is_said_outwards():
    """In steps that grow with its width, so that it is never narrower than it is."""
    said = range_words(moments(3_700, 6_000, 9_999), NOON)
    assert said == "between 13:00 and 14:50, most likely about 13:40; 1 in 10 later"


def test_cells_are_short():
    assert range_cell(moments(7_800, 10_800, 16_200), NOON) == "15:00 (14:10 to 16:30)"
    assert range_cell(moments(21_190, 21_195, 21_200), NOON) == "17:53"
    assert range_cell(moments(0, 0, 0), NOON) == "now"
    tomorrow = moments(86_400, 90_000, 100_800)
    assert range_cell(tomorrow, NOON) == "Sat 13:00 (Sat 12:00 to 16:00)"
    narrow = moments(90_000, 90_001, 90_002)
    assert range_cell(narrow, NOON) == "Sat 13:00"
    assert range_words(narrow, NOON) == "about Sat 13:00"


def test_chances_agree_with_the_range():
    known = moments(600, 1_800, 7_200)
    for after, share in ((600, 0.1), (1_800, 0.5), (7_200, 0.9)):
        assert chance_by(known, 0.0, NOON, NOON + after) == pytest.approx(share)
    chances = [chance_by(known, 0.2, NOON, NOON + after) for after in range(-600, 90_000, 600)]
    assert chances == sorted(chances)
    assert (chances[0], max(chances)) == (0.0, 0.8)


def test_chances_of_what_is_certain_or_never():
    certain, never = moments(60, 60, 60), moments(None, None, None)
    assert [chance_by(certain, 0.0, NOON, NOON + after) for after in (59, 60, 61)] == [0, 1, 1]
    assert chance_by(never, 1.0, NOON, NOON + 1e9) == 0.0
    half = moments(60, 600, None)
    assert 0.5 <= chance_by(half, 0.3, NOON, NOON + 1e9) <= 0.7
