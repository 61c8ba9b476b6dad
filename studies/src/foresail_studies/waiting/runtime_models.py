"""Study ``waiting-runtime-models``: what is known of runtimes on submission."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from foresail.cloud.waiting.jobs import TraceJobs
from foresail.cloud.waiting.simulating import Beliefs, Foresight, waiting_policy
from foresail.evaluation.replaying import believed_runtimes
from foresail.model.distribution import Floats
from foresail.model.errors import InputError, UnknownNameError
from foresail.model.registry import register
from foresail.traces.workload import Workload
from foresail_studies.declaring import declared
from foresail_studies.study import GridPoint, Study, StudyParameters, log_of, points_at
from foresail_studies.waiting import _shared as waiting
from foresail_studies.waiting.wait_models import DEPTH, SEED, scikit_learn

RUNTIME_MODELS: Final = ("linear", "forest", "svr", "network")
_ORACLE: Final = "oracle"
_CLOSE: Final = "10 % off"
_RANDOM: Final = "any order"
_ARRIVAL: Final = "in order of arrival"

_BEST: Final = "svr"
"""The model with the least MAPE, which goes by medians and takes nearly all jobs for short, as the
published best model does; which one that was is not published."""

_PERCENT: Final = 100.0
_QUEUE_PERCENT: Final = 150.0
"""Of the mean load that is owned under the compound policy, and where every job waits."""
_WAITING_SECONDS: Final = 24 * 3600.0

_LEARNED_SHARE: Final = 0.75
_EXAMPLES: Final = 20_000
_EXAMPLES_OF_VECTORS: Final = 5_000
"""Learning support vectors takes a time that grows with the square of the examples."""

RuntimeModel = Callable[[Floats], Floats]
"""Estimated seconds by rows of job features."""


def learn_runtimes(kind: str, features: Floats, runtime_seconds: Floats) -> RuntimeModel:
    """A model of runtimes from rows of what is known on submission (section 7.2's comparison).

    ``kind`` is linear regression, a random forest, support vectors or a neural network.

    Raises ``UnknownNameError`` if there is no such kind; ``InputError`` if scikit-learn is not
    installed.
    """
    if kind not in RUNTIME_MODELS:
        raise UnknownNameError("runtime model", kind, RUNTIME_MODELS)
    if kind == "linear":
        model = scikit_learn("linear_model").LinearRegression()
    elif kind == "forest":
        model = scikit_learn("ensemble").RandomForestRegressor(
            n_estimators=50, max_depth=DEPTH, random_state=SEED
        )
    elif kind == "svr":
        model = scikit_learn("svm").SVR()
    else:
        model = scikit_learn("neural_network").MLPRegressor(
            hidden_layer_sizes=(64, 32), max_iter=1000, early_stopping=True, random_state=SEED
        )
    scaler = scikit_learn("preprocessing").StandardScaler()
    scaled = scikit_learn("pipeline").make_pipeline(scaler, model)
    scaled.fit(features, runtime_seconds)

    def estimate(rows: Floats) -> Floats:
        return np.maximum(np.asarray(scaled.predict(rows), dtype=np.float64), 0.0)

    return estimate


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
        jobs = _parts(self.workload, self.seed).jobs
        return jobs, _estimates(self.workload, self.seed, self.system)


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
        return {
            **waiting.figures_of(jobs, fixed, policy, Beliefs(estimates, Foresight())),
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
        return waiting.figures_of(jobs, fixed, policy, Beliefs(estimates), self.learned.seed)


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
    asked = users.fill_null(-1.0).to_numpy(), limits.fill_null(0.0).to_numpy(), jobs.cores, memory
    return np.column_stack((jobs.submit_seconds, *asked)).astype(np.float64)


@lru_cache(maxsize=16)
def _estimates(text: str, seed: int, system: str) -> Floats:
    """Seconds by measured job."""
    workload, features, jobs, first = _parts(text, seed)
    if system in (_ORACLE, _RANDOM, _ARRIVAL):
        return jobs.runtime_seconds
    if system == _CLOSE:
        return waiting.perturbed(jobs.runtime_seconds, 0.1, seed)
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
    short_minutes: tuple[float, ...] = (3.0, 15.0, 60.0)
    """Thresholds t, which make the figures' axis; claims are about 15."""
    models: tuple[str, ...] = RUNTIME_MODELS
    """Published models: ``linear``, ``forest``, ``svr``, ``network``; they need scikit-learn."""
    predictors: tuple[str, ...] = ("combined",)
    """Foresail's own, in short form; they learn from every job that ends."""

    def __post_init__(self) -> None:
        StudyParameters.__post_init__(self)
        for name in self.models or ("none",):
            if name not in RUNTIME_MODELS:
                raise InputError(
                    "no such model", field="models", value=name, expected=", ".join(RUNTIME_MODELS)
                )


@register("study", "waiting-runtime-models", parameters=RuntimeModelParameters)
def waiting_runtime_models(parameters: RuntimeModelParameters) -> Study:
    """Test whether models of runtimes predict who may wait (figures 7.2 and 7.4, section 7.3)."""
    source = parameters.workload if parameters.log is None else str(parameters.log)
    told = (_ORACLE, _CLOSE, *parameters.models, *parameters.predictors)
    cases: list[GridPoint] = []
    for seed in range(parameters.seeds):
        learned = {system: LearnedJobs(source, seed, _PERCENT, system) for system in told}
        for minutes in parameters.short_minutes:
            limits = _WAITING_SECONDS, 60.0 * minutes
            runs = {system: ModelRun(jobs, *limits) for system, jobs in learned.items()}
            cases += points_at("policy", minutes, seed, runs)
        queues = {
            system: QueueRun(LearnedJobs(source, seed, _QUEUE_PERCENT, system))
            for system in (*told, _RANDOM, _ARRIVAL)
        }
        cases += points_at("queue", None, seed, queues)
    rows = {
        "models": [{"model": model} for model in parameters.models],
        "best": [{"best": _BEST}] if _BEST in parameters.models else [],
    }
    return declared("waiting-runtime-models", waiting.MEASURES, cases, rows, percent=_QUEUE_PERCENT)
