"""What jobs may go unsampled: as they come, they leave room for the others."""

import pytest

from foresail.schedulers.kernels.narrow_jobs import (
    learn_work,
    leaves_room,
    nothing_done,
    width_class,
)


def test_classes_are_half_doublings():
    """2, 3, 4, 6, 8 tasks begin one each."""
    classes = [width_class(float(tasks)) for tasks in (1, 2, 3, 4, 5, 6, 8, 2**30)]
    assert classes == [0, 2, 3, 4, 4, 5, 6, 47]


def test_nothing_is_known_to_leave_room():
    """Before a task has ended, and of jobs narrower than any that has been there."""
    record = nothing_done()
    assert not leaves_room(record, 4.0, 100.0, 1.0)
    learn_work(record, 64.0, 10.0)
    assert not leaves_room(record, 4.0, 100.0, 1.0)


@pytest.mark.parametrize(("spreads", "expected"), [(3.74, True), (3.76, False)])
def test_the_room_by_hand(spreads, expected):
    """A quarter of the work, by jobs of four tasks: of 100 slots they want 25, give or take 10.

    A job of 16 tasks, too, wants all of them at once: 100 slots are full with these.
    """
    record = nothing_done()
    learn_work(record, 16.0, 75.0)
    learn_work(record, 4.0, 15.0)
    learn_work(record, 4.0, 10.0)
    twice = 2.0 * spreads  # 75 slots are left, and 75 / 10 = 2 * 3.75
    assert leaves_room(record, 4.0, 100.0, twice) == expected
    assert leaves_room(record, 5.0, 100.0, twice) == expected
    assert not leaves_room(record, 16.0, 100.0, 0.01)
