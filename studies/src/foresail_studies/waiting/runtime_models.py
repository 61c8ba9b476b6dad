"""Studies ``waiting-runtime-models`` and ``waiting-beliefs``: what is known of runtimes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from foresail.cloud.waiting.jobs import TraceJobs
from foresail.cloud.waiting.simulating import Beliefs, Foresight, WaitingPolicy, waiting_policy
from foresail.evaluation.replaying import believed_runtimes, told_quantiles
from foresail.model.arrays import Floats
from foresail.model.errors import InputError
from foresail.model.registry import register
from foresail.traces.workload import Workload
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
from foresail_studies.waiting._shared import RUNTIME_MODELS, learn_runtimes, long_jobs_of, perturbed

_ORACLE: Final = "oracle"
_CLOSE: Final = "10 % off"
_RANDOM: Final = "any order"
_ARRIVAL: Final = "in order of arrival"
_POLICY: Final = "short and long"
_QUEUE: Final = "shortest first"

_BEST: Final = "svr"
"""The model with the least MAPE, which goes by medians and takes nearly all jobs for short, as the
published best model does; which one that was is not published."""

_BASELINE_MINUTES: Final = 15.0
"""The published threshold t, which claims on costs and waits are about."""

_LEARNED_SHARE: Final = 0.75
_EXAMPLES: Final = 20_000
_EXAMPLES_OF_VECTORS: Final = 5_000
"""Learning support vectors takes a time that grows with the square of the examples."""


class _SplitLog(NamedTuple):
    """A log's jobs, and those that are measured: the last ones."""

    workload: Workload
    features: Floats
    jobs: TraceJobs
    first: int


@dataclass(frozen=True, slots=True)
class LearnedJobs:
    """Jobs of a log of which the first three quarters are learned, the others measured."""

    workload: str
    """Path of a log, or the short form of a generator."""
    seed: int
    """Of the generator, of the examples that models learn from, and of a random order."""
    percent: float
    """Of the measured jobs' mean load that is owned, as one pool of cores."""
    system: str
    """A published model, a predictor's short form, or who needs none."""

    def read(self) -> tuple[TraceJobs, Floats]:
        """The measured jobs, and their runtimes as the system tells them."""
        parts = _parts(self.workload, self.seed)
        return parts.jobs, _estimates(self.workload, self.seed, self.system)


@dataclass(frozen=True, slots=True)
class ModelRun:
    """The compound policy, told runtimes by a model; waits are foreseen."""

    learned: LearnedJobs
    waiting_seconds: float
    short_seconds: float

    def measure(self) -> Mapping[str, float]:
        """Measure cost, and how well runtimes were known (MCC of short jobs, MAPE)."""
        jobs, estimates = self.learned.read()
        fixed = waiting.machines_for(jobs, self.learned.percent)
        policy = waiting_policy("compound", self.waiting_seconds, self.short_seconds)
        _, result = waiting.ran(jobs, fixed, policy, Beliefs(estimates, Foresight()))
        return {
            **waiting.figures_of(result),
            **waiting.knowledge_of(estimates, jobs, self.short_seconds),
        }


@dataclass(frozen=True, slots=True)
class QueueRun:
    """Every job waits, in an order that goes by what is believed of runtimes, or by nothing."""

    learned: LearnedJobs

    def measure(self) -> Mapping[str, float]:
        """Measure how long jobs waited."""
        jobs, estimates = self.learned.read()
        fixed = waiting.machines_for(jobs, self.learned.percent)
        queue = {_RANDOM: "ajw random", _ARRIVAL: "ajw"}.get(self.learned.system, "ajw sjf")
        policy = waiting.policy_of(queue, np.inf, 0.0)
        _, result = waiting.ran(jobs, fixed, policy, Beliefs(estimates), self.learned.seed)
        return waiting.figures_of(result)


