"""What a scheduler of tasks takes the size of a job for: the seconds of all its tasks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobSize:
    """The queue of a job whose first tasks tell how large it is, and what they have told."""

    job_id: str

    queue: int
    """Where its tasks wait, from 0 on: the later, the larger the job is taken to be."""
    tasks: int
    """Of all its stages."""
    stage: str = ""
    """The one that pilots are drawn from."""
    pilots: tuple[int, ...] = ()
    """Numbers of the tasks that tell, in the order in which they start; none of a job that is not
    sampled."""
    told: tuple[float, ...] = ()
    """How long these took (seconds), in order of ending; none as long as some have not ended."""
    seconds: float | None = None
    """Of all tasks together, as they have told; None before that."""
