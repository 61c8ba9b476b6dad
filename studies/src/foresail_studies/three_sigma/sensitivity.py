"""Studies of what 3Sigma depends on: techniques, load, errors and size of beliefs, cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from foresail.model.registry import register
from foresail_studies import trial as grid
from foresail_studies.policies import dropping
from foresail_studies.study import Bound, Mean, Measure, Study, published
from foresail_studies.three_sigma._shared import (
    BEST_EFFORT,
    CHOSEN,
    DRAWN,
    DROPPING,
    GOODPUT,
    MAIN,
    MEASURES,
    MISSES,
    PERFECT,
    POINTS,
    PRIORITY,
    SIGMA,
    SOURCE,
    E2EStudyParameters,
    ThreeSigmaParameters,
    history_of,
    misses,
    notes_of,
    recipe,
)
from foresail_studies.trial import TrialSetting, beginning_of, cases_of, named

_SYSTEMS: Final = (
    *(
        SIGMA,
        "3sigma-no-dist-published",
        "3sigma-no-oe-published",
        "3sigma-no-adapt-published",
    ),
    *(PERFECT, POINTS),
)


@dataclass(frozen=True, slots=True)
class AttributionParameters(
    E2EStudyParameters, quick="seeds=3 slack_percents=[20,60,140]", minutes=(5, 240)
):
    """Parameters of ``3sigma-attribution``."""

    slack_percents: tuple[float, ...] = tuple(range(20, 200, 20))
    """Slacks of the deadlines, each for all jobs of a run."""


@register("study", "3sigma-attribution", parameters=AttributionParameters)
def attribution(parameters: AttributionParameters) -> Study:
    """Measure the gain of each of 3Sigma's techniques, over deadline slack (figure 4.8)."""
    settings = [_attribution_setting(parameters, slack) for slack in parameters.slack_percents]
    tightest, loosest = min(parameters.slack_percents), max(parameters.slack_percents)
    return Study(
        title="What does each of 3Sigma's techniques give?",
        source=f"{SOURCE}, figure 4.8",
        axis="deadline slack (%)",
        measures=MEASURES,
        drawn=DRAWN,
        cases=tuple(cases_of(parameters, settings, named(*_SYSTEMS))),
        claims=published(_attribution_claims(tightest), *_slack_claims(tightest, loosest)),
        notes=notes_of(parameters),
    )


def _attribution_setting(parameters: AttributionParameters, slack: float) -> TrialSetting:
    workload = recipe(parameters, "deadline", f",slack_percent={slack:g}")
    return TrialSetting(workload, history_of(workload, parameters), "DEADLINE-n", slack)


def _attribution_claims(tightest: float) -> dict[str, Bound]:
    return {
        "Handling over-estimates alone misses fewer "
        "deadlines than PointRealEst (3SigmaNoDist).": misses("3sigma-no-dist-published").against(
            POINTS
        ),
        "Without distributions more deadlines are missed than with them (3SigmaNoDist against "
        "3Sigma).": misses(SIGMA).against("3sigma-no-dist-published"),
        "Distributions alone drop misses to the level of PointPerfEst (3SigmaNoOE; taken as: "
        "within 3 points).": misses("3sigma-no-oe-published").against(PERFECT, margin=0.03),
        "Distributions alone miss fewer deadlines than PointRealEst (3SigmaNoOE).": misses(
            "3sigma-no-oe-published"
        ).against(POINTS),
        "Blind over-estimate handling misses fewest at the smallest slack (3SigmaNoAdapt against "
        "3Sigma).": misses("3sigma-no-adapt-published", tightest).against(SIGMA),
        "Blind over-estimate handling costs best-effort "
        "goodput (3SigmaNoAdapt against 3Sigma).": BEST_EFFORT.of(
            "3sigma-no-adapt-published"
        ).against(SIGMA),
        "3Sigma misses at least 60 % fewer deadlines than PointRealEst.": misses(SIGMA).against(
            POINTS, factor=0.4
        ),
    }


