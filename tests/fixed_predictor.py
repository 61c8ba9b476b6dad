"""A predictor that was told every estimate beforehand, and policies and workloads that use it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from foresail.control.policy import PlugIn, Policy, parse_policy
from foresail.distributions.basic import Point
from foresail.kernels.steps import PredictorState, PredictorSteps
from foresail.model.protocols import Predictor
from foresail.model.registry import Entry
from foresail.predictors import clairvoyant
from foresail.predictors.kernels.request import ignore
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table


@dataclass(frozen=True)
class FixedParameters:
    """An estimate (seconds) per job, in order of submission."""

    seconds: tuple[float, ...] = ()


class Fixed(Predictor):
    """Predicts what it was told; jobs are named ``1``, ``2``, ... in order of submission."""

    def __init__(self, parameters: FixedParameters) -> None:
        self.seconds = parameters.seconds

    def predict(self, job, now):
        return Point(self.seconds[int(job.job_id) - 1])

    def observe(self, job, outcome):
        pass

    def compiled(self, specs, features=()):
        told = np.array(self.seconds, dtype=np.float64).reshape(-1, 1)
        state = PredictorState(np.zeros(1), np.zeros((1, 1)), told)
        return PredictorSteps(clairvoyant.predict, ignore, ignore), state


def fixed_policy(text: str, seconds: Sequence[float]) -> Policy:
    """A policy in short form, with these estimates in place of its predictor."""
    entry = Entry("predictor", "fixed", Fixed, FixedParameters)
    return replace(parse_policy(text), predictor=PlugIn(entry, FixedParameters(tuple(seconds))))


def workload_of(
    jobs: Sequence[tuple[float, int, float, float | None]],
    processors: int = 4,
    users: Sequence[str | None] | None = None,
) -> Workload:
    """Jobs as (submit, cpus, runtime, requested), in order of submission, named 1, 2, ..."""
    table = jobs_table(
        {
            "job_id": [str(number) for number in range(1, len(jobs) + 1)],
            "submit_seconds": [float(job[0]) for job in jobs],
            "tasks": [job[1] for job in jobs],
            "runtime_seconds": [float(job[2]) for job in jobs],
            "requested_seconds": [None if job[3] is None else float(job[3]) for job in jobs],
            "user": ["ann"] * len(jobs) if users is None else list(users),
        }
    )
    return Workload(table, WorkloadMeta("made", "hand", processors))
