"""How long steps take: to decide, and to write down; and when deciding has taken too long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from foresail.record.jobs_fold import JobsFold
from foresail.record.records import Record
from foresail.service.metrics import ServiceMetrics

TOO_OFTEN: Final = 3
"""So many steps in a row beyond the budget, and another policy decides."""


class CycleWatch:
    """Watches steps.

    Parameters
    ----------
    metrics
        Counts them.
    budget_seconds
        How long a step may take to decide.
    exhausted
        Is called when several in a row have taken longer, with how long the last has taken.
    """

    def __init__(
        self,
        metrics: ServiceMetrics,
        budget_seconds: float,
        exhausted: Callable[[float], None],
    ) -> None:
        self._metrics = metrics
        self._budget_seconds = budget_seconds
        self._exhausted = exhausted
        self._beyond = 0
        self._worked_seconds = 0.0

    def take(self, record: Record, jobs: JobsFold) -> None:
        """A record has been made, and the fold has taken it."""
        self._metrics.take(record, jobs)

    def step(self, deciding_seconds: float, writing_seconds: float) -> None:
        """A step has been decided and written down."""
        self._metrics.cycle_seconds.observe(deciding_seconds)
        self._metrics.commit_seconds.observe(writing_seconds)
        self._worked_seconds += deciding_seconds + writing_seconds
        self._beyond = self._beyond + 1 if deciding_seconds > self._budget_seconds else 0
        if self._beyond >= TOO_OFTEN:
            self._beyond = 0
            self._exhausted(deciding_seconds)

    def worked_seconds(self) -> float:
        """How long steps have taken since this was asked."""
        worked, self._worked_seconds = self._worked_seconds, 0.0
        return worked