def _slack_claims(tightest: float, loosest: float) -> list[dict[str, Bound]]:
    return [
        {
            f"Misses fall with slack ({system}).": Bound(
                misses(system, loosest), misses(system, tightest)
            ),
            f"Best-effort goodput falls with slack ({system}).": Bound(
                BEST_EFFORT.of(system, loosest),
                BEST_EFFORT.of(system, tightest),
            ),
        }
        for system in (SIGMA, PERFECT, POINTS)
    ]


@dataclass(frozen=True, slots=True)
class LoadParameters(E2EStudyParameters, quick="loads=[1,1.4,1.6]", minutes=(3, 60)):
    """Parameters of ``3sigma-load``."""

    loads: tuple[float, ...] = (1.0, 1.2, 1.4, 1.6)
    """Offered loads, half of each from jobs with deadlines; instead of ``load``."""


@register("study", "3sigma-load", parameters=LoadParameters)
def load(parameters: LoadParameters) -> Study:
    """Deadlines and best-effort work as the load grows (figure 4.10)."""
    settings = [_load_setting(parameters, each) for each in parameters.loads]
    return Study(
        title="What happens as the load grows?",
        source=f"{SOURCE}, figure 4.10",
        axis="offered load",
        measures=MEASURES,
        drawn=DRAWN,
        cases=tuple(cases_of(parameters, settings, named(*MAIN))),
        claims=published(_load_claims(min(parameters.loads), max(parameters.loads))),
        notes=notes_of(parameters),
    )


def _load_setting(parameters: LoadParameters, each: float) -> TrialSetting:
    loaded = replace(parameters, load=each)
    workload = recipe(loaded)
    return TrialSetting(workload, history_of(workload, loaded), "E2E-LOAD", each)


def _load_claims(least: float, most: float) -> dict[str, Bound]:

    def best_effort(system: str, *x: float) -> Mean:
        return Mean(BEST_EFFORT.name, system, x=x)

    return {
        **{
            f"More deadlines are missed at a higher load ({system}).": Bound(
                misses(system, least), misses(system, most)
            )
            for system in MAIN
        },
        **{
            f"3Sigma misses fewer deadlines than {system} over all loads.": misses(SIGMA).against(
                system
            )
            for system in (POINTS, PRIORITY)
        },
        "3Sigma matches PointPerfEst closely (taken as: within 3 points).": misses(SIGMA).against(
            PERFECT, margin=0.03
        ),
        **{
            f"Best-effort goodput falls with the load ({system}).": Bound(
                best_effort(system, most), best_effort(system, least)
            )
            for system in MAIN
        },
        "At the highest load 3Sigma does less best-effort work than PointPerfEst.": best_effort(
            SIGMA, most
        ).against(PERFECT),
    }


_SMALL_SHIFT = 20.0


@dataclass(frozen=True, slots=True)
class PerturbationParameters(
    E2EStudyParameters, quick="shift_percents=[-50,0,50]", minutes=(4, 60)
):
    """Parameters of ``3sigma-perturbation``."""

    shift_percents: tuple[float, ...] = (-50.0, -20.0, 0.0, 20.0, 50.0, 100.0)
    """By how much of the runtime beliefs are off on average."""
    spread_percents: tuple[float, ...] = (10.0, 20.0, 50.0)
    """Standard deviations of beliefs in per cent of the runtime, the narrowest first."""


