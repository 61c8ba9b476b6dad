"""Study ``3sigma-sample-size``: how many earlier runs a belief has to rest on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.experiments.studies import _sigma as sigma
from foresail.experiments.study import Claim, Mean, Study
from foresail.model.registry import register

_SAMPLED: Final = {
    "3sigma": "three_sigma,sampled,exponential_increment",
    "point-real": "three_sigma(distribution=no,over_estimates=off),sampled,exponential_increment",
}
_ENOUGH: Final = 25


@dataclass(frozen=True, slots=True)
class SampleSizeParameters(sigma.SigmaParameters):
    """Parameters of ``3sigma-sample-size``.

    Parameters
    ----------
    samples
        How many samples of its own distribution each job's belief is made of.
    """

    QUICK: ClassVar[dict[str, str]] = {**sigma.QUICK, "samples": "[5,25,100]"}
    QUICK_MINUTES: ClassVar[float] = 2.0
    FULL_MINUTES: ClassVar[float] = 60.0

    samples: tuple[int, ...] = (5, 10, 25, 50, 75, 100)


@register("study", "3sigma-sample-size", parameters=SampleSizeParameters)
def sample_size(parameters: SampleSizeParameters) -> Study:
    """How many earlier runs a belief has to rest on (figure 4.11)."""
    cases = []
    for samples in parameters.samples:
        sampled = sigma.recipe(parameters, "e2e_sample", f",samples={samples}")
        setting = sigma.Setting(sampled, None, "E2E-SAMPLE", samples)
        cases += sigma.cases_of(parameters, setting, _SAMPLED)
        # The same jobs without samples, which these two do not look at: run once for all sizes.
        bare = sigma.Setting(sigma.recipe(parameters), None, "E2E-SAMPLE", samples)
        cases += sigma.cases_of(parameters, bare, sigma.named("point-perfect", "prio"))
    return Study(
        title="How many earlier runs does a belief have to rest on?",
        source="3Sigma (J. W. Park, Distribution-based cluster scheduling, 2019), figure 4.11",
        axis="samples of each job's distribution",
        measures=sigma.MEASURES,
        drawn=sigma.DRAWN,
        cases=tuple(cases),
        claims=_claims(min(parameters.samples), max(parameters.samples)),
        notes=sigma.NOTES,
    )


def _claims(fewest: int, most: int) -> tuple[Claim, ...]:
    def misses(system: str, *x: float) -> Mean:
        return Mean(sigma.MISSES.name, system, x=x)

    return (
        *(
            Claim(
                f"From 5 to 25 samples fewer deadlines are missed ({system}).",
                misses(system, _ENOUGH),
                misses(system, fewest),
            )
            for system in _SAMPLED
        ),
        Claim(
            "With 25 samples 3Sigma has converged to PointPerfEst (taken as: within 3 points).",
            misses("3sigma", _ENOUGH),
            misses("point-perfect", _ENOUGH),
            margin=0.03,
        ),
        Claim(
            "3Sigma misses fewer deadlines than PointRealEst with any number of samples.",
            misses("3sigma"),
            misses("point-real"),
        ),
        Claim(
            "More samples than 25 change little (taken as: less than 2 points).",
            misses("3sigma", _ENOUGH),
            misses("3sigma", most),
            margin=0.02,
        ),
        Claim(
            "3Sigma matches PointPerfEst at the sacrifice of best-effort goodput.",
            Mean(sigma.BEST_EFFORT.name, "3sigma"),
            Mean(sigma.BEST_EFFORT.name, "point-perfect"),
        ),
    )
