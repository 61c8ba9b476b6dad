"""Outcome: how one attempt of a job ended. Predictors learn from these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from foresail.model.allocation import Allocation
from foresail.model.construction import quickly_made


class EndedBecause(StrEnum):
    """Why an attempt ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    LIMIT = "limit"
    CANCELLED = "cancelled"
    PREEMPTED = "preempted"
    LOST = "lost"


GOES_BACK: Final = frozenset({EndedBecause.PREEMPTED, EndedBecause.LOST})
"""An attempt that ended so was not the job's last: the job goes back to its place in the queue."""


@quickly_made
@dataclass(frozen=True, slots=True)
class Outcome:
    """One ended attempt; times in seconds from the workload's origin.

    ``slowdown`` is how many times longer it ran where it was than where the job runs best. ``used``
    is what was measured of each of its tasks, on average, by the names of
    ``foresail.predictors.dspredict``; of an attempt that is requeued, the most cpu time and memory
    of any task. ``reason`` says why it ended, where that is not plain from the rest.
    """

    job_id: str
    start_seconds: float
    end_seconds: float
    ended_because: EndedBecause = EndedBecause.COMPLETED
    exit_code: int | None = None
    attempt: int = 1
    slowdown: float = 1.0
    stage: str = ""
    tasks: tuple[int, ...] = ()
    used: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""

    @property
    def allocation(self) -> Allocation:
        """What has ended."""
        return Allocation(self.job_id, self.stage, self.tasks, self.attempt)

    @property
    def runtime_seconds(self) -> float:
        """Seconds the attempt really ran."""
        return self.end_seconds - self.start_seconds

    @property
    def preferred_runtime_seconds(self) -> float:
        """Seconds it would have run where the job runs best: what there is to learn from it."""
        return self.runtime_seconds / self.slowdown
