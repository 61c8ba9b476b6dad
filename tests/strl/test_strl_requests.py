"""From jobs to expressions: the canonical shapes, and what is left out of them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.model.errors import InputError
from foresail.model.value import DeadlineValue, DecayingValue
from foresail.strl.requests import (
    Gang,
    StartWindow,
    at_most_per_domain,
    either,
    elastic,
    spread,
    unconstrained,
    within,
)
from foresail.strl.tree import leaves
from preferring import preferring
from printed import format_expression
from slow_evaluation import evaluate

ALL = frozenset({"M1", "M2", "M3", "M4"})
GPU = frozenset({"M1", "M2"})
RACKS = (GPU, ALL - GPU)
SETS = {"all": ALL, "gpu": GPU, "rack2": ALL - GPU}
NOW = StartWindow(0.0, 0.0, 1.0)
TEN = DecayingValue(0.0, 10.0, 10.0)


def text(expression):
    """The expression's text on one line."""
    words = " ".join(format_expression(expression, SETS).split())
    return words.replace("( ", "(").replace(" )", ")")


class Falls:
    """A user's own value function, worth what the test says."""

    def __init__(self, value):
        self.value = value

    def at(self, completion_seconds):
        """The same at all times, unless it is a function."""
        return self.value(completion_seconds) if callable(self.value) else self.value


@pytest.mark.parametrize(
    ("window", "duration", "starts"),
    [
        (StartWindow(0, 40, 10, latest_end_seconds=30), 20, (0, 10)),
        (StartWindow(0, 40, 10, latest_end_seconds=15), 20, ()),
        (StartWindow(0, 0, 10), 20, (0,)),
        (StartWindow(4, 10, 4), 1, (4, 8, 12)),
        (StartWindow(4, 10, 4, earliest_start_seconds=5), 1, (8, 12)),
        (StartWindow(4, 10, 4, earliest_start_seconds=13), 1, ()),
        (StartWindow(4, 10, 4, latest_end_seconds=3), 1, ()),
        (StartWindow(0, 10, 4, earliest_start_seconds=1, latest_end_seconds=3.5), 1, ()),
        (StartWindow(0.1, 0.2, 0.1, latest_end_seconds=0.3), 0.1, (0.1, 0.2)),
    ],
)
def test_starts_of_a_window(window, duration, starts):
    """One a slot, from now, within the plan, the reservation and the deadline (H14)."""
    assert window.starts(duration) == pytest.approx(starts)


@given(
    st.floats(0, 1e6), st.floats(0, 200), st.floats(0.1, 20), st.floats(0.1, 50), st.floats(0, 300)
)
def test_starts_are_what_the_window_allows(now, ahead, slot, duration, deadline):
    """All and only the grid's starts from which a run ends in time (to rounding)."""
    found = StartWindow(now, ahead, slot, now + 3.0, now + deadline).starts(duration)
    hair = 1e-6 * slot + 1e-9 * now
    for start in found:
        assert now + 3.0 - hair <= start <= now + ahead + hair
        assert start + duration <= now + deadline + hair
    steps = range(int(ahead / slot) + 1)
    sure = [
        n
        for n in steps
        if n * slot >= 3.0 + hair and n * slot + duration <= deadline - hair and n * slot <= ahead
    ]
    assert len(sure) <= len(found) <= len(sure) + 2


def test_unconstrained():
    """One nCk of all nodes for each start; the only start stands alone."""
    gang = Gang(2, 3.0, TEN, StartWindow(0, 2, 1))
    assert text(unconstrained(gang, ALL)) == (
        "max(nCk(all, 2, 0, 3, 7), nCk(all, 2, 1, 3, 6), nCk(all, 2, 2, 3, 5))"
    )
    assert text(unconstrained(Gang(4, 3.0, TEN, NOW), ALL)) == "nCk(all, 4, 0, 3, 7)"


def test_gpu_and_rack_local():
    """Fast on one preferred set, slower anywhere; H2 and the MPI job."""
    gang = Gang(2, 2.0, TEN, StartWindow(0, 1, 1))
    assert text(preferring(gang, [GPU], ALL, 1.5)) == (
        "max(max(nCk(all, 2, 0, 3, 7), nCk(all, 2, 1, 3, 6)), "
        "max(nCk(gpu, 2, 0, 2, 8), nCk(gpu, 2, 1, 2, 7)))"
    )
    assert text(preferring(Gang(2, 2.0, TEN, NOW), RACKS, ALL, 1.5)) == (
        "max(nCk(all, 2, 0, 3, 7), max(nCk(gpu, 2, 0, 2, 8), nCk(rack2, 2, 0, 2, 8)))"
    )
    assert text(preferring(Gang(3, 2.0, TEN, NOW), RACKS, ALL, 1.5)) == "nCk(all, 3, 0, 3, 7)"
    assert text(within(Gang(2, 2.0, TEN, NOW), RACKS[:1])) == "nCk(gpu, 2, 0, 2, 8)"


