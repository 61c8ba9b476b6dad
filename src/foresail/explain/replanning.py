"""How a job's planned start moved, and what had happened meanwhile."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from foresail.model.event import (
    Cancelled,
    Ended,
    Event,
    NodeAdded,
    NodeChanged,
    NodeDown,
    NodeDrained,
    NodeRemoved,
    NodeResumed,
    NodeUp,
    Submitted,
)
from foresail.model.outcome import EndedBecause
from foresail.model.words import duration, listed
from foresail.record.plans import PlanFold
from foresail.record.records import Decided

_LEAST_SECONDS: Final = 60.0
_LEAST_SHARE: Final = 0.2

_ENDS: Final = {
    EndedBecause.PREEMPTED: "preempted",
    EndedBecause.LOST: "lost",
}


class PlanTeller:
    """Follows the planned start of one job through a log's scheduling passes.

    A move is told that is longer than a minute, than a fifth of what is left until the start, and
    than a fifth of what the job has waited: plans that count from now move on with the clock.

    Parameters
    ----------
    job_id
        Which job.
    knows_others
        Whether it is told of all that happens; else it says of no move what had happened meanwhile.
    """

    def __init__(self, job_id: str, *, knows_others: bool = True) -> None:
        self._job_id = job_id
        self._knows_others = knows_others
        self._plan = PlanFold()
        self._told: float | None = None
        self._since = 0.0
        self._meanwhile: Counter[str] = Counter()
        self._names: dict[str, str] = {}
        self._started: Sequence[str] = ()

    @property
    def is_told(self) -> bool:
        """Whether a planned start has been told that still stands."""
        return self._told is not None

    def happened(self, event: Event) -> None:
        """Take note of an event that plans may answer."""
        match event:
            case Submitted(job=job) if job.job_id == self._job_id:
                self._since = event.time
            case Ended(outcome=outcome):
                kind = _ENDS.get(outcome.ended_because, "ended")
                self._note(kind, outcome.job_id)
            case Submitted(job=job) if job.job_id != self._job_id:
                self._note("submitted", job.job_id)
            case Cancelled(job_id=job_id):
                self._note("cancelled", job_id)
            case NodeDown(node=node) | NodeDrained(node=node):
                self._note("down", node)
            case NodeUp(node=node) | NodeResumed(node=node):
                self._note("up", node)
            case NodeAdded(node=added):
                self._note("added", added.name)
            case NodeChanged(node=changed):
                self._note("changed", changed.name)
            case NodeRemoved(node=node):
                self._note("removed", node)

    def outlived(self, job_id: str) -> None:
        """A running job has run longer than was expected of it."""
        self._note("outlived", job_id)

    def _note(self, kind: str, name: str) -> None:
        self._meanwhile[kind] += 1
        self._names[kind] = name

    def forget(self) -> None:
        """The job has started: what was planned is over."""
        self._told = None
        self._meanwhile.clear()

    def for_whom(self) -> str:
        """Whose start the last pass stopped others for, as far as its plan tells."""
        if not self._started:
            return ""
        names = ", ".join(self._started[:3])
        return f" for job {names}" if len(self._started) == 1 else f" for jobs {names}"

    def sentence(self, record: Decided) -> str | None:
        """What a scheduling pass has changed for the job; None if that is not worth telling."""
        self._plan.take(record)
        now, start = record.time, self._plan.starts.get(self._job_id)
        self._started = tuple(job for job, begin in record.plan.items() if begin <= now)
        if start is None:
            return None
        if self._told is None:
            self._told = start
            self._meanwhile.clear()
            return None  # the reason, told in the same step, says when
        move = start - self._told
        least = _LEAST_SHARE * max(self._told - now, now - self._since)
        if not abs(move) > max(_LEAST_SECONDS, least):
            return None
        said = _moved(move, start - now) + self._because()
        self._told = start
        self._meanwhile.clear()
        return said

    def _because(self) -> str:
        if not self._knows_others:
            return "."
        parts = [
            words
            for kind, one, many in (
                ("ended", "job {} ended", "{} jobs ended"),
                ("preempted", "job {} was stopped", "{} jobs were stopped"),
                ("lost", "job {} was lost with a node", "{} jobs were lost with nodes"),
                ("outlived", "job {} outlived its estimate", "{} estimates were outlived"),
                ("submitted", "job {} was submitted", "{} jobs were submitted"),
                ("cancelled", "job {} was cancelled", "{} jobs were cancelled"),
                ("down", "node {} failed", "{} nodes failed"),
                ("up", "node {} came back", "{} nodes came back"),
                ("added", "node {} was added", "{} nodes were added"),
                ("changed", "node {} was changed", "{} nodes were changed"),
                ("removed", "node {} was removed", "{} nodes were removed"),
            )
            if (words := self._happenings(kind, one, many))
        ]
        if not parts:
            return "; nothing but time has passed."
        return f"; meanwhile {listed(parts)}."

    def _happenings(self, kind: str, one: str, many: str) -> str:
        amount = self._meanwhile[kind]
        if not amount:
            return ""
        return one.format(self._names[kind]) if amount == 1 else many.format(f"{amount:,}")


def _moved(move: float, left: float) -> str:
    if math.isinf(left):
        return "Planned for no known time any more"
    if math.isinf(move):
        return f"Planned for a time again, in {duration(max(left, 0.0))}"
    direction = "later" if move > 0 else "earlier"
    return (
        f"Planned {duration(abs(move))} {direction} than told before: in {duration(max(left, 0.0))}"
    )
