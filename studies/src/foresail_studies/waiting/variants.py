"""Studies ``waiting-variants`` and ``waiting-practice``: without an oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from foresail.cloud.waiting.jobs import TraceJobs
from foresail.cloud.waiting.kernels.waiting_choice import WaitModel
from foresail.cloud.waiting.simulating import (
    Beliefs,
    Foresight,
    WaitingPolicy,
    WaitRows,
    linear_waits,
    simulate,
    wait_rows,
    waiting_policy,
)
from foresail.model.distribution import Floats
from foresail.model.registry import register
from foresail_studies.declaring import declared
from foresail_studies.study import GridPoint, Measure, Study, points_at
from foresail_studies.waiting import _shared as waiting
from foresail_studies.waiting._shared import (
    Trace,
    YearParameters,
    jobs_of,
    long_jobs_of,
    numbers_of,
    perturbed,
)
from foresail_studies.waiting.metrics import WaitingMetrics, measured
from foresail_studies.waiting.wait_models import SEED, forest_waits, predicted_waits

SPOT_PRICE: Final = 0.3
_MEAN_ERROR: Final = 0.1
_TAKEN_SOON: Final = 0.45
_EARLY_HOURS: Final = 1.0
_LATE_HOURS: Final = 0.8
_LONGEST_HOURS: Final = 24.0
"""Of lifetimes, as measured for preemptible machines: many end soon, or at the end of a day."""

KNOWING_NOTHING: Final = "runtimes by median"
"""All jobs are believed to run for as long as the middle one: what who knows nothing can tell."""

MEASURES: Final = (
    *waiting.MEASURES,
    Measure("dearer", "on-demand cost above the oracle's", "share"),
    Measure("longer", "wait above the oracle's", "share"),
    Measure("dearer_by_trials", "... for trials of long jobs", "share"),
    Measure("dearer_by_waits", "... for other jobs than the oracle's", "share"),
    Measure("long_jobs", "long jobs", "share"),
    Measure("blocked_long_jobs", "... that find no machine", "share"),
    Measure("blocked_wait_seconds", "... their wait", "duration"),
    Measure("total_cost", "cost of all machines"),
    Measure("correlation", "MCC of waits beyond b"),
    Measure("correlation_split", "MCC, published split"),
    Measure("percentage_error", "MAPE of waits"),
)

_EXAMPLES: Final = 100_000
_LEARNED_SHARE: Final = 0.7
_APART: Final = 1000
"""Seeds of jobs to learn from are so far from those of the jobs that are run."""


class Variant(NamedTuple):
    """One way to live without an oracle: a policy and its knowledge; and see ``simulate``."""

    policy: WaitingPolicy
    beliefs: Beliefs
    lost_seconds: Floats | None = None
    trial_price: float = 1.0


def variant_of(
    name: str, jobs: TraceJobs, baseline: WaitingPolicy, model: WaitModel | None, seed: int = 0
) -> Variant:
    """The published variant of a compound policy of this name, by the baseline's thresholds.

    ``naive`` knows nothing of waits, ``waits by M`` what a model says, which is given; the others
    foresee them. ``speculative`` ones and ``combined, M`` try all jobs, and know no short ones.
    """
    kind = name.split(" by ")[0].split(",")[0]
    tried = replace(baseline, short_seconds=0.0, speculation_seconds=baseline.short_seconds)
    runtimes, told = jobs.runtime_seconds, model if model is not None else Foresight()
    if kind == "naive":
        return Variant(baseline, Beliefs(runtimes))
    if kind in ("oracle", "waits"):
        return Variant(baseline, Beliefs(runtimes, told))
    if name.endswith("spot"):
        lost = lost_in_trials(runtimes, baseline.short_seconds, seed)
        return Variant(tried, Beliefs(runtimes, told), lost, SPOT_PRICE)
    if kind in ("speculative", "combined"):
        return Variant(tried, Beliefs(runtimes, told))
    if name == KNOWING_NOTHING:
        return Variant(baseline, Beliefs(np.full_like(runtimes, np.median(runtimes)), told))
    return Variant(baseline, Beliefs(perturbed(runtimes, _MEAN_ERROR, seed), told))


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


@dataclass(frozen=True, slots=True)
class Baseline:
    """The compound policy that variants are compared with; ``percent`` of the load is owned."""

    trace: Trace
    percent: float
    waiting_seconds: float
    short_seconds: float

    @property
    def policy(self) -> WaitingPolicy:
        """The policy."""
        return waiting_policy("compound", self.waiting_seconds, self.short_seconds)

    def run(self, variant: Variant) -> tuple[WaitingMetrics, Mapping[str, float]]:
        """Measure a variant, and its long jobs."""
        jobs, fixed = jobs_of(self.trace), self.trace.machines(self.percent)
        policy, beliefs, lost, price = variant
        found = simulate(jobs, fixed, waiting.FAMILY, policy, beliefs, lost)
        return measured(found, fixed, policy, price), long_jobs_of(found, policy, price)


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
        model = _learned(self.learned or base, self.model) if self.model else None
        jobs, seed = jobs_of(base.trace), base.trace.seed
        result, long = base.run(variant_of(self.variant, jobs, base.policy, model, seed))
        oracle = _oracle(base)
        rented = (oracle.rented_cost + oracle.trial_cost) or np.nan
        dearer = (result.rented_cost + result.trial_cost) / rented - 1.0
        trials = long["trial_cost"] / rented
        return {
            **numbers_of(result),
            **{name: value for name, value in long.items() if name != "trial_cost"},
            "dearer": dearer,
            "dearer_by_trials": trials,
            "dearer_by_waits": dearer - trials,
            "longer": result.mean_wait_seconds / (oracle.mean_wait_seconds or np.nan) - 1.0,
        }


def _compared(here: Baseline, model: str, learned: Baseline) -> Mapping[str, VariantRun]:
    """The oracle, trials, trials with a model learned under a baseline, and who knows nothing."""
    return {
        "oracle": VariantRun(here, "oracle"),
        "trials, waits known": VariantRun(here, "speculative"),
        "combined": VariantRun(here, f"combined, {model}", model, learned),
        KNOWING_NOTHING: VariantRun(here, KNOWING_NOTHING),
    }


def split_rows(rows: WaitRows) -> tuple[WaitRows, WaitRows]:
    """Seven tenths of the rows at random, and the others."""
    order = np.random.default_rng(SEED).permutation(rows.wait_seconds.size)
    cut = int(_LEARNED_SHARE * order.size)
    first, second = (
        WaitRows(rows.features[part], rows.wait_seconds[part], rows.cut[part])
        for part in (order[:cut], order[cut:])
    )
    return first, second


def score_waits(model: WaitModel, rows: WaitRows, threshold_seconds: float) -> dict[str, float]:
    """Score a model on rows that it has not seen: against a threshold (MCC), in seconds (MAPE).

    The MAPE is that of jobs which waited, and whose whole wait is known.
    """
    predicted = predicted_waits(model, rows.features).mean(axis=1)
    whole = ~rows.cut
    error = waiting.mean_absolute_percentage_error(predicted[whole], rows.wait_seconds[whole])
    beyond = predicted > threshold_seconds, rows.wait_seconds > threshold_seconds
    return {"correlation": waiting.matthews_correlation(*beyond), "percentage_error": error}


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
        split = score_waits(_learned_split(base, self.model), split_rows(_rows(base))[1], limit)
        return {**other, "correlation_split": split["correlation"]}


_LEARN: Final[Mapping[str, Callable[[WaitRows], WaitModel]]] = {
    "linear": linear_waits,
    "forest": forest_waits,
}


@lru_cache(maxsize=4)
def _oracle(base: Baseline) -> WaitingMetrics:
    """Return the result of the oracle's run."""
    return base.run(variant_of("oracle", jobs_of(base.trace), base.policy, None))[0]


