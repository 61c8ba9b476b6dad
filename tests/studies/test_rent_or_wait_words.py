"""Words for the parts of the advice on owning machines."""

import math
from datetime import date

import pytest

from foresail.cloud.waiting.jobs import FixedMachines
from foresail.model.words import percent
from foresail_studies.renting.owning import BestFor, FrontierPoint
from foresail_studies.renting.rent_or_wait_page import (
    Circumstances,
    between,
    block_name,
    limits,
    money,
    named,
    value_range,
)

ASKED = Circumstances(
    "a log", "m", FixedMachines(1, 8), "USD", "prices", date(2026, 1, 1), "all is known"
)


def point(waiting=None, short=None):
    return FrontierPoint("compound", 1, waiting, short, 1.0, 1.0, 60.0, 1.0, 0.0, 0.0, 0.5)


@pytest.mark.parametrize(
    ("waiting", "short", "words"),
    [
        (None, None, ""),
        (14_400.0, None, ", limit 4 h"),
        (None, 180.0, ", short is below 3 min"),
        (14_400.0, 180.0, ", limit 4 h, short is below 3 min"),
    ],
)
def test_thresholds(waiting, short, words):
    """Each after a comma, where the policy has them."""
    assert limits(point(waiting, short)) == words
    assert named(point(waiting, short)) == f"compound{words}"


@pytest.mark.parametrize(
    ("least", "most", "words"),
    [(0.0, 0.5, "up to 0.5 USD"), (0.5, 2.0, "0.5 to 2 USD"), (2.0, math.inf, "2 USD or more")],
)
def test_values_for_which_a_point_is_best(least, most, words):
    """From nothing, between two, or without end."""
    assert value_range(BestFor(point(), least, most), "USD") == words


def test_amounts_and_intervals():
    """Large amounts are whole; ends of an interval are said alike."""
    assert [money(each, ASKED) for each in (0.1234, 999.6, 1234.4)] == [
        "0.123 USD",
        "1,000 USD",
        "1,234 USD",
    ]
    assert between(percent, (0.1, 0.2)) == "10 % to 20 %"
    assert [block_name(days * 86_400.0) for days in (1.0, 7.0)] == ["day", "week"]
