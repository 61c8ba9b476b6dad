"""The admission plan: who gets what he asks for, when, and never more than there is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.model.errors import InputError
from foresail.model.view import Rejection, Reservation
from foresail.schedulers._reserving import CapacityAdmission

CAPACITY = 3


def filled(alignment, *requests):
    """The admission after these requests, and what each of them got."""
    admission = CapacityAdmission(alignment, 1.0)
    got = []
    for number, asked in enumerate(requests):
        found = admission.admit(f"job{number}", *asked, CAPACITY)
        is_promised = isinstance(found, Reservation)
        got.append((found.start_seconds, found.end_seconds) if is_promised else None)
    return admission, got


def most_reserved(promised):
    """The most containers that are promised at any one time."""
    return max(
        (
            sum(
                r.containers
                for r in promised
                if r.start_seconds <= each.start_seconds < r.end_seconds
            )
            for each in promised
        ),
        default=0,
    )


THREE = (((0, 10), 2, 10.0), ((0, 40), 1, 20.0), ((0, 20), 3, 10.0))


def test_latest_and_earliest():
    """H11: right-aligned promises leave room that left-aligned ones have taken."""
    assert filled("latest", *THREE)[1] == [(0, 10), (20, 40), (10, 20)]
    assert filled("earliest", *THREE)[1] == [(0, 10), (0, 20), None]


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (((0, 10), 4, 5.0), "asks for 4 of 3 containers"),
        (((0, 10), 1, 11.0), "10 s is too short for 11 s"),
        (((5, 10), 1, 8.0), "5 s is too short for 8 s"),
        (((50, 10), 1, 8.0), "0 s is too short for 8 s"),
        (((0, 15), 2, 6.0), "at no time are 2 containers free for 6 s"),
    ],
)
def test_rejections_have_reasons(asked, reason):
    """A rejected request leaves what is promised as it was, and says why."""
    admission, _ = filled("latest", ((0, 10), 2, 10.0))
    before = [*admission.promised]
    assert admission.admit("second", *asked, CAPACITY) == Rejection(reason)
    assert admission.promised == before


def test_what_ends_early_is_free_again():
    """A job that ended, or never began, gives back the rest; others keep theirs."""
    never, early, over = (filled("latest", *THREE)[0] for _ in range(3))
    whole = [*over.promised]
    early.release("job1", 25.0)
    assert early.promised[1] == Reservation("job1", 20.0, 25.0, 1)
    never.release("job1", 20.0)
    assert [each.job_id for each in never.promised] == ["job0", "job2"]
    over.release("job0", 50.0)
    assert over.promised == whole
    assert isinstance(early.admit("more", (25, 40), 3, 15.0, CAPACITY), Reservation)


def test_a_job_has_one_reservation():
    """Asking twice is an error."""
    admission, _ = filled("latest", THREE[0])
    with pytest.raises(InputError, match="the job has a reservation"):
        admission.admit("job0", *THREE[1], CAPACITY)


WINDOWS = st.lists(
    st.builds(
        lambda start, room, count, duration: ((start, start + room), count, float(duration)),
        st.integers(0, 12),
        st.integers(1, 12),
        st.integers(1, 4),
        st.integers(1, 6),
    ),
    max_size=8,
)


@given(st.sampled_from(["latest", "earliest"]), WINDOWS)
def test_promises_are_kept_and_rejections_are_right(alignment, windows):
    """Never above capacity, inside the window, as late or early as can be; else none would fit."""
    admission = CapacityAdmission(alignment, 1.0)
    for number, ((begin, finish), containers, seconds) in enumerate(windows):
        lasting, promised = int(seconds), admission.promised
        held = [
            sum(r.containers for r in promised if r.start_seconds <= t < r.end_seconds)
            for t in range(40)
        ]
        fits = [
            start
            for start in range(begin, finish - lasting + 1)
            if max(held[start : start + lasting]) + containers <= CAPACITY
        ]
        answer = admission.admit(f"job{number}", (begin, finish), containers, seconds, CAPACITY)
        assert isinstance(answer, Reservation) == bool(fits)
        if isinstance(answer, Reservation):
            best = fits[-1] if alignment == "latest" else fits[0]
            assert (answer.start_seconds, answer.end_seconds) == (best, best + lasting)
        assert most_reserved(admission.promised) <= CAPACITY


@given(
    st.sampled_from(["latest", "earliest"]),
    st.lists(
        st.tuples(st.floats(0, 50), st.floats(0.1, 50), st.integers(1, 3), st.floats(0.1, 20)),
        max_size=12,
    ),
)
def test_never_above_capacity_at_any_time(alignment, asked):
    """With any times, also those that floating-point sums miss by a hair."""
    admission = CapacityAdmission(alignment, 1.0)
    for number, (start, room, count, duration) in enumerate(asked):
        window = start, start + room
        answer = admission.admit(f"job{number}", window, count, duration, CAPACITY)
        if isinstance(answer, Reservation):
            assert start <= answer.start_seconds
            assert answer.end_seconds <= start + room
    assert most_reserved(admission.promised) <= CAPACITY
