"""Filters that are several others under one name, in their order."""

from __future__ import annotations

from foresail.model.registry import NoParameters, register
from foresail.traces.filtering import Bundle


@register("filter", "predictsim")
def predictsim(_: NoParameters) -> Bundle:
    """The six filters of Gaussier, Glesser, Reis and Trystram, SC 2015, in their order.

    Jobs wider than the machine, of unknown size, or without positive runtime, requested time and
    submission are dropped; runtimes are cut at the requested time. For CEA-Curie the study sets the
    machine to 80,640 processors.
    """
    return Bundle.of(
        *("drop_wider_than_machine", "drop_no_processors", "fill_processors", "drop_no_runtime"),
        *("drop_no_request", "clip_runtime_to_request", "drop_negative_submit"),
    )


@register("filter", "replayable")
def replayable(_: NoParameters) -> Bundle:
    """Drop jobs that cannot be replayed: without processors or runtime, or wider than the machine.

    A job whose processors are known only as allocated is kept with those. The few that were
    submitted far outside of the time that the log is of are dropped as well.
    """
    return Bundle.of(
        *("drop_no_processors", "fill_processors", "drop_no_runtime", "drop_wider_than_machine"),
        "drop_outside_window",
    )


@register("filter", "replayable_by_task")
def replayable_by_task(_: NoParameters) -> Bundle:
    """Drop jobs without processors or runtime, or with a task that is wider than the machine.

    As ``replayable``, for schedulers that start the tasks of a job apart.
    """
    return Bundle.of(
        *("drop_no_processors", "fill_processors", "drop_no_runtime"),
        *("drop_tasks_wider_than_machine", "drop_outside_window"),
    )
