"""Beliefs that are wrong on purpose: how much a scheduler suffers from shifted or vague ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from foresail.distributions.basic import Point
from foresail.distributions.truncated_normal import TruncatedNormal
from foresail.model.distribution import Distribution, Floats
from foresail.model.errors import InputError, require, require_at_least
from foresail.model.event import Outcome
from foresail.model.job import Job
from foresail.model.protocols import Predictor
from foresail.model.registry import register

SHIFT_DEVIATION: Final = 0.1
"""Standard deviation of a job's shift about the one that is aimed at."""
LEAST_SHARE: Final = 0.01
"""No distribution is centred below this share of the real runtime: shifts reach under -100 %."""
_SHORTEST_SECONDS: Final = 1e-3


class PerturbedBeliefs(NamedTuple):
    """A normal belief for each job, to be truncated to positive values and renormalised."""

    mean_seconds: Floats
    deviation_seconds: Floats
    """Parameters of each job's normal distribution before truncation; shape (jobs,)."""
    shift: Floats
    """By how much of the real runtime each is off, as a fraction; shape (jobs,)."""


def perturbed(
    runtime_seconds: Floats,
    shift_percent: float,
    spread_percent: float,
    random: np.random.Generator,
    shift_deviation: float = SHIFT_DEVIATION,
) -> PerturbedBeliefs:
    """Beliefs N(runtime (1 + shift), runtime x spread), the shift drawn for each job.

    ``runtime_seconds`` are above 0, of shape (jobs,). Shifts have a mean of ``shift_percent`` of
    the runtime, and a standard deviation as a fraction; beliefs have one of ``spread_percent``.
    """
    shift = random.normal(shift_percent / 100.0, shift_deviation, runtime_seconds.size)
    return PerturbedBeliefs(
        mean_seconds=runtime_seconds * np.maximum(1.0 + shift, LEAST_SHARE),
        deviation_seconds=runtime_seconds * (spread_percent / 100.0),
        shift=shift,
    )


@dataclass(frozen=True, slots=True)
class PerturbedParameters:
    """Parameters of ``perturbed``."""

    shift_percent: float = 0.0
    """By how much of the real runtime beliefs are off, on average."""
    deviation_percent: float = 10.0
    """Standard deviation of the jobs' own shifts about it; 0: all are shifted alike, which is how
    TetriSched's estimates are wrong."""
    spread_percent: float = 20.0
    """Standard deviation of a belief in per cent of the real runtime; 0 for points."""
    seed: int = 0
    """Of the shifts."""

    def __post_init__(self) -> None:
        require(math.isfinite(self.shift_percent), self, "shift_percent", "a number")
        require_at_least(self, 0, "spread_percent", "deviation_percent", "seed")


@register("predictor", "perturbed", parameters=PerturbedParameters)
class Perturbed(Predictor):
    """Predicts a normal distribution about the real runtime, shifted (needs the truth revealed).

    Source: 3Sigma, figure 4.9.
    """

    def __init__(self, parameters: PerturbedParameters) -> None:
        self._parameters = parameters
        self._beliefs: dict[str, Distribution] = {}

    def reveal(self, runtime_seconds: Mapping[str, float]) -> None:
        """Receive the real runtime of every job by job id."""
        runtime = np.fromiter(runtime_seconds.values(), np.float64, len(runtime_seconds))
        told = self._parameters
        off = perturbed(
            np.maximum(runtime, _SHORTEST_SECONDS),
            told.shift_percent,
            told.spread_percent,
            np.random.default_rng(told.seed),
            told.deviation_percent / 100.0,
        )
        pairs = zip(off.mean_seconds.tolist(), off.deviation_seconds.tolist(), strict=True)
        self._beliefs = {
            job_id: TruncatedNormal(mean, deviation) if deviation > 0.0 else Point(mean)
            for job_id, (mean, deviation) in zip(runtime_seconds, pairs, strict=True)
        }

    def predict(self, job: Job, now: float) -> Distribution:  # noqa: ARG002 - it has no date
        """The job's perturbed belief.

        Raises ``InputError`` if its real runtime was not revealed.
        """
        if job.job_id not in self._beliefs:
            raise InputError(
                "the job's real runtime was not revealed",
                field="job_id",
                value=job.job_id,
                expected="a simulation of a recorded workload",
            )
        return self._beliefs[job.job_id]

    def observe(self, job: Job, outcome: Outcome) -> None:
        """Learn nothing."""