@lru_cache(maxsize=1)
def _parts(text: str, seed: int) -> _SplitLog:
    workload = log_of(text, seed)
    every = TraceJobs.of_workload(workload)
    first = int(_LEARNED_SHARE * len(every))
    if not 1 <= first < len(every):
        raise InputError(
            "too few jobs to learn from some and measure others",
            source=text,
            value=len(every),
            expected="some hundreds",
        )
    last = replace(every.among(slice(first, None)), gpus=None)
    return _SplitLog(workload, _features(workload, every), last, first)


def _features(workload: Workload, jobs: TraceJobs) -> Floats:
    """Return what is known on submission: when, whose, limit, width; shape (jobs, 5)."""
    users = workload.jobs["user"].cast(pl.Categorical).to_physical().cast(pl.Float64)
    limits = workload.jobs["requested_seconds"].cast(pl.Float64).fill_nan(None)
    memory = np.zeros(len(jobs)) if jobs.memory_bytes is None else jobs.memory_bytes
    return np.column_stack(
        (
            jobs.submit_seconds,
            users.fill_null(-1.0).to_numpy(),
            limits.fill_null(0.0).to_numpy(),
            jobs.cores,
            memory,
        )
    ).astype(np.float64)


@lru_cache(maxsize=16)
def _estimates(text: str, seed: int, system: str) -> Floats:
    """Seconds by measured job."""
    workload, features, jobs, first = _parts(text, seed)
    if system in (_ORACLE, _RANDOM, _ARRIVAL):
        return jobs.runtime_seconds
    if system == _CLOSE:
        return perturbed(jobs.runtime_seconds, 0.1, seed)
    if system not in RUNTIME_MODELS:
        return believed_runtimes(workload, system)[first:]
    most = _EXAMPLES_OF_VECTORS if system == "svr" else _EXAMPLES
    chosen = np.random.default_rng(seed).permutation(first)[:most]
    model = learn_runtimes(system, features[chosen], workload.runtime_seconds[chosen])
    return model(features[first:])


@dataclass(frozen=True, slots=True)
class RuntimeModelParameters(
    StudyParameters, quick="seeds=4 workload=lublin(jobs=20000)", minutes=(3, 20)
):
    """Parameters of ``waiting-runtime-models``."""

    workload: str = "lublin(jobs=200000)"
    """Short form of a generator whose jobs have users, unless a log is given."""
    log: Path | None = None
    """A log."""
    percent: float = 100.0
    queue_percent: float = 150.0
    """Of the mean load that is owned under the compound policy, and where every job waits."""
    waiting_minutes: float = 1440.0
    short_minutes: tuple[float, ...] = (3.0, 15.0, 60.0)
    """Thresholds b and t, of which the latter makes the figures' axis."""
    models: tuple[str, ...] = RUNTIME_MODELS
    """Published models: ``linear``, ``forest``, ``svr``, ``network``; they need scikit-learn."""
    predictors: tuple[str, ...] = ("combined",)
    """Foresail's own, in short form; they learn from every job that ends."""

    def __post_init__(self) -> None:
        StudyParameters.__post_init__(self)
        for name in self.models:
            if name not in RUNTIME_MODELS:
                raise InputError(
                    "no such model", field="models", value=name, expected=", ".join(RUNTIME_MODELS)
                )
        if not self.models:
            raise InputError("no model", field="models", expected="one or more")


