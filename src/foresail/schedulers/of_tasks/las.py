"""Least attained service among jobs of many tasks (spec slearn, section 4)."""

from __future__ import annotations

from foresail.model.registry import register
from foresail.schedulers.kernels import task_queues
from foresail.schedulers.kernels.task_jobs import ARRIVAL_ORDER
from foresail.schedulers.of_tasks.queueing import QueueParameters, without_pilots
from foresail.schedulers.of_tasks.scheduler import TaskScheduler


@register("task_scheduler", "las", parameters=QueueParameters)
class Las(TaskScheduler):
    """Puts a job into the queue that follows from the seconds its tasks have got so far."""

    def __init__(self, parameters: QueueParameters) -> None:
        rules = parameters.rules()
        rules[task_queues.BY_SERVICE] = 1.0
        compiled = without_pilots(rules, parameters.costs(), ARRIVAL_ORDER)
        super().__init__(compiled)