def test_availability():
    """One node of every rack (H4); the number of racks is the number of tasks."""
    gang = Gang(2, 3.0, Falls(1.0), NOW)
    assert text(spread(gang, RACKS)) == "min(nCk(gpu, 1, 0, 3, 1), nCk(rack2, 1, 0, 3, 1))"
    assert text(spread(Gang(1, 3.0, Falls(1.0), NOW), (GPU,))) == "nCk(gpu, 1, 0, 3, 1)"
    with pytest.raises(InputError, match=r"not one task for every domain.*found 3"):
        spread(Gang(3, 3.0, TEN, NOW), RACKS)


def test_at_most_some_in_a_domain():
    """A barrier counts nodes, scale makes the count the job's value; small domains give less."""
    gang = Gang(3, 3.0, Falls(6.0), NOW)
    small = frozenset({"x"})
    expression = at_most_per_domain(gang, (GPU, small), 2)
    assert text(expression) == (
        "scale(barrier(sum(LnCk(gpu, 2, 0, 3, 2), LnCk({x}, 1, 0, 3, 1)), 3), 2)"
    )
    assert evaluate(expression, {0: GPU, 1: small}).value == 6.0
    assert evaluate(expression, {0: GPU}).value == 0.0
    assert at_most_per_domain(gang, (GPU, small), 1) is None
    assert at_most_per_domain(gang, (), 1) is None
    with pytest.raises(InputError, match="no room"):
        at_most_per_domain(gang, (GPU,), 0)


def test_elastic():
    """Any number of nodes up to the tasks, worth their share (H7)."""
    expression = elastic(Gang(4, 2.0, Falls(8.0), NOW), ALL)
    assert text(expression) == "LnCk(all, 4, 0, 2, 8)"
    assert evaluate(expression, {0: ALL - {"M1"}}).value == 6.0
    assert elastic(Gang(4, 2.0, TEN, NOW), frozenset()) is None


def test_options_that_are_worth_nothing_are_left_out():
    """A job past its deadline has no options; a late branch loses only its late starts (8.3)."""
    gang = Gang(2, 2.0, DeadlineValue(3.0, 5.0), StartWindow(0, 9, 1))
    assert text(preferring(gang, [GPU], ALL, 1.5)) == (
        "max(nCk(all, 2, 0, 3, 5), max(nCk(gpu, 2, 0, 2, 5), nCk(gpu, 2, 1, 2, 5)))"
    )
    late = Gang(2, 2.0, DeadlineValue(1.0), StartWindow(0, 9, 1))
    assert preferring(late, [GPU], ALL, 1.5) is None
    assert unconstrained(Gang(5, 1.0, TEN, NOW), ALL) is None
    assert either((None, None)) is None


def test_a_deadline_missed_by_rounding_is_met():
    """A start and a length whose sum is a hair beyond the window's end count as in time."""
    window = StartWindow(0.1, 0.0, 1.0, latest_end_seconds=0.3)
    assert 0.1 + 0.2 > 0.3
    expression = unconstrained(Gang(1, 0.2, DeadlineValue(0.3), window), GPU)
    assert [leaf.start_seconds for leaf in leaves(expression)] == [0.1]


def test_any_value_function_will_do():
    """Values need not fall with time."""
    rises = Falls(lambda completion: completion)
    expression = unconstrained(Gang(1, 1.0, rises, StartWindow(0, 2, 1)), GPU)
    assert [leaf.value for leaf in leaves(expression)] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_values_that_cannot_be_are_refused(value):
    """A value function that is negative, infinite or not a number is the user's error."""
    with pytest.raises(InputError, match=r"the value of completing at 3 s.*not negative"):
        unconstrained(Gang(1, 3.0, Falls(value), NOW), GPU)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Gang(0, 1.0, TEN, NOW), "tasks"),
        (lambda: Gang(1, 0.0, TEN, NOW), "duration_seconds"),
        (lambda: Gang(1, math.nan, TEN, NOW), "duration_seconds"),
        (lambda: StartWindow(math.nan, 0.0, 1.0), "now_seconds"),
        (lambda: StartWindow(0.0, -1.0, 1.0), "plan_ahead_seconds"),
        (lambda: StartWindow(0.0, 1.0, 0.0), "slot_seconds"),
    ],
    ids=["tasks", "duration", "duration-nan", "now", "plan-ahead", "slot"],
)
def test_impossible_jobs_and_windows_are_refused(make, field):
    """No tasks, no time, no slots."""
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.field == field