@register("study", "3sigma-perturbation", parameters=PerturbationParameters)
def perturbation(parameters: PerturbationParameters) -> Study:
    """Beliefs that are off, narrow or wide, against points (figure 4.9)."""
    workload = recipe(parameters)
    cases = [
        case
        for shift in parameters.shift_percents
        for case in cases_of(
            parameters,
            [TrialSetting(workload, None, "perturbed E2E", shift)],
            _policies(parameters, shift),
        )
    ]
    return Study(
        title="How wrong may a distribution be, and how wide?",
        source=f"{SOURCE}, figure 4.9",
        axis="mean shift of beliefs (%)",
        measures=MEASURES,
        drawn=DRAWN,
        cases=tuple(cases),
        claims=published(_perturbation_claims(parameters)),
        notes=(
            *notes_of(parameters),
            "Each job's shift is normal about the target with a deviation of 10 points; beliefs "
            "are truncated to positive runtimes. The grid and the spreads are chosen; points are "
            "the same scheduler with the mean alone.",
        ),
    )


def _policies(parameters: PerturbationParameters, shift: float) -> dict[str, str]:
    told = f"shift_percent={shift:g},seed={{seed}}"
    policies = {
        _system(spread): dropping(
            f"3sigma,perturbed({told},spread_percent={spread:g}),exponential_increment"
        )
        for spread in parameters.spread_percents
    }
    point = f"3sigma(distribution=no),perturbed({told},spread_percent=0)"
    return {**policies, "point": dropping(f"{point},exponential_increment")}


def _system(spread: float) -> str:
    return f"CoV {spread:g} %"


def _perturbation_claims(parameters: PerturbationParameters) -> dict[str, Bound]:
    narrow, wide = _system(parameters.spread_percents[0]), _system(parameters.spread_percents[-1])
    shifts = parameters.shift_percents
    small = tuple(shift for shift in shifts if abs(shift) <= _SMALL_SHIFT)
    large = tuple(shift for shift in shifts if abs(shift) > _SMALL_SHIFT)

    better = {
        f"Distributions miss fewer deadlines than points ({_system(spread)}).": misses(
            _system(spread)
        ).against("point")
        for spread in parameters.spread_percents
    }
    return {
        **better,
        "At shift 0 distributions miss half as many deadlines as points.": misses(
            narrow, 0.0
        ).against("point", factor=0.5),
        "At small shifts (within 20 %) narrow distributions miss fewer than wide ones.": misses(
            narrow, *small
        ).against(wide),
        "At larger shifts wide distributions miss fewer than narrow ones.": misses(
            wide, *large
        ).against(narrow),
    }


_SAMPLED: Final = {
    SIGMA: dropping("3sigma,sampled,exponential_increment"),
    POINTS: dropping("3sigma(distribution=no,over_estimates=off),sampled,exponential_increment"),
}
_ENOUGH: Final = 25


@dataclass(frozen=True, slots=True)
class SampleSizeParameters(E2EStudyParameters, quick="samples=[5,25,100]", minutes=(2, 60)):
    """Parameters of ``3sigma-sample-size``."""

    samples: tuple[int, ...] = (5, 10, 25, 50, 75, 100)
    """How many samples of its own distribution each job's belief is made of."""


@register("study", "3sigma-sample-size", parameters=SampleSizeParameters)
def sample_size(parameters: SampleSizeParameters) -> Study:
    """Find how many earlier runs a belief has to rest on (figure 4.11)."""
    cases = []
    for samples in parameters.samples:
        sampled = recipe(parameters, "e2e_sample", f",samples={samples}")
        setting = TrialSetting(sampled, None, "E2E-SAMPLE", samples)
        cases += cases_of(parameters, [setting], _SAMPLED)
        # The same jobs without samples, which these two do not look at: run once for all sizes.
        bare = TrialSetting(recipe(parameters), None, "E2E-SAMPLE", samples)
        cases += cases_of(parameters, [bare], named(PERFECT, PRIORITY))
    return Study(
        title="How many earlier runs does a belief have to rest on?",
        source=f"{SOURCE}, figure 4.11",
        axis="samples of each job's distribution",
        measures=MEASURES,
        drawn=DRAWN,
        cases=tuple(cases),
        claims=published(_sample_size_claims(min(parameters.samples), max(parameters.samples))),
        notes=notes_of(parameters),
    )


