"""Plans and reasons of scheduling passes: what a log records of them, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Final

from foresail.model.containers import quickly_made
from foresail.model.decision import Placement, PlannedStart, Reason, ReasonCode
from foresail.record.log_text import shared
from foresail.record.records import Decided, Drained, Manifest, Record

_ROUNDING_SECONDS = 1e-6


@quickly_made
@dataclass(frozen=True, slots=True)
class PlanChange:
    """Difference of a plan to the one before; the fields are those of ``records.Decided``."""

    slides: bool
    plan: Mapping[str, float]
    places: Mapping[str, tuple[tuple[str, int], ...]]
    dropped: tuple[str, ...]


_UNCHANGED: Final = PlanChange(False, {}, {}, ())


class Changes:
    """Compares each plan, and each pass's reasons, with those before.

    A plan in slots that count from now moves on with the clock although nothing about it changes.
    Whichever is less to tell is taken as unchanged: the planned times, or how far off they are.
    """

    def __init__(self) -> None:
        self._time = 0.0
        self._plan: Mapping[str, PlannedStart] = {}
        self._moved: set[str] = set()
        self._reasons: dict[str, tuple[ReasonCode, object]] = {}

    def take_over(self, plan: Iterable[PlannedStart], now: float) -> None:
        """Go on from a plan made now; all reasons are news then."""
        self._time = now
        self._plan = {each.job_id: each for each in plan}

    def of_plan(self, plan: Iterable[PlannedStart], now: float) -> PlanChange:
        """Return the difference of a plan made now to the one before."""
        later = {each.job_id: each for each in plan}
        earlier = self._plan
        self._time, before = now, self._time
        if later == earlier:
            return _UNCHANGED
        stays = _others(earlier, later, 0.0)
        moves_on = _others(earlier, later, now - before) if stays else stays
        slides = len(moves_on) < len(stays)
        changed = moves_on if slides else stays
        self._moved.update(changed)
        self._plan = later
        return PlanChange(
            slides=slides,
            plan={job_id: later[job_id].start_seconds for job_id in changed},
            places={
                job_id: each.placement.tasks_by_partition
                for job_id, each in later.items()
                if job_id not in earlier or earlier[job_id].placement != each.placement
            },
            dropped=tuple(job_id for job_id in earlier if job_id not in later),
        )

    @property
    def moved(self) -> set[str]:
        """Jobs planned for another time since reasons were last compared."""
        return self._moved

    def of_reasons(self, reasons: Mapping[str, Reason], anew: Set[str]) -> Mapping[str, Reason]:
        """Return which of all reasons differ in kind, or in the start they promise.

        And those of jobs that are to be logged ``anew``, whatever is known of them.
        """
        earlier, self._reasons = self._reasons, {}
        return self._compared(reasons, earlier, anew)

    def of_some_reasons(
        self, reasons: Mapping[str, Reason], others: Iterable[str], anew: Set[str]
    ) -> Mapping[str, Reason]:
        """Return changed reasons like ``of_reasons``, of jobs among whom are all that differ.

        ``others`` wait no more, or their reasons are logged without being compared here.
        """
        for job_id in others:
            self._reasons.pop(job_id, None)
        return self._compared(reasons, self._reasons, anew)

    def _compared(
        self,
        reasons: Mapping[str, Reason],
        earlier: Mapping[str, tuple[ReasonCode, object]],
        anew: Set[str],
    ) -> Mapping[str, Reason]:
        changed: dict[str, Reason] = {}
        for job_id, reason in reasons.items():
            promises = reason.code is ReasonCode.RESERVED
            start = promises and job_id not in self._plan and reason.numbers.get("start")
            known = shared((reason.code, start))  # most are promised nothing
            moved = promises and job_id in self._moved
            if moved or job_id in anew or earlier.get(job_id) != known:
                changed[job_id] = reason
            self._reasons[job_id] = known
        self._moved.clear()
        return changed


def _others(
    earlier: Mapping[str, PlannedStart], later: Mapping[str, PlannedStart], moved_by: float
) -> list[str]:
    """Jobs that were not planned, or for another time than that so many seconds later."""
    return [
        job_id
        for job_id, each in later.items()
        if job_id not in earlier
        or not math.isclose(
            each.start_seconds,
            earlier[job_id].start_seconds + moved_by,
            rel_tol=1e-12,
            abs_tol=_ROUNDING_SECONDS,
        )
    ]


class PlanFold:
    """Takes a run's records in order, and knows what its last scheduling pass has planned.

    To be read by others: ``made_at`` (when that was, seconds; -inf at first), ``head`` (the job
    planned first), ``is_void`` (that plan has ended: by a drain, or as no job may start any more).
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.made_at = -math.inf
        self.head: str | None = None
        self.is_void = False
        self._starts: dict[str, float] = {}
        self._places: dict[str, Placement] = {}

    @property
    def starts(self) -> Mapping[str, float]:
        """Planned start (seconds) by job id."""
        return {} if self.is_void else self._starts

    def take(self, record: Record) -> None:
        """Take the next record."""
        match record:
            case Decided():
                self._decide(record)
            case Drained():
                self.void()
            case Manifest():
                self._begin()

    def void(self) -> None:
        """End the plan; the next pass still says how its own differs from it."""
        self.head, self.is_void = None, True

    def _decide(self, record: Decided) -> None:
        for job_id in record.dropped:
            self._starts.pop(job_id, None)
            self._places.pop(job_id, None)
        if record.slides:
            later = record.time - self.made_at
            self._starts = {job_id: start + later for job_id, start in self._starts.items()}
        self._starts.update(record.plan)
        for job_id, places in record.places.items():
            self._places[job_id] = Placement(places)
        self.made_at, self.head, self.is_void = record.time, record.head, False

    def planned(self) -> tuple[PlannedStart, ...]:
        """Return what is planned."""
        return () if self.is_void else self.last_planned()

    def last_planned(self) -> tuple[PlannedStart, ...]:
        """Return what the last pass has planned, whatever has come of it."""
        nowhere = Placement(())
        return tuple(
            PlannedStart(job_id, start, self._places.get(job_id, nowhere))
            for job_id, start in self._starts.items()
        )
