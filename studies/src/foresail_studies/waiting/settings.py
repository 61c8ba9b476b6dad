"""Studies of waiting policies by setting: delays that cost, practice, and without an oracle."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np

from foresail.cloud.waiting.kernels.waiting_choice import WaitModel
from foresail.cloud.waiting.learning import wait_rows
from foresail.cloud.waiting.simulating import Beliefs, simulate, waiting_policy
from foresail.model.registry import register
from foresail_studies.renting.wait_models import forest_waits
from foresail_studies.study import Bound, GridPoint, Mean, Measure, Study, points_at, published
from foresail_studies.waiting import _variants as variants
from foresail_studies.waiting._shared import (
    CORE_HOUR,
    FAMILY,
    PRICE,
    RENTED,
    RENTED_COST,
    SOURCE,
    WAIT,
    Trace,
    YearParameters,
    figures_of,
    ran,
)
from foresail_studies.waiting._variants import Baseline, ModelScore, VariantRun

_SYSTEMS: Final = ("weighing", "sww", "ajw", "njw")
_GROUP: Final = "money and delay"
_EXAMPLES: Final = 50_000
_PARTS: Final = 8
_SPREAD: Final = 1.5


@dataclass(frozen=True, slots=True)
class DelayRun:
    """A policy for jobs whose delays are worth ``worth`` core-hours an hour, in the middle.

    Worth differs from job to job by a factor that is log-normal, with a deviation of 1.5.
    """

    trace: Trace
    percent: float
    waiting_seconds: float
    system: str
    worth: float

    def measure(self) -> Mapping[str, float]:
        """Its metrics, and what it cost with all delays, relative to renting for every job."""
        jobs, fixed = self.trace.read(), self.trace.machines(self.percent)
        policy = waiting_policy(
            self.system, self.waiting_seconds if self.system == "sww" else math.inf
        )
        model = _learned(self.trace, self.percent)
        random = np.random.default_rng(self.trace.seed)
        delay = self.worth * CORE_HOUR * random.lognormal(0.0, _SPREAD, len(jobs))
        told = Beliefs(
            jobs.runtime_seconds, model if self.system in ("weighing", "sww") else None, delay
        )
        _, result = ran(jobs, fixed, policy, told)
        all_costs = (result.total_cost + result.delay_cost) / result.on_demand_cost
        return {**figures_of(result), "all_costs": all_costs}


@lru_cache(maxsize=1)
def _learned(trace: Trace, percent: float) -> WaitModel:
    """A forest with the quantiles of the waits of another year, in which all wait."""
    jobs, fixed = trace.another().read(), trace.machines(percent)
    policy = waiting_policy("ajw")
    every = max(1, len(jobs) // _EXAMPLES)
    found = simulate(jobs, fixed, FAMILY, policy, Beliefs.true_runtimes(jobs), features_every=every)
    return forest_waits(wait_rows(found, policy), trees=20, parts=_PARTS)


@dataclass(frozen=True, slots=True)
class DelayParameters(
    YearParameters, quick="seeds=3 jobs=1000000 worths=[0.01,0.1,1]", minutes=(4, 30)
):
    """Parameters of ``waiting-delay``."""

    percent: float = 120.0
    """Of the mean load that fixed machines hold."""
    waiting_hours: float = 24.0
    """The longest wait under ``sww``."""
    worths: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
    """Core-hours that an hour's delay of a job is worth, in the middle."""


@register("study", "waiting-delay", parameters=DelayParameters)
def waiting_delay(parameters: DelayParameters) -> Study:
    """Weigh distributions of waits against the worth of each job's delay."""
    cases: list[GridPoint] = []
    for seed in range(parameters.seeds):
        year = Trace("", parameters.jobs, seed)
        where = year, parameters.percent, 3600.0 * parameters.waiting_hours
        for worth in parameters.worths:
            runs = {system: DelayRun(*where, system, worth) for system in _SYSTEMS}
            cases += points_at(_GROUP, worth, seed, runs)
    return Study(
        title="What does it give to know what a delay is worth?",
        source="Foresail: beyond the published policies",
        axis="core-hours that an hour's delay is worth",
        measures=(
            Measure("all_costs", "money and delays (1 = all on demand)"),
            PRICE,
            WAIT,
            RENTED,
        ),
        drawn=("all_costs", "price", "mean_wait_seconds"),
        cases=tuple(cases),
        claims=published(
            {
                f"Weighing costs less than that {name}, if delays are worth {worth:g}.": Mean(
                    "all_costs", "weighing", _GROUP, (worth,)
                ).against(system)
                for worth in parameters.worths
                for system, name in (("ajw", "all wait"), ("njw", "none waits"))
            }
        ),
        notes=(
            "Claims are ours; nothing of this was published.",
            "The forest learned from another year in which all wait, where waits are longer than "
            "under the policy that it then serves.",
        ),
    )


