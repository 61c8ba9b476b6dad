"""What TetriSched's classes are worth."""

from __future__ import annotations

import pytest

from foresail.model.errors import InputError
from foresail.model.value import DeadlineValue, ValueFunction
from foresail.strl.values import (
    SoonerValue,
    accepted_slo_value,
    best_effort_value,
    unreserved_slo_value,
)


def test_the_three_classes():
    """H12: a thousand and twenty-five units up to the deadline, one that falls from submission."""
    accepted, unreserved = accepted_slo_value(100.0), unreserved_slo_value(100.0)
    assert [accepted.at(100.0), accepted.at(101.0)] == [1000.0, 0.0]
    assert [unreserved.at(100.0), unreserved.at(101.0)] == [25.0, 0.0]
    falling = best_effort_value(7.0, 200.0)
    assert [falling.at(7.0 + late) for late in (0.0, 50.0, 200.0)] == [1.0, 0.75, 0.0]
    assert accepted_slo_value(100.0, unit=2.0).at(0.0) == 2000.0


def test_a_value_falls_in_some_time():
    """No time to fall in is an error."""
    with pytest.raises(InputError, match="decay_seconds"):
        best_effort_value(0.0, 0.0)


def test_sooner_breaks_ties_and_nothing_else():
    """The later of two equal completions is worth a hair less; classes keep their order."""
    sooner = SoonerValue(accepted_slo_value(1e6), now_seconds=0.0, horizon_seconds=96.0)
    assert isinstance(sooner, ValueFunction)
    assert sooner.at(0.0) == sooner.at(-5.0) == 1000.0
    assert 1000.0 > sooner.at(10.0) > sooner.at(20.0) > 999.0
    late = SoonerValue(DeadlineValue(1e12), 0.0, 1.0)
    assert late.at(1e9) == 0.0
