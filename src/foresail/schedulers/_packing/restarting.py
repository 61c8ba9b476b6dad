"""What is known of tasks that begin anew: how much work they had done, and what they held."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Final

from foresail.model.distribution import Distribution
from foresail.model.job import Job
from foresail.model.outcome import GOES_BACK, EndedBecause, Outcome

_EVICTIONS_ENOUGH: Final = 3


class Restarts:
    """What tasks had done and held when they were evicted or stopped.

    Parameters
    ----------
    remembers
        Whether to know all of that. Otherwise what tasks of a stage held is known after three
        evictions of its job alone: tasks that evict each other for ever would never end.
    """

    def __init__(self, *, remembers: bool) -> None:
        self._remembers = remembers
        self._done: dict[str, dict[tuple[str, int], float]] = {}
        self._evictions: dict[str, int] = {}
        self._held: dict[str, dict[str, float]] = {}
        self._evicted: dict[str, float] = {}

    def note(self, job: Job, outcome: Outcome) -> None:
        """A job, or some tasks of it, have ended or go back to the queue."""
        job_id = job.job_id
        if outcome.ended_because is EndedBecause.LOST:
            self._evicted[job_id] = outcome.end_seconds
            self._evictions[job_id] = 1 + self._evictions.get(job_id, 0)
            held = self._held.setdefault(job_id, {})
            most = outcome.used.get("memory_max", 0.0)
            held[outcome.stage] = max(held.get(outcome.stage, 0.0), most)
        if not self._remembers:
            return
        done = self._done.setdefault(job_id, {})
        for task in outcome.tasks or range(job.tasks):
            key = outcome.stage, task
            if outcome.ended_because in GOES_BACK:
                done[key] = max(done.get(key, 0.0), outcome.used.get("cpu_time", 0.0))
            else:
                done.pop(key, None)

    def was_evicted(self, job_id: str, now: float) -> bool:
        """Whether that is just what happened to it: at once it might happen again, for ever."""
        return self._evicted.get(job_id) == now

    def least_memory(self, job_id: str, stage: str) -> float:
        """What a task of the stage has held when it was evicted, as far as that is to be known."""
        enough = 1 if self._remembers else _EVICTIONS_ENOUGH
        if self._evictions.get(job_id, 0) < enough:
            return 0.0
        return self._held[job_id].get(stage, 0.0)

    def work_done(self, job_id: str, stage: str, tasks: Iterable[int]) -> float:
        """The most that one of these tasks had done (cpu seconds)."""
        done = self._done.get(job_id, {})
        return max((done.get((stage, task), 0.0) for task in tasks), default=0.0) if done else 0.0

    def forget_all_but(self, living: Container[str]) -> None:
        """Only jobs that wait or run are still of interest."""
        kept: tuple[dict[str, object], ...] = (
            self._done,
            self._evictions,
            self._held,
            self._evicted,
        )  # type: ignore[assignment]
        for each in kept:
            for job_id in [name for name in each if name not in living]:
                del each[job_id]


def work_knowing(work: Distribution, done: float) -> float:
    """Expected cpu seconds of a task that has once done so much without being through.

    Where nothing that is known takes longer, as much again is taken to be left (paper 000, section
    5.3.2).
    """
    if done <= 0.0:
        return work.mean()
    if float(work.survival(done)) <= 0.0:
        return 2.0 * done
    return work.given(done).mean()
