"""Queues by what the predictor believes: 3Sigma, Point-Est and the oracle among SLearn's tasks."""

from __future__ import annotations

from dataclasses import dataclass

from foresail.model.limits import require_at_least
from foresail.model.registry import register
from foresail.schedulers.kernels.task_jobs import PREDICTION
from foresail.schedulers.of_tasks.queueing import (
    QueueParameters,
    without_pilots,
)
from foresail.schedulers.of_tasks.scheduler import TaskScheduler


@dataclass(frozen=True, slots=True)
class PredictedQueuesParameters(QueueParameters):
    """Parameters of ``predicted_queues``."""

    thin_below: int = 0
    """Jobs of fewer tasks go to the first queue, whatever is believed of them (3SigmaTL has 3)."""

    def __post_init__(self) -> None:
        QueueParameters.__post_init__(self)
        require_at_least(self, 0, "thin_below")


@register("task_scheduler", "predicted_queues", parameters=PredictedQueuesParameters)
class PredictedQueues(TaskScheduler):
    """Puts a job into the queue that follows from the predicted seconds of all its tasks."""

    def __init__(self, parameters: PredictedQueuesParameters) -> None:
        rules, costs = parameters.rules(), parameters.costs()
        compiled = without_pilots(rules, costs, PREDICTION, parameters.thin_below)
        super().__init__(compiled)
