"""Study ``3sigma-sample-size``: how many earlier runs a belief has to rest on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.model.registry import register
from foresail_studies.policies import dropping
from foresail_studies.study import Bound, Study, published
from foresail_studies.three_sigma import _shared as three_sigma
from foresail_studies.trial_grid import TrialSetting, cases_of, named

_SAMPLED: Final = {
    three_sigma.SIGMA: dropping("3sigma,sampled,exponential_increment"),
    three_sigma.POINTS: dropping(
        "3sigma(distribution=no,over_estimates=off),sampled,exponential_increment"
    ),
}
_ENOUGH: Final = 25


@dataclass(frozen=True, slots=True)
class SampleSizeParameters(three_sigma.E2EStudyParameters):
    """Parameters of ``3sigma-sample-size``."""

    QUICK: ClassVar[dict[str, str]] = {**three_sigma.QUICK, "samples": "[5,25,100]"}
    QUICK_MINUTES: ClassVar[float] = 2.0
    FULL_MINUTES: ClassVar[float] = 60.0

    samples: tuple[int, ...] = (5, 10, 25, 50, 75, 100)
    """How many samples of its own distribution each job's belief is made of."""


@register("study", "3sigma-sample-size", parameters=SampleSizeParameters)
def sample_size(parameters: SampleSizeParameters) -> Study:
    """Find how many earlier runs a belief has to rest on (figure 4.11)."""
    cases = []
    for samples in parameters.samples:
        sampled = three_sigma.recipe(parameters, "e2e_sample", f",samples={samples}")
        setting = TrialSetting(sampled, None, "E2E-SAMPLE", samples)
        cases += cases_of(parameters, [setting], _SAMPLED)
        # The same jobs without samples, which these two do not look at: run once for all sizes.
        bare = TrialSetting(three_sigma.recipe(parameters), None, "E2E-SAMPLE", samples)
        cases += cases_of(parameters, [bare], named(three_sigma.PERFECT, three_sigma.PRIORITY))
    return Study(
        title="How many earlier runs does a belief have to rest on?",
        source=f"{three_sigma.SOURCE}, figure 4.11",
        axis="samples of each job's distribution",
        measures=three_sigma.MEASURES,
        drawn=three_sigma.DRAWN,
        cases=tuple(cases),
        claims=published(_claims(min(parameters.samples), max(parameters.samples))),
        notes=three_sigma.notes_of(parameters),
    )


def _claims(fewest: int, most: int) -> dict[str, Bound]:
    misses = three_sigma.misses
    return {
        **{
            f"From 5 to 25 samples fewer deadlines are missed ({system}).": Bound(
                misses(system, _ENOUGH), misses(system, fewest)
            )
            for system in _SAMPLED
        },
        "With 25 samples 3Sigma has converged to PointPerfEst (taken as: within 3 points).": misses(
            three_sigma.SIGMA, _ENOUGH
        ).against(three_sigma.PERFECT, margin=0.03),
        "3Sigma misses fewer deadlines than PointRealEst with any number of samples.": misses(
            three_sigma.SIGMA
        ).against(three_sigma.POINTS),
        "More samples than 25 change little (taken as: less than 2 points).": Bound(
            misses(three_sigma.SIGMA, _ENOUGH), misses(three_sigma.SIGMA, most), margin=0.02
        ),
        "3Sigma matches PointPerfEst at the sacrifice of best-effort "
        "goodput.": three_sigma.BEST_EFFORT.of(three_sigma.SIGMA).against(three_sigma.PERFECT),
    }