@register("study", "waiting-runtime-models", parameters=RuntimeModelParameters)
def waiting_runtime_models(parameters: RuntimeModelParameters) -> Study:
    """Test whether models of runtimes predict who may wait (figures 7.2 and 7.4, section 7.3)."""
    source = parameters.workload if parameters.log is None else str(parameters.log)
    seeds = range(parameters.seeds)
    told = (_ORACLE, _CLOSE, *parameters.models, *parameters.predictors)
    cases: list[GridPoint] = []
    for seed in seeds:
        for minutes in parameters.short_minutes:
            limits = 60.0 * parameters.waiting_minutes, 60.0 * minutes
            runs = {
                system: ModelRun(LearnedJobs(source, seed, parameters.percent, system), *limits)
                for system in told
            }
            cases += points_at(_POLICY, minutes, seed, runs)
        queues = {
            system: QueueRun(LearnedJobs(source, seed, parameters.queue_percent, system))
            for system in (*told, _RANDOM, _ARRIVAL)
        }
        cases += points_at(_QUEUE, None, seed, queues)
    return Study(
        title="Do models of runtimes tell which jobs may wait?",
        source=f"{waiting.SOURCE}, figures 7.2 and 7.4, and section 7.3",
        axis="short threshold t (min)",
        measures=(
            *waiting.KNOWLEDGE,
            waiting.RENTED_COST,
            waiting.PRICE,
            waiting.WAIT,
        ),
        drawn=("percentage_error", "correlation", "rented_to_fixed", "mean_wait_seconds"),
        cases=tuple(cases),
        claims=published(_model_claims(parameters)),
        notes=(
            "Models learn from the first three quarters of the jobs (at most 20,000, drawn; "
            "5,000 for support vectors), and all figures are of the last quarter.",
            f"Waits are foreseen. Where everybody waits, {parameters.queue_percent:g} % of the "
            "mean load is owned, as published (225 machines for work that keeps 150 busy).",
            "Which of the models was the best is not published. Support vectors are taken for it: "
            "their MAPE is the least, and they take nearly all jobs for short (or for long).",
            "The published log has users and limits, and is not at hand: `--set log=FILE` takes "
            "any that has them.",
        ),
    )


def _model_claims(parameters: RuntimeModelParameters) -> dict[str, Bound]:
    def mean(measure: str, system: str, group: str = _POLICY) -> Mean:
        return Mean(measure, system, group)

    def usual(measure: str, system: str) -> Mean:
        return Mean(measure, system, _POLICY, (_BASELINE_MINUTES,))

    claims: dict[str, Bound] = {}
    for model in parameters.models:
        claims |= {
            f"The error of predicted runtimes is high (figure 7.2 a; "
            f"taken as: MAPE above 100 %; {model}).": Bound(1.0, mean("percentage_error", model)),
            f"Short jobs are hardly told from long ones (figure "
            f"7.2 b; taken as: MCC below 0.2; {model}).": Bound(mean("correlation", model), 0.2),
        }
    if _BEST in parameters.models:
        claims |= {
            "By such runtimes the on-demand cost is 50 to 75 % higher than the oracle's (figure "
            "7.4 a, t of 15 minutes; taken as: 50 % or more; "
            "support vectors).": usual("rented_to_fixed", _ORACLE).against(_BEST, factor=1.0 / 1.5),
            "... and hardly anybody waits (figure 7.4 b; taken as: a tenth of "
            "the oracle's wait).": usual("mean_wait_seconds", _BEST).against(_ORACLE, factor=0.1),
            "Shortest first by predicted runtimes waits longer than by known ones: 1.71 h against "
            "0.6 h (support vectors).": mean("mean_wait_seconds", _ORACLE, _QUEUE).against(_BEST),
            "... and less than in any order: 1.71 h against 3.1 h.": mean(
                "mean_wait_seconds", _BEST, _QUEUE
            ).against(_RANDOM),
        }
    claims |= {
        "Any order waits less than the order of arrival: 3.1 h against 8.1 h.": mean(
            "mean_wait_seconds", _RANDOM, _QUEUE
        ).against(_ARRIVAL)
    }
    return claims


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
        claims=published(_belief_claims(parameters.predictors)),
        notes=(
            "The published models (linear, forest, support vectors, network) knew users and "
            "requests; these are Foresail's predictors, which learn from every job that ends.",
            "Waits are foreseen in all variants, so that runtimes alone make the difference.",
            f'"X{_SURE}" is ours: who is long with 90 %, as X says, waits at once; all others are '
            "tried.",
        ),
    )


def _belief_claims(predictors: tuple[str, ...]) -> dict[str, Bound]:
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
