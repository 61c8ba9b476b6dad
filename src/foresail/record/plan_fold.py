"""The plan of a run's last scheduling pass, folded from what each pass recorded of it."""

from __future__ import annotations

import math

from foresail.model.decision import Placement, PlannedStart
from foresail.record.records import Decided, Drained, Manifest, Record


class PlanFold:
    """Takes a run's records in order, and knows what is planned.

    To be read by others: ``starts`` (planned start, seconds, by job id), ``made_at`` (when;
    -inf at first), ``head`` (the job planned first), ``is_void`` (a drain has ended all plans).
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.starts: dict[str, float] = {}
        self.made_at = -math.inf
        self.head: str | None = None
        self.is_void = False
        self._places: dict[str, Placement] = {}

    def take(self, record: Record) -> None:
        """Take the next record."""
        match record:
            case Decided():
                self._decide(record)
            case Drained():
                self.head, self.is_void = None, True
            case Manifest():
                self._begin()

    def _decide(self, record: Decided) -> None:
        for job_id in record.dropped:
            self.starts.pop(job_id, None)
            self._places.pop(job_id, None)
        if record.slides:
            later = record.time - self.made_at
            self.starts = {job_id: start + later for job_id, start in self.starts.items()}
        self.starts.update(record.plan)
        for job_id, places in record.places.items():
            self._places[job_id] = Placement(places)
        self.made_at, self.head, self.is_void = record.time, record.head, False

    def planned(self) -> tuple[PlannedStart, ...]:
        """The plan that was made last."""
        nowhere = Placement(())
        return tuple(
            PlannedStart(job_id, start, self._places.get(job_id, nowhere))
            for job_id, start in self.starts.items()
        )