_THRESHOLDS: Final = "waiting threshold b (h)"
_FLEETS: Final = "fixed cores, % of the mean load"
_SHORT_WAITS: Final = "short waits wait, by b (h), figure 7.6"
_LONG_JOBS: Final = (
    "fewer long jobs at the same work, by the mean (min) of runtimes from 3 min to 6 h"
)
_COST: Final = Measure("total_cost", "cost of all machines")
_BASE_HOURS: Final = 24.0


@dataclass(frozen=True, slots=True)
class PracticeParameters(
    YearParameters,
    quick="seeds=3 jobs=3000000 waiting_hours=[6,24] percents=[80,100,150]",
    minutes=(5, 90),
):
    """Parameters of ``waiting-practice``."""

    seeds: int = 3

    short_minutes: float = 15.0
    """Threshold t."""
    waiting_hours: tuple[float, ...] = (6.0, 12.0, 24.0, 48.0)
    """Thresholds b, which figures go by; 24 is the baseline."""
    percents: tuple[float, ...] = (80.0, 100.0, 120.0, 150.0)
    """Of the mean load that fixed machines hold, which figures go by."""
    middle_minutes: tuple[float, ...] = (80.0, 33.0, 17.0, 8.0)
    """Mean runtimes of the jobs between three minutes and six hours, which is not published; 80 is
    that of the generated year. The less it is, the fewer jobs are long."""
    model: str = "forest"
    """Model of waits: ``linear``, or, with scikit-learn, ``forest`` or ``boosting``."""


@register("study", "waiting-practice", parameters=PracticeParameters)
def waiting_practice(parameters: PracticeParameters) -> Study:
    """Policies without an oracle, by threshold and by fleet (7.6, 7.7 b, 7.8 b and 7.9)."""
    cases = [case for seed in range(parameters.seeds) for case in _cases(parameters, seed)]
    return Study(
        title="How far from an oracle are waiting policies in practice?",
        source=f"{SOURCE}, figures 7.6, 7.7 (b), 7.8 (b) and 7.9",
        axis="b (h), fixed cores (%), or mean (min)",
        measures=(
            RENTED_COST,
            WAIT,
            variants.DEARER,
            variants.OF_TRIALS,
            variants.OF_WAITS,
            variants.LONG,
            variants.BLOCKED,
            variants.BLOCKED_WAIT,
            _COST,
        ),
        drawn=("rented_to_fixed", "mean_wait_seconds", "dearer"),
        cases=tuple(cases),
        claims=published(_practice_claims(parameters)),
        notes=(
            "The year is generated from the log's published figures. Models of waits learned from "
            "another generated year under the baseline (b = 24 h, t), one for each fleet, as "
            "published; the published one learned from 70 % of the jobs that it then served.",
            "Of 150 published machines 100 % of the mean load is the counterpart. The fewer weeks "
            "are run, the less of the work has to be rented, and the more any extra is of it.",
            "What a trial costs is t for each long job that finds no machine. Relative to the "
            "oracle's on-demand cost that is t / (mean runtime of long jobs) x (share of them that "
            "find none) / (share of their work that the oracle rents). The published figures leave "
            "the mean open: they hold for all rows of the last table.",
        ),
    )


