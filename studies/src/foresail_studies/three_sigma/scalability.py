"""Study ``3sigma-scalability``: what planning with distributions costs on Google's machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.model.registry import register
from foresail_studies import trial_grid as grid
from foresail_studies.study import Bound, Measure, Study, published
from foresail_studies.three_sigma import _shared as three_sigma
from foresail_studies.trial_grid import TrialSetting, beginning_of, cases_of, named

_PREDICTION: Final = Measure("prediction_milliseconds_max", "slowest prediction (ms)")
_SLOWEST: Final = Measure("cycle_milliseconds_max", "slowest cycle (ms)")


@dataclass(frozen=True, slots=True)
class ScalabilityStudyParameters(three_sigma.ThreeSigmaParameters):
    """Parameters of ``3sigma-scalability``."""

    QUICK: ClassVar[dict[str, str]] = {
        "seeds": "3",
        "hours": "0.25",
        "discarded_hours": "0",
        "history_hours": "1",
    }
    QUICK_MINUTES: ClassVar[float] = 2.0
    FULL_MINUTES: ClassVar[float] = 90.0

    nodes: int = 12_583
    cycle_seconds: float = 2.0

    jobs_per_hour: tuple[int, ...] = (2000, 3000, 4000)
    """Rates of submission."""
    history_hours: float = 10.0
    """Length of what predictors learn from before the run."""


@register("study", "3sigma-scalability", parameters=ScalabilityStudyParameters)
def scalability(parameters: ScalabilityStudyParameters) -> Study:
    """Measure the cost of planning with distributions on Google's machine size (figure 4.12)."""
    settings = [_setting(parameters, rate) for rate in parameters.jobs_per_hour]
    systems = named(three_sigma.SIGMA, three_sigma.POINTS)
    most = max(parameters.jobs_per_hour)
    return Study(
        title="What does planning with distributions cost on 12,583 nodes?",
        source=f"{three_sigma.SOURCE}, figure 4.12",
        axis="jobs per hour",
        measures=(
            *(grid.CYCLE, grid.SLOW_CYCLE, _SLOWEST, _PREDICTION),
            *(three_sigma.MISSES, three_sigma.GOODPUT),
        ),
        drawn=(grid.CYCLE.name, grid.SLOW_CYCLE.name),
        cases=tuple(cases_of(parameters, settings, systems)),
        claims=published(
            {
                "Distributions make cycles only moderately slower than points (taken as: 99 % of "
                "them within twice as long).": grid.SLOW_CYCLE.of(three_sigma.SIGMA).against(
                    three_sigma.POINTS, factor=2.0
                ),
                "Producing a distribution takes 14 ms at most.": Bound(
                    _PREDICTION.of(three_sigma.SIGMA), 14.0
                ),
                "At the highest rate a cycle takes less than the cycle's length.": Bound(
                    grid.SLOW_CYCLE.of(three_sigma.SIGMA, most), 1000.0 * parameters.cycle_seconds
                ),
            }
        ),
        notes=(
            three_sigma.DROPPING,
            beginning_of(parameters),
            three_sigma.CHOSEN,
            "Latencies are those of the machine that ran the study, with as many runs at once as "
            "it has processors.",
        ),
    )


def _setting(parameters: ScalabilityStudyParameters, rate: int) -> TrialSetting:
    size = f"hours={parameters.hours:g},nodes={parameters.nodes},jobs_per_hour={rate}"
    history = f"scalability({size},history_hours={parameters.history_hours:g},part=history)"
    return TrialSetting(f"scalability({size})", history, "SCALABILITY-n", float(rate))
