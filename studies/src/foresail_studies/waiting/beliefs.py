"""Study ``waiting-beliefs``: which jobs are short, as predictors of runtimes tell it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np

from foresail.cloud.waiting.jobs import TraceJobs
from foresail.cloud.waiting.simulating import Beliefs, Foresight, WaitingPolicy
from foresail.evaluation.replaying import told_quantiles
from foresail.model.arrays import Floats
from foresail.model.errors import InputError
from foresail.model.registry import register
from foresail_studies.study import (
    Bound,
    GridPoint,
    Mean,
    Measure,
    Study,
    StudyParameters,
    log_of,
    points_at,
    published,
)
from foresail_studies.waiting import _shared as waiting
from foresail_studies.waiting._shared import long_jobs_of, perturbed

_ORACLE: Final = "oracle"
_CLOSE: Final = "10 % off"
_TRIED: Final = "speculative"
_SURE: Final = ", the surely long untried"
"""Added to a predictor that only says which jobs are too surely long to be tried."""


@dataclass(frozen=True, slots=True)
class BeliefRun:
    """The compound policy, short jobs being those whose believed median is below the threshold.

    Or trials of all jobs, or of all but those that are believed to be long with 90 %.
    """

    workload: str
    """Path of a log, or the short form of a generator."""
    seed: int
    """Of the generator."""
    percent: float
    """Of the mean load that is owned, as one pool of cores."""
    waiting_seconds: float
    short_seconds: float

    system: str
    """A predictor's short form, perhaps with what says that it only tells surely long jobs; or who
    needs none: ``oracle``, ``10 % off``, ``speculative``."""

    def measure(self) -> Mapping[str, float]:
        """Measure cost, and how well short jobs were known (MCC, MAPE)."""
        workload = log_of(self.workload, self.seed)
        jobs = TraceJobs.of_workload(workload)
        fixed = waiting.machines_for(jobs, self.percent)
        policy = WaitingPolicy(self.waiting_seconds, self.short_seconds)
        sure = self.system.endswith(_SURE)
        tried = sure or self.system == _TRIED
        if tried:
            policy = WaitingPolicy(
                self.waiting_seconds,
                speculation_seconds=self.short_seconds,
                untried_seconds=self.short_seconds if sure else math.inf,
            )
        estimates = self._estimates(jobs)
        found, result = waiting.ran(jobs, fixed, policy, Beliefs(estimates, Foresight()))
        numbers = {
            **waiting.figures_of(result),
            "trial_cost": long_jobs_of(found, policy).trial_cost / result.fixed_cost,
        }
        if tried:  # it is not said which jobs are short, or how long they run
            return numbers
        return {**numbers, **waiting.knowledge_of(estimates, jobs, self.short_seconds)}

    def _estimates(self, jobs: TraceJobs) -> Floats:
        """Seconds by job that thresholds are compared with."""
        if self.system in (_ORACLE, _TRIED):
            return jobs.runtime_seconds
        if self.system == _CLOSE:
            return perturbed(jobs.runtime_seconds, 0.1)
        predictor = self.system.removesuffix(_SURE)
        low, middle = _told(self.workload, self.seed, predictor)
        return middle if predictor == self.system else low


@lru_cache(maxsize=8)
def _told(text: str, seed: int, predictor: str) -> tuple[Floats, Floats]:
    """Seconds by job that 90 % and 50 % are above, by a predictor that learns as jobs end.

    Of what it knows nothing of, these are 0 and without end: a job to be tried, or to wait.
    """
    low, middle = told_quantiles(log_of(text, seed), predictor, q10=0.0, q50=np.inf)
    return low, middle


@dataclass(frozen=True, slots=True)
class BeliefParameters(StudyParameters, quick="seeds=4 workload=e2e(hours=10)", minutes=(2, 15)):
    """Parameters of ``waiting-beliefs``."""

    workload: str = "e2e(hours=48)"
    """Short form of a generator whose jobs have users, unless a log is given."""
    log: Path | None = None
    """A log."""
    percent: float = 100.0
    """Of the mean load that is owned."""
    waiting_minutes: float = 120.0
    short_minutes: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0)
    """Thresholds b and t, of which the latter makes the figures' axis."""
    predictors: tuple[str, ...] = ("recent", "regression", "jvu", "history", "combined")
    """Who tells runtimes, in short form."""

    def __post_init__(self) -> None:
        StudyParameters.__post_init__(self)
        if not self.predictors:
            raise InputError("no predictor", field="predictors", expected="one or more")


@register("study", "waiting-beliefs", parameters=BeliefParameters)
def waiting_beliefs(parameters: BeliefParameters) -> Study:
    """Measure the worth of predicted runtimes to a waiting policy (section 7.2, figure 7.4)."""
    source = parameters.workload if parameters.log is None else str(parameters.log)
    seeds = range(parameters.seeds if parameters.log is None else 1)
    group = parameters.workload if parameters.log is None else parameters.log.name
    systems = (
        *(_ORACLE, _CLOSE, _TRIED, *parameters.predictors),
        *(each + _SURE for each in parameters.predictors),
    )
    cases: list[GridPoint] = []
    for seed in seeds:
        for minutes in parameters.short_minutes:
            limits = 60.0 * parameters.waiting_minutes, 60.0 * minutes
            runs = {
                system: BeliefRun(source, seed, parameters.percent, *limits, system)
                for system in systems
            }
            cases += points_at(group, minutes, seed, runs)
    return Study(
        title="What are predicted runtimes worth to a waiting policy?",
        source=f"{waiting.SOURCE}, section 7.2 and figure 7.4",
        axis="short threshold t (min)",
        measures=(
            waiting.PRICE,
            waiting.WAIT,
            waiting.RENTED_COST,
            Measure("trial_cost", "trials of long jobs / fixed cost", "share"),
            *reversed(waiting.KNOWLEDGE),
        ),
        drawn=("rented_to_fixed", "mean_wait_seconds", "correlation"),
        cases=tuple(cases),
        claims=published(_claims(parameters.predictors)),
        notes=(
            "The published models (linear, forest, support vectors, network) knew users and "
            "requests; these are Foresail's predictors, which learn from every job that ends.",
            "Waits are foreseen in all variants, so that runtimes alone make the difference.",
            f'"X{_SURE}" is ours: who is long with 90 %, as X says, waits at once; all others are '
            "tried.",
        ),
    )


def _claims(predictors: tuple[str, ...]) -> dict[str, Bound]:
    return {
        **{
            f"Predicted runtimes hardly tell short jobs from long: "
            f"MCC near 0 (taken as: below 0.2; {each}).": Bound(Mean("correlation", each), 0.2)
            for each in predictors
        },
        **{
            f"Predicted runtimes make the on-demand cost 50 % higher than the oracle's "
            f"or more ({each}).": Mean("rented_to_fixed", _ORACLE).against(each, factor=1.0 / 1.5)
            for each in predictors
        },
        **{
            f"Ours: if surely long jobs are not tried, the on-demand cost is less ({each}).": Mean(
                "rented_to_fixed", each + _SURE
            ).against(_TRIED)
            for each in predictors
        },
    }
