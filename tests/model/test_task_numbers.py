"""Sets of task numbers: against Python's own, and how few ranges they need."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.model.view import TaskNumbers


def is_in_form(numbers):
    """Ascending ranges, none empty and none touching the next."""
    stops = [each.stop for each in numbers.ranges]
    starts = [each.start for each in numbers.ranges]
    return all(numbers.ranges) and all(
        stop < start for stop, start in zip(stops, starts[1:], strict=False)
    )


@given(count=st.integers(0, 12), steps=st.lists(st.integers(-2, 13), max_size=40))
def test_they_are_as_a_set_is(count, steps):
    """Whatever is taken out and put back, in any order."""
    numbers, expected = TaskNumbers.below(count), set(range(count))
    for task in steps:
        if task in expected:
            numbers, expected = numbers.without([task]), expected - {task}
        else:
            with pytest.raises(KeyError):
                numbers.without([task])
            numbers, expected = numbers.including([task]), expected | {task}
        assert list(numbers) == sorted(expected)
        assert len(numbers) == len(expected)
        assert bool(numbers) is bool(expected)
        assert all((each in numbers) is (each in expected) for each in range(-3, 15))
        assert is_in_form(numbers)


def test_the_first_of_many_cost_one_range():
    """Ten thousand tasks that start in order never have a gap between them."""
    numbers = TaskNumbers.below(10_000)
    for task in range(9_990):
        numbers = numbers.without([task])
        assert len(numbers.ranges) == 1
    assert numbers.first(3) == (9_990, 9_991, 9_992)
    assert numbers.including([9_989]).ranges == (range(9_989, 10_000),)


def test_several_at_once_are_as_one_after_the_other():
    """A value is left as it was."""
    numbers = TaskNumbers.below(5)
    assert list(numbers.without((0, 3))) == [1, 2, 4]
    assert list(numbers.without((0, 3)).including((3, 0))) == list(numbers)
    assert list(numbers) == [0, 1, 2, 3, 4]
