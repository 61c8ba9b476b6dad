"""Waiting policies without an oracle, as the tasks of studies: their runs and their models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from foresail.cloud.waiting.kernels.waiting_choice import WaitModel
from foresail.cloud.waiting.learning import (
    WaitRows,
    boosted_waits,
    forest_waits,
    linear_waits,
    wait_rows,
)
from foresail.cloud.waiting.metrics import WaitingMetrics, measured
from foresail.cloud.waiting.simulating import (
    Beliefs,
    Foresight,
    WaitingPolicy,
    simulate,
    waiting_policy,
)
from foresail_studies.study import Measure
from foresail_studies.waiting import _shared as waiting
from foresail_studies.waiting.learned import score_waits, split_rows
from foresail_studies.waiting.long_jobs import long_jobs_of
from foresail_studies.waiting.side_by_side import standard_variants

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
