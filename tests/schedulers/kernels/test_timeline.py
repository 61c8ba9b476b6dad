"""The timeline of free cpus, against a dictionary from every second to what is free then."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from compiled import compiled
from foresail.kernels.waiting_jobs import EXPECTED_END, HELD, RELEASE_COLUMNS
from foresail.schedulers.kernels import backfill
from foresail.schedulers.kernels.backfill import PROFILE_COLUMNS, ROOM, TIME

earliest_fit = compiled(backfill.earliest_fit)
occupy = compiled(backfill.occupy)
step_at = compiled(backfill.step_at)
timeline = compiled(backfill.timeline)

HORIZON = 60
MACHINE = 8
NOW = 5


class Calendar:
    """Free cpus at every second from now to the horizon; the last one stands for ever."""

    def __init__(self, free: int, releases: list[tuple[int, int]]) -> None:
        self.free = {
            second: free + sum(width for end, width in releases if end <= second)
            for second in range(NOW, HORIZON + 1)
        }

    def earliest(self, width: int, seconds: int) -> int | None:
        for start in self.free:
            span = range(start, start + seconds)
            if all(self.free[min(second, HORIZON)] >= width for second in span):
                return start
        return None

    def occupy(self, start: int, seconds: int, width: int) -> None:
        for second in range(start, start + seconds):
            if second in self.free:
                self.free[second] -= width


def room_at(steps, count, second):
    """What the step function says of a second."""
    return steps[np.searchsorted(steps[:count, TIME], second, side="right") - 1, ROOM]


def released(pairs):
    """A table of releases: (seconds, cpus)."""
    release = np.zeros((len(pairs), RELEASE_COLUMNS))
    for row, pair in zip(release, pairs, strict=True):
        row[[EXPECTED_END, HELD]] = pair
    return release


@given(
    st.lists(st.tuples(st.integers(NOW + 1, 30), st.integers(1, 3)), max_size=2),
    st.lists(st.tuples(st.integers(1, MACHINE), st.integers(1, 4)), max_size=12),
)
def test_earliest_fits_and_reservations(releases, jobs):
    """Each job in turn is reserved where the calendar has the first room, and both stay equal."""
    releases = sorted(releases)
    free = MACHINE - sum(width for _, width in releases)
    size = 2 * (len(jobs) + 1) + len(releases)
    steps = np.empty((size, PROFILE_COLUMNS))
    count = timeline(float(NOW), float(free), released(releases), len(releases), steps)
    calendar = Calendar(free, releases)
    for width, seconds in jobs:
        expected = calendar.earliest(width, seconds)
        at = earliest_fit(steps, count, 0, float(width), float(seconds))
        if expected is None:
            assert at == count
            continue
        assert steps[at, TIME] == expected
        count = occupy(steps, count, steps[at, TIME], float(seconds), float(width))
        calendar.occupy(expected, seconds, width)
        assert (np.diff(steps[:count, TIME]) > 0).all()
        for second, left in calendar.free.items():
            assert room_at(steps, count, second) == left


@given(st.lists(st.integers(NOW, 20), max_size=8), st.integers(NOW, 20), st.integers(1, 9))
def test_giving_back_undoes_a_reservation(steps, start, seconds):
    """Taking and giving back the same span leaves the function as it was, if with more steps."""
    profiled = np.empty((20, PROFILE_COLUMNS))
    count = timeline(float(NOW), float(MACHINE), released([]), 0, profiled)
    for index, step in enumerate(steps):
        _, count = step_at(profiled, count, float(step))
        count = occupy(profiled, count, float(step), 3.0, float(index % 3))
    before = [room_at(profiled, count, second) for second in range(NOW, 40)]
    count = occupy(profiled, count, float(start), float(seconds), 2.0)
    count = occupy(profiled, count, float(start), float(seconds), -2.0)
    assert [room_at(profiled, count, second) for second in range(NOW, 40)] == before


def test_releases_of_the_same_time_are_one_step():
    """Equal release times make one step with all that is released."""
    steps = np.empty((8, PROFILE_COLUMNS))
    release = released([(7.0, 1.0), (7.0, 2.0), (9.0, 4.0)])
    assert timeline(5.0, 1.0, release, 3, steps) == 3
    assert steps[:3].tolist() == [[5.0, 1.0], [7.0, 4.0], [9.0, 8.0]]
    assert earliest_fit(steps, 3, 0, 9.0, 1.0) == 3