@lru_cache(maxsize=3)
def _learned(base: Baseline, model: str) -> WaitModel:
    """A model of the waits of another year's jobs, on machines for these."""
    other = replace(base.trace, seed=base.trace.seed + _APART)
    return _LEARN[model](_rows(replace(base, trace=other), base))


@lru_cache(maxsize=3)
def _learned_split(base: Baseline, model: str) -> WaitModel:
    """A model of 70 % of these jobs' rows."""
    return _LEARN[model](split_rows(_rows(base))[0])


@lru_cache(maxsize=2)
def _rows(base: Baseline, machines_of: Baseline | None = None) -> WaitRows:
    """Examples from a run of the baseline in which no job is told of waits.

    On its own machines, unless those of another baseline are given.
    """
    jobs, trace = jobs_of(base.trace), (machines_of or base).trace
    fixed, told = trace.machines(base.percent), Beliefs(jobs.runtime_seconds)
    every = max(1, len(jobs) // _EXAMPLES)
    found = simulate(jobs, fixed, waiting.FAMILY, base.policy, told, features_every=every)
    return wait_rows(found, base.policy)


_BASE_HOURS: Final = 24.0
_BASE_MINUTES: Final = 15.0


@dataclass(frozen=True, slots=True)
class VariantParameters(
    YearParameters, quick="seeds=3 jobs=1000000 short_minutes=[5,15]", minutes=(6, 90)
):
    """Parameters of ``waiting-variants``."""

    short_minutes: tuple[float, ...] = (5.0, 15.0, 30.0, 60.0)
    """Thresholds t, which figures go by."""
    models: tuple[str, ...] = ("linear", "forest")
    """Models of waits: ``linear``, and, with scikit-learn, ``forest``."""


@register("study", "waiting-variants", parameters=VariantParameters)
def waiting_variants(parameters: VariantParameters) -> Study:
    """Measure trials and models of waits without an oracle (figures 7.4, 7.5, 7.7, 7.8)."""
    alone = ("oracle", "naive", "runtimes 10 % off", "speculative", "speculative, spot")
    models = parameters.models
    cases = []
    for seed in range(parameters.seeds):
        base = _of_year(parameters.jobs, seed)
        for minutes in parameters.short_minutes:
            here = replace(base, short_seconds=60.0 * minutes)
            runs = {variant: VariantRun(here, variant) for variant in alone}
            for model in models:
                for variant in (f"waits by {model}", f"combined, {model}"):
                    runs[variant] = VariantRun(here, variant, model, base)
            cases += points_at("policies", minutes, seed, runs)
        cases += _scores(base, models, (0.25, 1.0, 4.0, 12.0, 24.0), seed)
    rows = [{"model": model} for model in models]
    found = {"trees": [row for row in rows if row["model"] != "linear"], "model": rows}
    ends = {"shortest": min(parameters.short_minutes), "longest": max(parameters.short_minutes)}
    return declared("waiting-variants", MEASURES, cases, found, **ends)


def _of_year(jobs: int, seed: int) -> Baseline:
    limits = 3600.0 * _BASE_HOURS, 60.0 * _BASE_MINUTES
    return Baseline(Trace("", jobs, seed), 100.0, *limits)


def _scores(
    base: Baseline, models: tuple[str, ...], hours: tuple[float, ...], seed: int
) -> list[GridPoint]:
    """Models of waits, by threshold b."""
    return [
        GridPoint("models", each, model, seed, ModelScore(base, model, 3600.0 * each))
        for model in models
        for each in hours
    ]


@dataclass(frozen=True, slots=True)
class PracticeParameters(
    YearParameters,
    quick="seeds=3 jobs=3000000 waiting_hours=[6,24] percents=[80,100,150]",
    minutes=(5, 90),
):
    """Parameters of ``waiting-practice``."""

    seeds: int = 3

    waiting_hours: tuple[float, ...] = (6.0, 12.0, 24.0, 48.0)
    """Thresholds b, which figures go by; 24 is the baseline."""
    percents: tuple[float, ...] = (80.0, 100.0, 120.0, 150.0)
    """Of the mean load that fixed machines hold, which figures go by."""
    middle_minutes: tuple[float, ...] = (80.0, 33.0, 17.0, 8.0)
    """Mean runtimes of the jobs between three minutes and six hours, which is not published; 80 is
    that of the generated year. The less it is, the fewer jobs are long."""


@register("study", "waiting-practice", parameters=PracticeParameters)
def waiting_practice(parameters: PracticeParameters) -> Study:
    """Policies without an oracle, by threshold and by fleet (7.6, 7.7 b, 7.8 b and 7.9)."""
    cases = [case for seed in range(parameters.seeds) for case in _practice(parameters, seed)]
    middle = [{"minutes": minutes} for minutes in parameters.middle_minutes]
    most, least = max(parameters.percents), min(parameters.percents)
    return declared("waiting-practice", MEASURES, cases, {"middle": middle}, most=most, least=least)


def _practice(parameters: PracticeParameters, seed: int) -> list[GridPoint]:
    model, combined = "forest", "combined, forest"
    base = _of_year(parameters.jobs, seed)
    # Without a threshold for short jobs only waits are decided by.
    alone = replace(base, short_seconds=0.0)
    cases = []
    for hours in parameters.waiting_hours:
        here = replace(base, waiting_seconds=3600.0 * hours)
        cases += points_at("thresholds", hours, seed, _compared(here, model, base))
        only = replace(alone, waiting_seconds=3600.0 * hours)
        runs = {name: VariantRun(only, name) for name in ("oracle", "naive")}
        runs["waits by a model"] = VariantRun(only, f"waits by {model}", model, alone)
        cases += points_at("short_waits", hours, seed, runs)
    for percent in parameters.percents:
        here = replace(base, percent=percent)
        runs = {"oracle": VariantRun(here, "oracle"), "combined": VariantRun(here, combined, model)}
        cases += points_at("fleets", percent, seed, runs)
    for minutes in parameters.middle_minutes:
        here = replace(base, trace=Trace("", parameters.jobs, seed, middle_seconds=60.0 * minutes))
        runs = {"trials, waits known": VariantRun(here, "speculative")}
        cases += points_at("long_jobs", minutes, seed, runs)
    return cases