def _cases(parameters: PracticeParameters, seed: int) -> list[GridPoint]:
    model, combined = parameters.model, f"combined, {parameters.model}"
    waits = f"waits by {model}"
    base = Baseline(
        Trace("", parameters.jobs, seed),
        100.0,
        3600.0 * _BASE_HOURS,
        60.0 * parameters.short_minutes,
    )
    # Without a threshold for short jobs only waits are decided by.
    alone = replace(base, short_seconds=0.0)
    cases = []
    for hours in parameters.waiting_hours:
        here = replace(base, waiting_seconds=3600.0 * hours)
        cases += points_at(_THRESHOLDS, hours, seed, variants.compared(here, model, base))
        only = replace(alone, waiting_seconds=3600.0 * hours)
        tasks = {
            "oracle": VariantRun(only, "oracle"),
            "naive": VariantRun(only, "naive"),
            "waits by a model": VariantRun(only, waits, model, alone),
        }
        cases += points_at(_SHORT_WAITS, hours, seed, tasks)
    for percent in parameters.percents:
        here = replace(base, percent=percent)
        tasks = {
            "oracle": VariantRun(here, "oracle"),
            "combined": VariantRun(here, combined, model),
        }
        cases += points_at(_FLEETS, percent, seed, tasks)
    for minutes in parameters.middle_minutes:
        here = replace(base, trace=Trace("", parameters.jobs, seed, middle_seconds=60.0 * minutes))
        cases.append(
            GridPoint(_LONG_JOBS, minutes, variants.TRIALS, seed, VariantRun(here, "speculative"))
        )
    return cases


def _practice_claims(parameters: PracticeParameters) -> dict[str, Bound]:
    def mean(measure: str, system: str, group: str, *x: float) -> Mean:
        return Mean(measure, system, group, x)

    claims: dict[str, Bound] = {}
    if _BASE_HOURS in parameters.waiting_hours:
        claims |= {
            "Told waits by a model, the on-demand cost is within 2 % of the oracle's at b = 24 h "
            "(figure 7.6).": mean(
                "rented_to_fixed", "waits by a model", _SHORT_WAITS, _BASE_HOURS
            ).against("oracle", factor=1.02),
            "... and the wait within 1 %.": mean(
                "mean_wait_seconds", "waits by a model", _SHORT_WAITS, _BASE_HOURS
            ).against("oracle", factor=1.01),
            "Who waits in vain waits 14 % longer than the oracle.": mean(
                "mean_wait_seconds", "oracle", _SHORT_WAITS, _BASE_HOURS
            ).against("naive", factor=1.0 / 1.14),
            "Combined with trials, the on-demand cost "
            "is within 4 % of the oracle's (figure 7.7).": mean(
                "rented_to_fixed", "combined", _THRESHOLDS, _BASE_HOURS
            ).against("oracle", factor=1.04),
            "... and the wait within 13 % (figure 7.8).": mean(
                "mean_wait_seconds", "combined", _THRESHOLDS, _BASE_HOURS
            ).against("oracle", factor=1.13),
            "Predicted runtimes, which tell nothing, cost 70 % more on demand than the oracle "
            "(taken as: 50 % or more).": Bound(
                0.5, mean("dearer", variants.KNOWING_NOTHING, _THRESHOLDS, _BASE_HOURS)
            ),
            "... and hardly anybody waits (taken as: a minute).": Bound(
                mean("mean_wait_seconds", variants.KNOWING_NOTHING, _THRESHOLDS, _BASE_HOURS), 60.0
            ),
        }
    claims |= {
        **{
            f"With trials and all waits known, the on-demand cost is within 4 % of the oracle's "
            f"(mean of runtimes between 3 min and 6 h: "
            f"{minutes:g} min).": Bound(mean("dearer", variants.TRIALS, _LONG_JOBS, minutes), 0.04)
            for minutes in parameters.middle_minutes
        },
        "The naive policy pays what the oracle pays (taken as: within 0.1 %).": mean(
            "total_cost", "naive", _SHORT_WAITS
        ).against("oracle", factor=1.001),
        "The total cost is near the oracle's whatever is owned (figure 7.9; taken "
        "as: within 4 %).": mean("total_cost", "combined", _FLEETS).against("oracle", factor=1.04),
        "The more is owned, the less jobs wait.": Bound(
            mean("mean_wait_seconds", "combined", _FLEETS, max(parameters.percents)),
            mean("mean_wait_seconds", "combined", _FLEETS, min(parameters.percents)),
        ),
    }
    return claims


_VARIANTS: Final = ("oracle", "naive", "runtimes 10 % off", "speculative", "speculative, spot")
_POLICIES: Final = "policies"
_MODELS: Final = "models of waits"
_BASE_MINUTES: Final = 15.0


@dataclass(frozen=True, slots=True)
class VariantParameters(
    YearParameters,
    quick="seeds=3 jobs=1000000 short_minutes=[5,15] models=[linear,forest]",
    minutes=(6, 90),
):
    """Parameters of ``waiting-variants``."""

    percent: float = 100.0
    """Of the mean load that fixed machines hold."""
    waiting_hours: float = 24.0
    """Threshold b."""
    short_minutes: tuple[float, ...] = (5.0, 15.0, 30.0, 60.0)
    """Thresholds t, which figures go by."""
    models: tuple[str, ...] = ("linear", "forest", "boosting")
    """Models of waits: ``linear``, and, with scikit-learn, ``forest`` and ``boosting``."""


