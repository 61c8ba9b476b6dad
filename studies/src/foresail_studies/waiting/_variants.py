"""Waiting policies without an oracle, as the tasks of studies: their runs and their models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np

from foresail.cloud.waiting.jobs import TraceJobs
from foresail.cloud.waiting.kernels.waiting_choice import WaitModel
from foresail.cloud.waiting.learning import WaitRows, linear_waits, wait_rows
from foresail.cloud.waiting.simulating import (
    Beliefs,
    Foresight,
    WaitingPolicy,
    simulate,
    waiting_policy,
)
from foresail.model.arrays import Floats
from foresail_studies.renting.metrics import WaitingMetrics, measured
from foresail_studies.renting.wait_models import boosted_waits, forest_waits
from foresail_studies.study import Measure
from foresail_studies.waiting import _shared as waiting
from foresail_studies.waiting._shared import long_jobs_of, perturbed, score_waits, split_rows

SPOT_PRICE: Final = 0.3
_MEAN_ERROR: Final = 0.1
_TAKEN_SOON: Final = 0.45
_EARLY_HOURS: Final = 1.0
_LATE_HOURS: Final = 0.8
_LONGEST_HOURS: Final = 24.0
"""Of lifetimes, as measured for preemptible machines: many end soon, or at the end of a day."""


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """One way to live without an oracle."""

    name: str
    """Shown in tables."""
    policy: WaitingPolicy
    beliefs: Beliefs
    """The policy and its knowledge."""
    lost_seconds: Floats | None = None
    trial_price: float = 1.0
    """Of trials; see ``simulate`` and ``measured``."""


def standard_variants(
    jobs: TraceJobs,
    baseline: WaitingPolicy,
    wait_models: Mapping[str, WaitModel],
    runtime_estimates: Mapping[str, Floats],
    seed: int = 0,
) -> list[Variant]:
    """The published variants of a compound policy, and those of the models that are given.

    All go by the baseline's thresholds. A model of waits gives SWW-ML, and with speculation the
    combined variant; estimates of runtimes (by job) one variant with waits still foreseen.
    """
    short = baseline.short_seconds
    tried = replace(baseline, short_seconds=0.0, speculation_seconds=short)
    truth = Beliefs.true_runtimes(jobs)
    foreseen = Beliefs.true_runtimes(jobs, Foresight())
    lost = lost_in_trials(jobs.runtime_seconds, short, seed)
    close = perturbed(jobs.runtime_seconds, _MEAN_ERROR, seed)
    variants = [
        Variant("oracle", baseline, foreseen),
        Variant("naive", baseline, truth),
        Variant("runtimes 10 % off", baseline, Beliefs(close, Foresight())),
        Variant("speculative", tried, foreseen),
        Variant("speculative, spot", tried, foreseen, lost, SPOT_PRICE),
    ]
    for name, estimates in runtime_estimates.items():
        variants.append(Variant(f"runtimes by {name}", baseline, Beliefs(estimates, Foresight())))
    for name, model in wait_models.items():
        told = Beliefs.true_runtimes(jobs, model)
        variants.append(Variant(f"waits by {name}", baseline, told))
        variants.append(Variant(f"combined, {name}", tried, told))
    return variants


def taken_by(seconds: Floats) -> Floats:
    """Share of machines that were taken back by then: A (1 - exp(-x / e) + exp((x - 24 h) / l))."""
    hours = seconds / 3600.0
    soon = 1.0 - np.exp(-hours / _EARLY_HOURS)
    share = _TAKEN_SOON * (soon + np.exp((hours - _LONGEST_HOURS) / _LATE_HOURS))
    return np.where(hours >= _LONGEST_HOURS, 1.0, np.clip(share, 0.0, 1.0))


def lost_in_trials(runtime_seconds: Floats, speculation_seconds: float, seed: int) -> Floats:
    """By job: how long its trial ran before its machine was taken back; 0 if it was not."""
    seconds: Floats = np.arange(0.0, 3600.0 * _LONGEST_HOURS + 1.0)
    levels = np.random.default_rng(seed).random(runtime_seconds.size)
    life = np.interp(levels, taken_by(seconds), seconds)
    return np.where(life < np.minimum(runtime_seconds, speculation_seconds), life, 0.0)


DEARER: Final = Measure("dearer", "on-demand cost above the oracle's", "share")
LONGER: Final = Measure("longer", "wait above the oracle's", "share")
OF_TRIALS: Final = Measure("dearer_by_trials", "... for trials of long jobs", "share")
OF_WAITS: Final = Measure("dearer_by_waits", "... for other jobs than the oracle's", "share")
LONG: Final = Measure("long_jobs", "long jobs", "share")
BLOCKED: Final = Measure("blocked_long_jobs", "... that find no machine", "share")
BLOCKED_WAIT: Final = Measure("blocked_wait_seconds", "... their wait", "duration")

CORRELATION: Final = Measure("correlation", "MCC of waits beyond b")
CORRELATION_SPLIT: Final = Measure("correlation_split", "MCC, published split")
WAIT_ERROR: Final = Measure("percentage_error", "MAPE of waits")

TRIALS: Final = "trials, waits known"
KNOWING_NOTHING: Final = "runtimes by median"
"""All jobs are believed to run for as long as the middle one: what who knows nothing can tell."""

_EXAMPLES: Final = 100_000


@dataclass(frozen=True, slots=True)
class Baseline:
    """The compound policy that variants are compared with; ``percent`` of the load is owned."""

    trace: waiting.JobSource
    percent: float
    waiting_seconds: float
    short_seconds: float

    @property
    def policy(self) -> WaitingPolicy:
        """The policy."""
        return waiting_policy("compound", self.waiting_seconds, self.short_seconds)


@dataclass(frozen=True, slots=True)
class VariantRun:
    """A variant; ``model`` names the model of waits that it uses, if any.

    ``learned`` is the baseline whose waits the model learned; None: that of the variant.
    """

    baseline: Baseline
    variant: str
    model: str = ""
    learned: Baseline | None = None

    def measure(self) -> Mapping[str, float]:
        """Measure cost, waits, and the distance from the oracle, by reasons."""
        base = self.baseline
        jobs, fixed = base.trace.read(), base.trace.machines(base.percent)
        models = {self.model: _learned(self.learned or base, self.model)} if self.model else {}
        median = np.full(len(jobs), float(np.median(jobs.runtime_seconds)))
        told = standard_variants(
            jobs, base.policy, models, {"median": median}, seed=base.trace.seed
        )
        chosen = next(each for each in told if each.name == self.variant)
        found = simulate(
            jobs, fixed, base.trace.family(), chosen.policy, chosen.beliefs, chosen.lost_seconds
        )
        result = measured(found, fixed, chosen.policy, chosen.trial_price)
        oracle = _oracle(base)
        long = long_jobs_of(found, chosen.policy, chosen.trial_price)
        rented = oracle.rented_cost + oracle.trial_cost
        dearer = (result.rented_cost + result.trial_cost) / rented - 1.0 if rented else np.nan
        trials = long.trial_cost / rented if rented else np.nan
        waited = oracle.mean_wait_seconds
        return {
            **waiting.figures_of(result),
            "dearer": dearer,
            "dearer_by_trials": trials,
            "dearer_by_waits": dearer - trials,
            "longer": result.mean_wait_seconds / waited - 1.0 if waited else np.nan,
            "long_jobs": long.long_jobs,
            "blocked_long_jobs": long.blocked_long_jobs,
            "blocked_wait_seconds": long.blocked_wait_seconds,
        }


def compared(here: Baseline, model: str, learned: Baseline) -> Mapping[str, VariantRun]:
    """The oracle, trials, trials with a model learned under a baseline, and who knows nothing."""
    return {
        "oracle": VariantRun(here, "oracle"),
        TRIALS: VariantRun(here, "speculative"),
        "combined": VariantRun(here, f"combined, {model}", model, learned),
        KNOWING_NOTHING: VariantRun(here, KNOWING_NOTHING),
    }


@dataclass(frozen=True, slots=True)
class ModelScore:
    """Score of a model that foresees waits beyond a threshold."""

    baseline: Baseline
    model: str
    threshold_seconds: float

    def measure(self) -> Mapping[str, float]:
        """MCC against the threshold, and MAPE of the waits.

        Of a model that learned from other jobs; ``correlation_split`` is that of the published
        split, where the jobs of the test were submitted between those that were learned.
        """
        base, limit = self.baseline, self.threshold_seconds
        other = score_waits(_learned(base, self.model), _rows(base), limit)
        model, test = _learned_split(base, self.model)
        split = score_waits(model, test, limit)
        return {
            "correlation": other.correlation,
            "percentage_error": other.percentage_error,
            "correlation_split": split.correlation,
        }


_LEARN: Final[Mapping[str, Callable[[WaitRows], WaitModel]]] = {
    "linear": linear_waits,
    "forest": lambda rows: forest_waits(rows, trees=30),
    "boosting": lambda rows: boosted_waits(rows, trees=50),
}


@lru_cache(maxsize=4)
def _oracle(base: Baseline) -> WaitingMetrics:
    """Return the result of the oracle's run."""
    jobs, fixed = base.trace.read(), base.trace.machines(base.percent)
    told = Beliefs.true_runtimes(jobs, Foresight())
    return measured(
        simulate(jobs, fixed, base.trace.family(), base.policy, told), fixed, base.policy
    )


@lru_cache(maxsize=3)
def _learned(base: Baseline, model: str) -> WaitModel:
    """A model of the waits of other jobs of the same kind."""
    return _LEARN[model](_rows(base, another=True))


@lru_cache(maxsize=3)
def _learned_split(base: Baseline, model: str) -> tuple[WaitModel, WaitRows]:
    """A model of 70 % of these jobs' rows, and the other rows."""
    learn, test = split_rows(_rows(base))
    return _LEARN[model](learn), test


@lru_cache(maxsize=2)
def _rows(base: Baseline, another: bool = False) -> WaitRows:
    """Examples from a run of the baseline in which no job is told of waits."""
    jobs = (base.trace.another() if another else base.trace).read()
    fixed = base.trace.machines(base.percent)
    every = max(1, len(jobs) // _EXAMPLES)
    found = simulate(
        jobs,
        fixed,
        base.trace.family(),
        base.policy,
        Beliefs.true_runtimes(jobs),
        features_every=every,
    )
    return wait_rows(found, base.policy)
