"""Study ``slearn-distributions``: how waits, errors and work ahead are spread over the jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from foresail.experiments.studies import _slearn as slearn
from foresail.experiments.study import GridPoint, Mean, Measure, PublishedClaim, Study
from foresail.metrics.task_jobs import (
    normalised_waiting,
    resistance,
    signed_error_percent,
    size_queues,
)
from foresail.model.registry import register

_SHARES: Final = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
_ERROR: Final = Measure("signed_error", "error of the estimate, too long above 0", "share")
_AHEAD: Final = Measure("resistance", "work ahead of a job, in 1000 s of the whole cluster")
_SYSTEMS: Final = (slearn.SLEARN, slearn.SIGMA, slearn.ORACLE)


@dataclass(frozen=True, slots=True)
class DistributionTrial:
    """What a share of the jobs is below, of one replay."""

    workload: str
    history: str
    seed: int
    policy: str
    share: float

    def measure(self) -> Mapping[str, float]:
        """Quantiles of normalised waits, signed errors of wide jobs, and resistance."""
        found = _by_job(self.workload, self.history, self.seed, self.policy)
        return {name: float(np.nanquantile(each, self.share)) for name, each in found.items()}


@lru_cache(maxsize=4)
def _by_job(
    workload: str, history: str, seed: int, policy: str
) -> Mapping[str, NDArray[np.float64]]:
    """The measures of each job; nan where it has none; shape (jobs,) each."""
    found = slearn.replayed(workload, history, seed, policy)
    first_task = slearn.first_tasks(found)
    runtime = found.stages.runtime_seconds
    known = np.where(found.pilots > 0, found.estimated, found.submit)
    error = signed_error_percent(found.estimate, found.stages.job_seconds) / 100.0
    return {
        slearn.WAITING.name: normalised_waiting(found.submit, found.start, runtime, first_task),
        _ERROR.name: np.where(np.diff(first_task) >= slearn.WIDE_BEGINS, error, np.nan),
        _AHEAD.name: resistance(
            known,
            size_queues(found.estimate),
            known,
            found.start,
            runtime,
            first_task,
            slearn.generated(workload, seed).processors,
        ),
    }


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
        GridPoint(
            trace.name,
            share,
            system,
            seed,
            DistributionTrial(trace.run, trace.history, seed, system, share),
        )
        for trace in slearn.traces(parameters)
        for seed in range(parameters.seeds)
        for system in _SYSTEMS
        for share in _SHARES
    ]
    return Study(
        title="How are waits, errors and the work ahead spread over the jobs?",
        source=f"{slearn.SOURCE}, section 5.4 and table 10",
        axis="share of the jobs below",
        measures=(slearn.WAITING, _ERROR, _AHEAD),
        drawn=(slearn.WAITING.name, _ERROR.name, _AHEAD.name),
        cases=tuple(cases),
        claims=slearn.claims(lambda _, group: _claims(group)),
        notes=(
            "Waits are those of a job's tasks over their mean runtime. The work ahead (resistance) "
            "is what is left of tasks that run, and of jobs in higher queues or earlier in the "
            "same, when a job is submitted, or, of a sampled one, when its pilots have told. "
            "Errors are cut at 1000 %.",
            *slearn.notes(parameters),
        ),
    )


def _claims(group: str) -> list[PublishedClaim]:
    def below(measure: Measure, share: float) -> Mean:
        return Mean(measure.name, slearn.SLEARN, group, (share,))

    return [
        PublishedClaim(
            f"The largest tenth of 3Sigma's errors is larger than that of SLearn's ({group}).",
            *below(_ERROR, 0.9).against(slearn.SIGMA),
        ),
        PublishedClaim(
            f"The most work ahead of a job is less under SLearn than under 3Sigma ({group}).",
            *below(_AHEAD, 0.9).against(slearn.SIGMA),
        ),
        PublishedClaim(
            f"Jobs that wait the longest for their length wait less under SLearn ({group}).",
            *below(slearn.WAITING, 0.9).against(slearn.SIGMA),
        ),
        PublishedClaim(
            f"Work ahead is like the oracle's (taken as: within 10 %, of 90 % of jobs; {group}).",
            *below(_AHEAD, 0.9).against(slearn.ORACLE),
            factor=1.1,
        ),
    ]