@register("study", "waiting-variants", parameters=VariantParameters)
def waiting_variants(parameters: VariantParameters) -> Study:
    """Measure trials and models of waits without an oracle (figures 7.4, 7.5, 7.7, 7.8)."""
    cases = []
    for seed in range(parameters.seeds):
        trace = Trace("", parameters.jobs, seed)
        base = Baseline(
            trace, parameters.percent, 3600.0 * parameters.waiting_hours, 60.0 * _BASE_MINUTES
        )
        for minutes in parameters.short_minutes:
            here = replace(base, short_seconds=60.0 * minutes)
            cases += [
                GridPoint(_POLICIES, minutes, variant, seed, VariantRun(here, variant))
                for variant in _VARIANTS
            ]
            cases += [
                GridPoint(_POLICIES, minutes, variant, seed, VariantRun(here, variant, model, base))
                for model in parameters.models
                for variant in (f"waits by {model}", f"combined, {model}")
            ]
        cases += [
            GridPoint(_MODELS, hours, model, seed, ModelScore(base, model, 3600.0 * hours))
            for model in parameters.models
            for hours in (0.25, 1.0, 4.0, 12.0, 24.0)
        ]
    return Study(
        title="What is a waiting policy worth without an oracle?",
        source=f"{SOURCE}, figures 7.4, 7.5, 7.7 (a) and 7.8 (a)",
        axis="short threshold t (min), or waiting threshold b of a model (h)",
        measures=(
            PRICE,
            WAIT,
            RENTED_COST,
            variants.DEARER,
            variants.OF_TRIALS,
            variants.OF_WAITS,
            variants.CORRELATION,
            variants.CORRELATION_SPLIT,
            variants.WAIT_ERROR,
        ),
        drawn=("price", "mean_wait_seconds", "correlation"),
        cases=tuple(cases),
        claims=published(_variants_claims(parameters.models, parameters.short_minutes)),
        notes=(
            "Jobs of the generated year have no users: models of runtimes are not compared, and "
            "variants know the runtimes of the queue's order (first come, first served) only.",
            "Waits that were forecast by simulating forward, from runtimes 10 % off and as if "
            "nobody else came, cost as much as with waits foreseen and kept jobs waiting a sixth "
            "longer: who comes later may overtake. That variant has been taken out.",
            "Models learned from another generated year with t = 15 min, for all t. In the "
            "published split, jobs of the test were submitted between those that were learned, "
            "often in the same burst.",
        ),
    )


def _variants_claims(models: tuple[str, ...], minutes: tuple[float, ...]) -> dict[str, Bound]:
    def mean(measure: str, system: str, *x: float) -> Mean:
        return Mean(measure, system, _POLICIES, x)

    claims = {
        "For t of 15 minutes trials cost about what runtimes 10 % off do (figure 7.4; taken as: "
        "10 % more on demand).": mean("rented_to_fixed", "speculative", 15.0).against(
            "runtimes 10 % off", factor=1.10
        ),
        "... and less for smaller t (taken as: less above the oracle's cost).": Bound(
            mean("dearer", "speculative", min(minutes)), mean("dearer", "speculative", max(minutes))
        ),
        "Trials on machines that may be taken back cost less than those on demand.": mean(
            "rented_to_fixed", "speculative, spot"
        ).against("speculative"),
    }
    for model in models:
        if model != "linear":
            claims |= {
                f"A model's MCC is 0.25 or more ({model}; figure 7.5).": Bound(
                    0.25, Mean("correlation", model, _MODELS)
                ),
                f"... and falls with the threshold b ({model}).": Bound(
                    Mean("correlation", model, _MODELS, (24.0,)),
                    Mean("correlation", model, _MODELS, (0.25,)),
                ),
            }
        claims |= {
            f"Combined with trials, the on-demand cost is within 4 % of the oracle's ({model}; "
            f"figure 7.7).": mean("rented_to_fixed", f"combined, {model}", 15.0).against(
                "oracle", factor=1.04
            ),
            f"... and the wait within 13 % (figure 7.8; {model}).": mean(
                "mean_wait_seconds", f"combined, {model}", 15.0
            ).against("oracle", factor=1.13),
        }
    return claims
