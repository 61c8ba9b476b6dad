"""What beliefs turned out to be worth: nothing until they have proved it."""

import math

import numpy as np
import pytest

from foresail.schedulers.kernels import pilots as proved

SURE, UNSURE = 0.01**2, 0.7**2


def test_what_has_not_proved_itself_counts_for_nothing():
    """However sure it says it is."""
    record = proved.nothing_proved()
    assert math.isinf(proved.proved_variance(record, 0.0))


def test_the_spread_is_that_of_errors_not_the_one_claimed():
    """Many beliefs that claimed certainty were off by a factor e: their variance is about 1."""
    record = proved.nothing_proved()
    for number in range(500):
        proved.learn_error(record, SURE, 1.0 if number % 2 else -1.0)
    assert proved.proved_variance(record, SURE) == pytest.approx(1.01)
    assert proved.proved_variance(record, SURE / 4.0) == proved.proved_variance(record, SURE)
    assert math.isinf(proved.proved_variance(record, UNSURE))


@pytest.mark.parametrize(
    ("spread", "expected"),
    [(0.0, 0), (0.05, 0), (0.06, 1), (0.5, 2), (0.9, 3), (7.0, 4), (np.nan, 5)],
)
def test_classes(spread, expected):
    """By the standard deviation that is claimed; what claims none is by itself."""
    assert proved.spread_class(spread * spread) == expected
    assert proved.CLASSES == 6
