"""Filter ``replayable_by_task``: what a replay needs of a log if tasks start apart."""

from __future__ import annotations

from typing import Final

from foresail.model.registry import NoParameters, register
from foresail.traces.filtering import Bundle, FilterChoice

CHOICES: Final = (
    FilterChoice("fill_processors"),
    FilterChoice("drop_no_runtime"),
    FilterChoice("drop_tasks_wider_than_machine"),
)


@register("filter", "replayable_by_task")
def replayable_by_task(_: NoParameters) -> Bundle:
    """Drop jobs without processors or runtime, or with a task that is wider than the machine.

    As ``replayable``, for schedulers that start the tasks of a job apart.
    """
    return Bundle(CHOICES)
