"""Workloads and predictors made for tests of evaluations: by hand and at random."""

from __future__ import annotations

import numpy as np
import polars as pl

from foresail.model.protocols import Predictor
from foresail.model.registry import Entry, NoParameters
from foresail.model.short_form import PlugIn, part_of
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table


def made_workload(columns: dict[str, object], **tables: pl.DataFrame) -> Workload:
    """A workload from some columns of its jobs; ids count from 1, tasks are 1."""
    given = {"job_id": [str(i + 1) for i in range(len(columns["submit_seconds"]))], **columns}
    given.setdefault("tasks", [1] * len(given["job_id"]))
    return Workload(jobs_table(given), WorkloadMeta("made", "made", processors=64), **tables)


def random_jobs(jobs: int, seed: int = 0, weeks: float = 8.0) -> Workload:
    """Jobs of 20 users, each with a runtime of its own, scattered log-normally; waits, requests."""
    generator = np.random.default_rng(seed)
    user = generator.integers(0, 20, jobs)
    runtime = np.exp(4.0 + user / 4.0 + generator.normal(0.0, 0.8, jobs)).round() + 1.0
    return made_workload(
        {
            "submit_seconds": np.sort(generator.uniform(0.0, weeks * 604_800.0, jobs)).round(),
            "recorded_wait_seconds": generator.exponential(600.0, jobs).round(),
            "runtime_seconds": runtime,
            "requested_seconds": runtime * generator.choice([1.0, 2.0, 10.0], jobs),
            "user": [f"user{each}" for each in user],
            "tasks": generator.integers(1, 16, jobs),
            "used_cpu_seconds": runtime * generator.uniform(0.2, 1.0, jobs),
        }
    )


def as_part(predictor: object, name: str = "given") -> PlugIn:
    """A predictor's object as if it had been named."""
    return PlugIn(Entry("predictor", name, lambda _: predictor, NoParameters), NoParameters())


class Objects(Predictor):
    """A predictor whose compiled steps nobody can see."""

    def __init__(self, text: str) -> None:
        self._inner = part_of("predictor", text).build()

    def predict(self, job, now):
        return self._inner.predict(job, now)

    def started(self, job, now):
        self._inner.started(job, now)

    def observe(self, job, outcome):
        self._inner.observe(job, outcome)
