"""Schedulers of tasks that sample none: by arrival, by deadline, by service, by prediction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from foresail.model.decision import Decision, Reason, ReasonCode, Start
from foresail.model.errors import require_at_least
from foresail.model.job import Job
from foresail.model.registry import NoParameters, register
from foresail.model.view import ClusterView, PendingJob
from foresail.schedulers.kernels import task_queues
from foresail.schedulers.kernels.task_jobs import ARRIVAL_ORDER, PREDICTION
from foresail.schedulers.of_tasks import scheduler


@register("task_scheduler", "las", parameters=scheduler.QueueParameters)
class Las(scheduler.TaskScheduler):
    """Puts a job into the queue that follows from the seconds its tasks have got so far."""

    def __init__(self, parameters: scheduler.QueueParameters) -> None:
        rules = parameters.rules()
        rules[task_queues.BY_SERVICE] = 1.0
        compiled = scheduler.without_pilots(rules, parameters.costs(), ARRIVAL_ORDER)
        super().__init__(compiled)


@register("task_scheduler", "task_edf")
class TaskEdf(scheduler.TaskScheduler):
    """Starts the tasks of the job whose deadline is the earliest; jobs without one go last."""

    def __init__(self, _: NoParameters) -> None:
        one = scheduler.QueueParameters(queues=1)
        rules = one.rules()
        rules[task_queues.BY_DUE] = 1.0
        super().__init__(scheduler.without_pilots(rules, one.costs(), ARRIVAL_ORDER))


@register("task_scheduler", "task_fifo")
class TaskFifo(scheduler.QueuesTasks):
    """First come, first served, task by task: none overtakes one of a job that came earlier.

    A stage's tasks start as places become free, in order of their numbers, those of a gang all at
    once. What does not fit keeps everything behind it from starting.
    """

    starts_gangs = True
    ignores_time = True

    def __init__(self, _: NoParameters) -> None:
        one = scheduler.QueueParameters(queues=1)
        super().__init__(scheduler.without_pilots(one.rules(), one.costs(), ARRIVAL_ORDER))

    def decide(self, view: ClusterView) -> Decision:
        """Start what is first until something does not fit."""
        room = self._rooms.at(view)
        starts: list[Start] = []
        reasons: dict[str, Reason] = {}
        for pending in view.pending:
            job_id = pending.job.job_id
            if reasons:
                numbers = {"ahead": float(len(reasons))}
                reasons[job_id] = Reason(ReasonCode.BEHIND, numbers)
                continue
            for stage, task, held in _startable(pending):
                placement = room.placement(held)
                if placement is None:
                    numbers = {"cpus": held.cpus, "free": max(room.cpus, 0.0)}
                    reasons[job_id] = Reason(ReasonCode.NO_ROOM, numbers)
                    break
                room.take(held, placement)
                starts.append(Start(job_id, placement, stage=stage, tasks=task))
        return Decision(tuple(starts), reasons=reasons)


def _startable(pending: PendingJob) -> Iterator[tuple[str, tuple[int, ...], Job]]:
    """Yield what of a job may start now, in order: stage, task and what it holds."""
    if not pending.startable:
        yield "", (), pending.job
    for each in pending.startable:
        stage = each.stage
        if stage.together:
            yield stage.name, (), pending.job.part(stage, stage.tasks)
            continue
        held = pending.job.part(stage, 1)
        for task in each.tasks:
            yield stage.name, (task,), held


@dataclass(frozen=True, slots=True)
class PredictedQueuesParameters(scheduler.QueueParameters):
    """Parameters of ``predicted_queues``."""

    thin_below: int = 0
    """Jobs of fewer tasks go to the first queue, whatever is believed of them (3SigmaTL has 3)."""

    def __post_init__(self) -> None:
        scheduler.QueueParameters.__post_init__(self)
        require_at_least(self, 0, "thin_below")


@register("task_scheduler", "predicted_queues", parameters=PredictedQueuesParameters)
class PredictedQueues(scheduler.TaskScheduler):
    """Puts a job into the queue that follows from the predicted seconds of all its tasks."""

    def __init__(self, parameters: PredictedQueuesParameters) -> None:
        rules, costs = parameters.rules(), parameters.costs()
        compiled = scheduler.without_pilots(rules, costs, PREDICTION, parameters.thin_below)
        super().__init__(compiled)
