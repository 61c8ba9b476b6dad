"""What a scheduler of tasks takes the size of a job for: the seconds of all its tasks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobSize:
    """The queue of a job whose first tasks tell how large it is, and what they have told.

    Parameters
    ----------
    queue
        Where its tasks wait, from 0 on: the later, the larger the job is taken to be.
    tasks
        Of all its stages.
    stage
        The one that pilots are drawn from.
    pilots
        Numbers of the tasks that tell, in the order in which they start; none of a job that is not
        sampled.
    told
        How long these took (seconds), in order of ending; none as long as some have not ended.
    seconds
        Of all tasks together, as they have told; None before that.
    """

    job_id: str
    queue: int
    tasks: int
    stage: str = ""
    pilots: tuple[int, ...] = ()
    told: tuple[float, ...] = ()
    seconds: float | None = None
