"""How long steps take, when deciding has taken too long, and whether kernels are compiled."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from numba.core import event

from foresail.record.jobs_fold import JobsFold
from foresail.record.records import Record
from foresail.service.metrics import ServiceMetrics

_LOG: Final = logging.getLogger("foresail.service")
_WORDS: Final = "what the policy needs is being compiled, once on this machine: that takes a while"


class CompileWatch(event.Listener):
    """Notes whether something is compiled, from when it listens on."""

    def __init__(self) -> None:
        self._depth = 0
        self._is_told = False

    def listen(self) -> None:
        """Begin to take note."""
        event.register("numba:compile", self)  # type: ignore[no-untyped-call]

    def stop(self) -> None:
        """Take no more note."""
        event.unregister("numba:compile", self)  # type: ignore[no-untyped-call]

    @property
    def remark(self) -> str:
        """What people should know now; empty if nothing is compiled."""
        return _WORDS if self._depth else ""

    def on_start(self, event: Any) -> None:  # noqa: ARG002 - the signature is Numba's
        """Something is compiled, for itself or as part of what is."""
        self._depth += 1
        if not self._is_told:
            self._is_told = True
            _LOG.info("%s", _WORDS)

    def on_end(self, event: Any) -> None:  # noqa: ARG002 - the signature is Numba's
        """What was begun last is compiled."""
        self._depth = max(0, self._depth - 1)


TOO_OFTEN: Final = 3
"""So many steps in a row beyond the budget, and another policy decides."""


class CycleWatch:
    """Watches steps.

    ``exhausted`` is called when several in a row have taken longer to decide than they may, with
    how long the last has taken.
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
