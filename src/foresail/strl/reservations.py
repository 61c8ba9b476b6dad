"""Rayon's admission of reservations: a plan of what is promised, never more than there is.

Source: spec tetrisched section 3.2 and T-3 (the paper only cites it).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from foresail.model import words
from foresail.model.errors import InputError
from foresail.model.reservation import Reservation

_ROUNDING = 1e-9


class Alignment(Enum):
    """Which of several possible starts a reservation gets."""

    LATEST = "latest"
    EARLIEST = "earliest"


@dataclass(frozen=True, slots=True)
class ReservationRequest:
    """Containers for a time, which lies between two times: a gang in Rayon's reservation language.

    Source: TetriSched (EuroSys 2016), section 4.4; spec tetrisched sections 3.1 and 5.
    """

    start_seconds: float
    finish_seconds: float
    """The window of time."""
    containers: int
    """How many at once, at least 1."""
    duration_seconds: float
    """For how long, above 0: the runtime on the nodes where the job is slow."""

    def __post_init__(self) -> None:
        start, finish = self.start_seconds, self.finish_seconds
        for field, holds, expected in (
            ("start_seconds", math.isfinite(start), "a time"),
            ("finish_seconds", start < finish < math.inf, f"later than the start, {start:g}"),
            ("containers", self.containers >= 1, "at least 1"),
            ("duration_seconds", 0.0 < self.duration_seconds < math.inf, "above 0"),
        ):
            if not holds:
                value = getattr(self, field)
                raise InputError("not a reservation", field=field, value=value, expected=expected)


@dataclass(frozen=True, slots=True)
class Admission:
    """The answer to a request for a reservation: what is promised, and why in words for a person.

    A rejected request has no reservation, and the plan is as it was.
    """

    plan: AdmissionPlan
    reservation: Reservation | None
    reason: str

    @property
    def accepted(self) -> bool:
        """Whether anything is promised."""
        return self.reservation is not None


@dataclass(frozen=True, slots=True)
class AdmissionPlan:
    """What is promised over time; every change makes a new plan."""

    capacity: int
    """Containers there are, at least 1."""
    alignment: Alignment = Alignment.LATEST
    """Which start a reservation gets; the latest leaves the room near now free."""
    reservations: tuple[Reservation, ...] = ()
    """What is promised, in order of acceptance."""

    def __post_init__(self) -> None:
        if self.capacity < 1:
            problem = "nothing to reserve"
            raise InputError(problem, field="capacity", value=self.capacity, expected="at least 1")

    def admit(self, job_id: str, asked: ReservationRequest, now_seconds: float) -> Admission:
        """Promise what a job asks for, if that is possible without taking from any other.

        Nothing is promised before ``now_seconds``. All containers are held together.

        Raises
        ------
        InputError
            If the job already has a reservation.
        """
        if any(each.job_id == job_id for each in self.reservations):
            raise InputError("the job has a reservation", field="job_id", value=job_id)
        begin, lasting = max(asked.start_seconds, now_seconds), asked.duration_seconds
        room = asked.finish_seconds - begin
        if asked.containers > self.capacity:
            there_are = words.count(self.capacity, "container")
            return Admission(self, None, f"asks for {asked.containers:,} of {there_are}")
        if room < lasting * (1.0 - _ROUNDING):
            ran = words.duration(lasting)
            return Admission(self, None, f"{words.duration(max(room, 0.0))} is too short for {ran}")
        find = self._latest if self.alignment is Alignment.LATEST else self._earliest
        span = find(begin, asked.finish_seconds, lasting, asked.containers)
        if span is None:
            wanted = words.count(asked.containers, "container")
            reason = f"at no time are {wanted} free for {words.duration(lasting)}"
            return Admission(self, None, reason)
        reservation = Reservation(job_id, *span, asked.containers)
        plan = replace(self, reservations=(*self.reservations, reservation))
        waits = words.duration(reservation.start_seconds - now_seconds)
        return Admission(plan, reservation, f"reserved from {waits} after now")

    def released(self, job_id: str, now_seconds: float) -> AdmissionPlan:
        """The plan after a job ended: what it has no more use for is free again."""
        kept = (
            replace(each, end_seconds=min(each.end_seconds, now_seconds))
            if each.job_id == job_id
            else each
            for each in self.reservations
        )
        return replace(self, reservations=tuple(e for e in kept if e.start_seconds < e.end_seconds))

    def without_past(self, now_seconds: float) -> AdmissionPlan:
        """The plan without reservations that have ended."""
        kept = tuple(each for each in self.reservations if each.end_seconds > now_seconds)
        return replace(self, reservations=kept)

    def _latest(
        self, begin: float, finish: float, lasting: float, count: int
    ) -> tuple[float, float] | None:
        """The latest span between two times in which so many containers are free."""
        end = finish
        for busy_from, busy_until in reversed(list(self._too_full_for(count))):
            if busy_from < end and busy_until > end - lasting:
                end = busy_from
        start = end - lasting
        return (max(start, begin), end) if start >= begin - _ROUNDING * lasting else None

    def _earliest(
        self, begin: float, finish: float, lasting: float, count: int
    ) -> tuple[float, float] | None:
        """The earliest span between two times in which so many containers are free."""
        start = begin
        for busy_from, busy_until in self._too_full_for(count):
            if busy_from < start + lasting and busy_until > start:
                start = busy_until
        end = start + lasting
        return (start, min(end, finish)) if end <= finish + _ROUNDING * lasting else None

    def _too_full_for(self, count: int) -> Iterator[tuple[float, float]]:
        """Spans, in order, in which fewer than ``count`` containers are free."""
        changes = sorted(
            change
            for each in self.reservations
            for change in (
                (each.start_seconds, each.containers),
                (each.end_seconds, -each.containers),
            )
        )
        reserved, full_since = 0, None
        for time, change in changes:
            reserved += change
            full = reserved + count > self.capacity
            if full and full_since is None:
                full_since = time
            elif not full and full_since is not None:
                if time > full_since:
                    yield full_since, time
                full_since = None
