"""Study ``slearn-distributions``: how waits, errors and work ahead are spread over the jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from foresail.model.registry import register
from foresail_studies.slearn import _shared as slearn
from foresail_studies.study import Bound, GridPoint, Mean, Measure, Study

_SHARES: Final = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
_SYSTEMS: Final = (slearn.SLEARN, slearn.SIGMA, slearn.ORACLE)


@dataclass(frozen=True, slots=True)
class DistributionTrial:
    """Share of the jobs below each value, of one replay."""

    workload: str
    history: str
    seed: int
    policy: str
    share: float

    def measure(self) -> Mapping[str, float]:
        """Quantiles of normalised waits, signed errors of wide jobs, and resistance."""
        found = slearn.by_job(self.workload, self.history, self.seed, self.policy)
        return {name: float(np.nanquantile(each, self.share)) for name, each in found.items()}


@dataclass(frozen=True, slots=True)
class DistributionParameters(slearn.SLearnStudyParameters):
    """Parameters of ``slearn-distributions``."""

    QUICK: ClassVar[Mapping[str, str]] = {"seeds": "3"}
    QUICK_MINUTES: ClassVar[float] = 2.0
    FULL_MINUTES: ClassVar[float] = 10.0

    seeds: int = 10


@register("study", "slearn-distributions", parameters=DistributionParameters)
def distributions(parameters: DistributionParameters) -> Study:
    """Waits, signed errors and work ahead by the share of jobs below (section 5.4)."""
    cases = [
        GridPoint(trace.name, share, each, seed, DistributionTrial(*trace[1:], seed, each, share))
        for trace in slearn.traces(parameters)
        for seed in range(parameters.seeds)
        for each in _SYSTEMS
        for share in _SHARES
    ]
    return Study(
        title="How are waits, errors and the work ahead spread over the jobs?",
        source=f"{slearn.SOURCE}, section 5.4 and table 10",
        axis="share of the jobs below",
        measures=(slearn.WAITING, slearn.SIGNED_ERROR, slearn.AHEAD),
        drawn=(slearn.WAITING.name, slearn.SIGNED_ERROR.name, slearn.AHEAD.name),
        cases=tuple(cases),
        claims=slearn.claims(lambda _, group: _claims(group)),
        notes=(
            "Waits are those of a job's tasks over their mean runtime. Errors are cut at 1000 %.",
            slearn.AHEAD_IS,
            *slearn.notes(parameters),
        ),
    )


def _claims(group: str) -> dict[str, Bound]:
    def below(measure: Measure, share: float) -> Mean:
        return Mean(measure.name, slearn.SLEARN, group, (share,))

    return {
        f"The largest tenth of 3Sigma's errors is larger than that of SLearn's ({group}).": below(
            slearn.SIGNED_ERROR, 0.9
        ).against(slearn.SIGMA),
        f"The most work ahead of a job is less under SLearn than under 3Sigma ({group}).": below(
            slearn.AHEAD, 0.9
        ).against(slearn.SIGMA),
        f"Jobs that wait the longest for their length wait less under SLearn ({group}).": below(
            slearn.WAITING, 0.9
        ).against(slearn.SIGMA),
        f"Work ahead is no more than the oracle's (taken as: 10 %, "
        f"of 90 % of jobs; {group}).": below(slearn.AHEAD, 0.9).against(slearn.ORACLE, factor=1.1),
    }
