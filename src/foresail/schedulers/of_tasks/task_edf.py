"""All jobs in one queue, by their deadlines; their tasks start apart."""

from __future__ import annotations

from foresail.model.registry import NoParameters, register
from foresail.schedulers.kernels import task_queues
from foresail.schedulers.kernels.task_jobs import ARRIVAL_ORDER
from foresail.schedulers.of_tasks.queueing import QueueParameters, without_pilots
from foresail.schedulers.of_tasks.scheduler import TaskScheduler


@register("task_scheduler", "task_edf")
class TaskEdf(TaskScheduler):
    """Starts the tasks of the job whose deadline is the earliest; jobs without one go last."""

    def __init__(self, _: NoParameters) -> None:
        one = QueueParameters(queues=1)
        rules = one.rules()
        rules[task_queues.BY_DUE] = 1.0
        super().__init__(without_pilots(rules, one.costs(), ARRIVAL_ORDER))
