"""When a job may begin at the earliest: by what is planned of, and promised to, those before it."""

from __future__ import annotations

from collections.abc import Mapping

from foresail.model.job import Job
from foresail.model.view import Rejection, Reservation
from foresail.record.job_life import JobState
from foresail.record.state import State


def earliest_begin(
    job: Job, state: State, promised: Mapping[str, Reservation | Rejection], now: float
) -> float:
    """When all jobs that a job waits for may have ended, and it may begin (seconds); else ``now``.

    One with a reservation ends with that; one that runs ends when it is expected to; any other
    runs as long as is planned, from when those that it waits for have ended itself.
    """
    ends: dict[str, float] = {}
    asked: set[str] = set()
    stack = _unended(job, state)
    while stack:
        job_id = stack[-1]
        answer, running = promised.get(job_id), state.running.get(job_id)
        if isinstance(answer, Reservation) and answer.end_seconds > now:
            ends[job_id] = answer.end_seconds
        elif running is not None:
            ends[job_id] = max(running.expected_end_seconds, now)
        elif state.of(job_id) is JobState.ABSENT:  # when it will come is not known
            ends[job_id] = now
        else:
            pending = state.submitted_job(job_id)
            before = _unended(pending.job, state)
            unknown = [each for each in before if each not in ends]
            if unknown and job_id not in asked:  # else they wait for each other
                asked.add(job_id)
                stack += unknown
                continue
            begin = max((ends[each] for each in before if each in ends), default=now)
            ends[job_id] = begin + pending.planned_seconds
        stack.pop()
    wished = None if job.conditions is None else job.conditions.begin_seconds
    return max(wished or now, now, *(ends[each] for each in job.after if each in ends))


def _unended(job: Job, state: State) -> list[str]:
    return [each for each in job.after if each not in state.ended]