def _sample_size_claims(fewest: int, most: int) -> dict[str, Bound]:
    return {
        **{
            f"From 5 to 25 samples fewer deadlines are missed ({system}).": Bound(
                misses(system, _ENOUGH), misses(system, fewest)
            )
            for system in _SAMPLED
        },
        "With 25 samples 3Sigma has converged to PointPerfEst (taken as: within 3 points).": misses(
            SIGMA, _ENOUGH
        ).against(PERFECT, margin=0.03),
        "3Sigma misses fewer deadlines than PointRealEst with any number of samples.": misses(
            SIGMA
        ).against(POINTS),
        "More samples than 25 change little (taken as: less than 2 points).": Bound(
            misses(SIGMA, _ENOUGH), misses(SIGMA, most), margin=0.02
        ),
        "3Sigma matches PointPerfEst at the sacrifice of best-effort goodput.": BEST_EFFORT.of(
            SIGMA
        ).against(PERFECT),
    }


_PREDICTION: Final = Measure("prediction_milliseconds_max", "slowest prediction (ms)")
_SLOWEST: Final = Measure("cycle_milliseconds_max", "slowest cycle (ms)")


@dataclass(frozen=True, slots=True)
class ScalabilityStudyParameters(
    ThreeSigmaParameters,
    quick="seeds=3 hours=0.25 discarded_hours=0 history_hours=1",
    minutes=(2, 90),
):
    """Parameters of ``3sigma-scalability``."""

    nodes: int = 12_583
    cycle_seconds: float = 2.0

    jobs_per_hour: tuple[int, ...] = (2000, 3000, 4000)
    """Rates of submission."""
    history_hours: float = 10.0
    """Length of what predictors learn from before the run."""


@register("study", "3sigma-scalability", parameters=ScalabilityStudyParameters)
def scalability(parameters: ScalabilityStudyParameters) -> Study:
    """Measure the cost of planning with distributions on Google's machine size (figure 4.12)."""
    settings = [_scalability_setting(parameters, rate) for rate in parameters.jobs_per_hour]
    systems = named(SIGMA, POINTS)
    most = max(parameters.jobs_per_hour)
    return Study(
        title="What does planning with distributions cost on 12,583 nodes?",
        source=f"{SOURCE}, figure 4.12",
        axis="jobs per hour",
        measures=(
            *(grid.CYCLE, grid.SLOW_CYCLE, _SLOWEST, _PREDICTION),
            *(MISSES, GOODPUT),
        ),
        drawn=(grid.CYCLE.name, grid.SLOW_CYCLE.name),
        cases=tuple(cases_of(parameters, settings, systems)),
        claims=published(
            {
                "Distributions make cycles only moderately slower than points (taken as: 99 % of "
                "them within twice as long).": grid.SLOW_CYCLE.of(SIGMA).against(
                    POINTS, factor=2.0
                ),
                "Producing a distribution takes 14 ms at most.": Bound(_PREDICTION.of(SIGMA), 14.0),
                "At the highest rate a cycle takes less than the cycle's length.": Bound(
                    grid.SLOW_CYCLE.of(SIGMA, most), 1000.0 * parameters.cycle_seconds
                ),
            }
        ),
        notes=(
            DROPPING,
            beginning_of(parameters),
            CHOSEN,
            "Latencies are those of the machine that ran the study, with as many runs at once as "
            "it has processors.",
        ),
    )


def _scalability_setting(parameters: ScalabilityStudyParameters, rate: int) -> TrialSetting:
    size = f"hours={parameters.hours:g},nodes={parameters.nodes},jobs_per_hour={rate}"
    history = f"scalability({size},history_hours={parameters.history_hours:g},part=history)"
    return TrialSetting(f"scalability({size})", history, "SCALABILITY-n", float(rate))
