"""What the schedulers of tasks share: the parameters of their queues, and their compiled form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from foresail.model.limits import require, require_at_least, require_positive
from foresail.schedulers.kernels import narrow_jobs, pilots, proved_history, task_queues
from foresail.schedulers.kernels.task_jobs import (
    ARRIVAL_ORDER,
    JOB_COLUMNS,
    SOURCE,
    THIN_BELOW,
    WAY_NUMBERS,
    TaskJobs,
)

Floats = NDArray[np.float64]

FIRST_ROOM: Final = 200
"""Room to work in at first (``pilots.task_seconds``)."""
_MOST_QUEUES: Final = 100


@dataclass(frozen=True, slots=True)
class QueueParameters:
    """Queues with exponential thresholds (spec slearn, section 2)."""

    queues: int = 10
    """How many."""
    first_threshold_seconds: float = 1000.0
    growth: float = 10.0
    """Seconds of tasks from which on a job is not in the first queue; how many times more each
    further queue takes."""
    weight_ratio: float = 10.0
    """How many times larger a queue's share of the slots is than the next one's."""
    rule: Literal["before", "after"] = "before"
    """Whether the slot that is offered counts as used: ``before``, it does not, and every queue
    that waits gets one slot at least; ``after``, it does."""
    within: Literal["entering", "arrival"] = "entering"
    """What orders the jobs in a queue: ``entering`` it, or their ``arrival``."""

    def __post_init__(self) -> None:
        require(1 <= self.queues <= _MOST_QUEUES, self, "queues", "from 1 to 100")
        require_positive(self, "first_threshold_seconds")
        require(1.0 < self.growth < math.inf, self, "growth", "more than 1")
        require_at_least(self, 1, "weight_ratio")

    def rules(self) -> Floats:
        """The rules for ``kernels.task_queues``."""
        rules = np.zeros(task_queues.RULE_NUMBERS)
        rules[task_queues.FIRST_THRESHOLD] = self.first_threshold_seconds
        rules[task_queues.GROWTH] = self.growth
        rules[task_queues.AHEAD] = self.rule == "after"
        rules[task_queues.BY_ARRIVAL] = self.within == "arrival"
        return rules

    def costs(self) -> Floats:
        """What a slot costs each queue."""
        return self.weight_ratio ** np.arange(self.queues, dtype=np.float64)


class CompiledTaskScheduler(NamedTuple):
    """A scheduler of tasks as the numbers of ``foresail.schedulers.kernels.task_jobs``.

    ``asks_predictor``: whether it goes by what the predictor believes of tasks.
    """

    rules: Floats
    costs: Floats
    way: Floats
    pilots: Floats
    outcomes_kept: int
    asks_predictor: bool

    def without_jobs(self, rows: int, widest: int) -> TaskJobs:
        """Queues with room for so many jobs, of which the widest has so many tasks."""
        return TaskJobs(
            task_queues.empty_queues(
                self.rules.copy(), self.costs.copy(), np.zeros((rows, JOB_COLUMNS))
            ),
            pilots.Pilots(
                self.pilots.copy(),
                pilots.no_outcomes(self.outcomes_kept),
                proved_history.nothing_proved(),
                narrow_jobs.nothing_done(),
            ),
            self.way.copy(),
            np.zeros(max(widest, FIRST_ROOM)),
        )


def way(source: int, thin_below: int) -> Floats:
    """What queues follow from, and the tasks from which on that is so."""
    numbers = np.zeros(WAY_NUMBERS)
    numbers[SOURCE] = source
    numbers[THIN_BELOW] = thin_below
    return numbers


def without_pilots(
    rules: Floats, costs: Floats, source: int, thin_below: int = 0
) -> CompiledTaskScheduler:
    """A scheduler that samples nothing."""
    return CompiledTaskScheduler(
        rules,
        costs,
        way(source, thin_below),
        np.zeros(pilots.PILOT_NUMBERS),
        1,
        asks_predictor=source != ARRIVAL_ORDER,
    )


@runtime_checkable
class QueuesTasks(Protocol):
    """A scheduler of tasks that start apart whose queues are those of the kernels.

    ``starts_gangs`` says whether ``decide`` also starts jobs whose tasks start together.
    """

    starts_gangs: bool

    def compiled_tasks(self) -> CompiledTaskScheduler:
        """The numbers of the kernels that decide."""
        ...
