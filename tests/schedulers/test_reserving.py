"""The admission plan: who gets what he asks for, when, and never more than there is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.model.errors import InputError
from foresail.model.view import Rejection, Reservation
from foresail.schedulers._reserving import AdmissionPlan, ReservationRequest


def filled(alignment, *windows, capacity=3):
    """The plan after these requests, and what each of them got."""
    plan, got = AdmissionPlan(capacity, alignment), []
    for number, each in enumerate(windows):
        plan, found = plan.admit(f"job{number}", each, 0.0)
        is_promised = isinstance(found, Reservation)
        got.append((found.start_seconds, found.end_seconds) if is_promised else None)
    return plan, got


def most_reserved(plan):
    """The most containers that are promised at any one time."""
    return max(
        (
            sum(
                r.containers
                for r in plan.reservations
                if r.start_seconds <= each.start_seconds < r.end_seconds
            )
            for each in plan.reservations
        ),
        default=0,
    )


THREE = (
    ReservationRequest(0, 10, 2, 10.0),
    ReservationRequest(0, 40, 1, 20.0),
    ReservationRequest(0, 20, 3, 10.0),
)


def test_latest_and_earliest():
    """H11: right-aligned promises leave room that left-aligned ones have taken."""
    assert filled("latest", *THREE)[1] == [(0, 10), (20, 40), (10, 20)]
    assert filled("earliest", *THREE)[1] == [(0, 10), (0, 20), None]


@pytest.mark.parametrize(
    ("asked", "now", "reason"),
    [
        (ReservationRequest(0, 10, 4, 5.0), 0.0, "asks for 4 of 3 containers"),
        (ReservationRequest(0, 10, 1, 11.0), 0.0, "10 s is too short for 11 s"),
        (ReservationRequest(0, 10, 1, 8.0), 5.0, "5 s is too short for 8 s"),
        (ReservationRequest(0, 10, 1, 8.0), 50.0, "0 s is too short for 8 s"),
        (ReservationRequest(0, 15, 2, 6.0), 0.0, "at no time are 2 containers free for 6 s"),
    ],
)
def test_rejections_have_reasons(asked, now, reason):
    """A rejected request leaves the plan as it was, and says why."""
    plan, _ = AdmissionPlan(3).admit("first", ReservationRequest(0, 10, 2, 10.0), 0.0)
    assert plan.admit("second", asked, now) == (plan, Rejection(reason))


def test_nothing_is_promised_in_the_past():
    """A window that has begun counts from now."""
    plan = AdmissionPlan(3, "earliest")
    _, answer = plan.admit("late", ReservationRequest(0, 20, 1, 5.0), 12.5)
    assert answer == Reservation("late", 12.5, 17.5, 1)


def test_what_ends_early_is_free_again():
    """A job that ended, or never began, gives back the rest; others keep theirs."""
    plan, _ = filled("latest", *THREE)
    early = plan.released("job1", 25.0)
    assert early.reservations[1] == Reservation("job1", 20.0, 25.0, 1)
    assert [each.job_id for each in plan.released("job1", 20.0).reservations] == ["job0", "job2"]
    assert plan.released("job0", 50.0) == plan
    _, answer = early.admit("more", ReservationRequest(25, 40, 3, 15.0), 25.0)
    assert isinstance(answer, Reservation)
    assert [each.job_id for each in plan.without_past(10.0).reservations] == ["job1", "job2"]


def test_a_job_has_one_reservation():
    """Asking twice is an error."""
    plan, _ = filled("latest", THREE[0])
    with pytest.raises(InputError, match="the job has a reservation"):
        plan.admit("job0", THREE[1], 0.0)


WINDOWS = st.lists(
    st.builds(
        lambda start, room, count, duration: ReservationRequest(
            start, start + room, count, float(duration)
        ),
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
    plan = AdmissionPlan(3, alignment)
    for number, asked in enumerate(windows):
        lasting = int(asked.duration_seconds)
        held = [
            sum(r.containers for r in plan.reservations if r.start_seconds <= t < r.end_seconds)
            for t in range(40)
        ]
        fits = [
            start
            for start in range(int(asked.start_seconds), int(asked.finish_seconds) - lasting + 1)
            if max(held[start : start + lasting]) + asked.containers <= 3
        ]
        plan, answer = plan.admit(f"job{number}", asked, 0.0)
        assert isinstance(answer, Reservation) == bool(fits)
        if isinstance(answer, Reservation):
            best = fits[-1] if alignment == "latest" else fits[0]
            assert (answer.start_seconds, answer.end_seconds) == (best, best + lasting)
        assert most_reserved(plan) <= 3


@given(
    st.sampled_from(["latest", "earliest"]),
    st.lists(
        st.tuples(st.floats(0, 50), st.floats(0.1, 50), st.integers(1, 3), st.floats(0.1, 20)),
        max_size=12,
    ),
)
def test_never_above_capacity_at_any_time(alignment, asked):
    """With any times, also those that floating-point sums miss by a hair."""
    plan = AdmissionPlan(3, alignment)
    for number, (start, room, count, duration) in enumerate(asked):
        request = ReservationRequest(start, start + room, count, duration)
        plan, answer = plan.admit(f"job{number}", request, 0.0)
        if isinstance(answer, Reservation):
            assert start <= answer.start_seconds
            assert answer.end_seconds <= start + room
    assert most_reserved(plan) <= 3
