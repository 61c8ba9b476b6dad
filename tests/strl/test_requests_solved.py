"""The spec's golden tests from the job's side: shapes that the generator makes, solved."""

from __future__ import annotations

import pytest

from foresail.model.job import DecayingValue
from foresail.strl.expression import Sum, Supply, leaves
from foresail.strl.solving import solve
from slow_evaluation import conflicts, evaluate
from strl_shapes import Gang, StartWindow, preferring, spread

RACK1, RACK2 = frozenset({"M1", "M2"}), frozenset({"M3", "M4"})
ALL = RACK1 | RACK2
TEN = DecayingValue(0.0, 10.0, 10.0)


def gang(duration, last_start, **limits):
    return Gang(2, duration, TEN, StartWindow(0.0, last_start, 1.0, **limits))


@pytest.mark.parametrize(("last_start", "value"), [(0, 16), (1, 16), (2, 21), (3, 21)])
def test_three_jobs_of_figure_1(last_start, value):
    """H5: availability, MPI and GPU job; planning two slots ahead is what serves all three."""
    expression = Sum(
        (
            spread(gang(3.0, last_start), (RACK1, RACK2)),
            preferring(gang(2.0, last_start), (RACK1, RACK2), ALL, 1.5),
            preferring(gang(2.0, last_start), (RACK1,), ALL, 1.5),
        )
    )
    found = solve(expression, Supply(ALL), 1.0)
    assert found.value == pytest.approx(value)
    assert evaluate(expression, found.allocation).value == pytest.approx(value)
    assert conflicts(expression, found.allocation) == ()


@pytest.mark.parametrize(
    ("slowdown", "last_start", "value", "start"), [(1.5, 9, 7, 0), (2.5, 9, 6, 2), (2.5, 0, 5, 0)]
)
def test_wait_or_fall_back(slowdown, last_start, value, start):
    """H6: with the gpus busy, a little slower runs anywhere now, much slower waits if it can."""
    busy = dict.fromkeys(RACK1, 2.0)
    expression = preferring(gang(2.0, last_start, latest_end_seconds=9.0), (RACK1,), ALL, slowdown)
    found = solve(expression, Supply(ALL, busy), 1.0)
    assert found.value == pytest.approx(value)
    asked = leaves(expression)
    assert {asked[number].start_seconds for number in found.allocation} == {start}
