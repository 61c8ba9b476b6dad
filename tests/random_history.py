"""Random jobs and what happened to them: input for tests of whatever learns from events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foresail.kernels.columns import MEMORY, SPEC_COLUMNS
from foresail.model.cluster import Resources
from foresail.model.event import Outcome
from foresail.model.job import Job, Stage

SUBMIT, START, END = "submit", "start", "end"


@dataclass(frozen=True)
class History:
    """Jobs, when they ran, and all events as (time, kind, index of the job), in order."""

    jobs: list[Job]
    start: list[float]
    runtime: list[float]
    events: list[tuple[float, str, int]]

    def outcome(self, index: int) -> Outcome:
        """How this job ended."""
        start = self.start[index]
        return Outcome(self.jobs[index].job_id, start, start + self.runtime[index])

    def specs(self) -> np.ndarray:
        """Specification rows, users coded in order of appearance."""
        users: dict[str, int] = {}
        rows = np.full((len(self.jobs), SPEC_COLUMNS), -1.0)
        for row, job in zip(rows, self.jobs, strict=True):
            limit = np.inf if job.requested_seconds is None else job.requested_seconds
            code = -1 if job.user is None else users.setdefault(job.user, len(users))
            row[:4] = job.submit_seconds, job.cpus, limit, code
            row[MEMORY] = job.stages[0].request.memory_bytes
        return rows


def random_history(seed: int, jobs: int = 300, users: int = 6, unknown: float = 0.1) -> History:
    """Jobs of whole seconds, many at once; some without a limit, some without a user."""
    random = np.random.default_rng(seed)
    submit = np.cumsum(random.integers(0, 120, jobs))
    runtime = np.ceil(np.exp(random.normal(5.5, 1.5, jobs)))
    start = submit + random.integers(0, 3000, jobs) * random.integers(0, 2, jobs)
    listed = []
    for i in range(jobs):
        limit = float(runtime[i] * random.integers(1, 5)) if random.random() > unknown else None
        user = f"user{random.integers(users)}" if random.random() > unknown else None
        stage = Stage(int(random.integers(1, 33)), Resources(cpus=1.0))
        listed.append(Job(f"job{i}", float(submit[i]), (stage,), limit, user))
    events = sorted(
        [(float(submit[i]), 1, i) for i in range(jobs)]
        + [(float(start[i]), 2, i) for i in range(jobs)]
        + [(float(start[i] + runtime[i]), 0, i) for i in range(jobs)]
    )
    kinds = {0: END, 1: SUBMIT, 2: START}
    named = [(time, kinds[kind], i) for time, kind, i in events]
    return History(listed, start.astype(float).tolist(), runtime.tolist(), named)
