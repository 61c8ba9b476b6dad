"""Filter ``replayable_by_task``: what a replay needs of a log if tasks start apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from foresail.model.registry import NoParameters, register
from foresail.traces.filtering import FilterChoice

CHOICES: Final = (
    FilterChoice("fill_processors"),
    FilterChoice("drop_no_runtime"),
    FilterChoice("drop_tasks_wider_than_machine"),
)


@dataclass(frozen=True, slots=True)
class _ReplayableByTask:
    choices: tuple[FilterChoice, ...]


@register("filter", "replayable_by_task")
def replayable_by_task(_: NoParameters) -> _ReplayableByTask:
    """Drop jobs without processors or runtime, or with a task that is wider than the machine.

    As ``replayable``, for schedulers that start the tasks of a job apart.
    """
    return _ReplayableByTask(CHOICES)
