"""All jobs in one queue, in order of arrival; their tasks start apart."""

from __future__ import annotations

from foresail.model.registry import NoParameters, register
from foresail.schedulers.kernels.task_jobs import ARRIVAL_ORDER
from foresail.schedulers.of_tasks.queueing import QueueParameters, without_pilots
from foresail.schedulers.of_tasks.scheduler import TaskScheduler


@register("task_scheduler", "task_fifo")
class TaskFifo(TaskScheduler):
    """Starts the tasks of the job that came first, then those of the next one."""

    def __init__(self, _: NoParameters) -> None:
        one = QueueParameters(queues=1)
        super().__init__(without_pilots(one.rules(), one.costs(), ARRIVAL_ORDER))
