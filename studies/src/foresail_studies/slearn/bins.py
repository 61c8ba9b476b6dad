"""Study ``slearn-bins``: which jobs gain, by width and size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.model.registry import register
from foresail_studies.slearn import _shared as slearn
from foresail_studies.slearn.task_jobs import bins
from foresail_studies.study import Bound, Mean, Measure, Study, published

_JOBS: Final = Measure("jobs_share", "of the jobs", "share")
_WORK: Final = Measure("work_share", "of the work", "share")
_PUBLISHED: Final = {
    "thin, small": (10.54, 0.0455),
    "wide, small": (1.86, 0.2873),
    "thin, large": (0.80, 0.1429),
    "wide, large": (1.38, 0.5243),
}
"""Published average speed-ups over 3Sigma on 2STrace, and shares of the jobs (table 9)."""


@dataclass(frozen=True, slots=True)
class BinTrial:
    """Jobs of one bin: their shares, and SLearn's speed-up over 3Sigma."""

    workload: str
    history: str
    seed: int
    bin: str

    def measure(self) -> Mapping[str, float]:
        """Measure as above."""
        of_trace = (self.workload, self.history, self.seed)
        ours, theirs = (slearn.replayed(*of_trace, each) for each in (slearn.SLEARN, slearn.SIGMA))
        first_task = slearn.first_tasks(ours)
        size = np.add.reduceat(ours.stages.runtime_seconds, first_task[:-1])
        found = bins(np.diff(first_task), size, slearn.completion(theirs), slearn.completion(ours))
        one = next(each for each in found if each.name == self.bin)
        return {
            slearn.FASTER.name: one.speedup.average,
            slearn.MEDIAN.name: one.speedup.median,
            _JOBS.name: one.jobs_percent / 100.0,
            _WORK.name: one.work_percent / 100.0,
        }


@register("study", "slearn-bins", parameters=slearn.SLearnStudyParameters)
def slearn_bins(parameters: slearn.SLearnStudyParameters) -> Study:
    """SLearn's speed-up over 3Sigma by width and size of the jobs (figure 8, table 9)."""
    places, systems = slearn.traces(parameters), slearn.by_name(*_PUBLISHED)
    return Study(
        title="Which jobs gain from sampling, by width and size?",
        source=f"{slearn.SOURCE}, figure 8 and table 9",
        measures=(slearn.FASTER, slearn.MEDIAN, _JOBS, _WORK),
        drawn=(slearn.FASTER.name,),
        cases=slearn.points(places, parameters.seeds, systems, BinTrial),
        claims=published(_claims(slearn.wider("2strace")), _claims(slearn.narrow("2strace"))),
        notes=(
            "Thin: fewer than three tasks; small: below 1000 s of work.",
            *slearn.notes(parameters),
        ),
    )


def _claims(group: str) -> dict[str, Bound]:
    claims = {}
    for name, (factor, share) in _PUBLISHED.items():
        ours = Mean(slearn.FASTER.name, name, group)
        said = f"{name} ({share:.1%} of the jobs; {group}): published speed-up {factor:g}"
        if factor < 1.0:
            claims[f"{said}, slower than under 3Sigma."] = Bound(ours, 1.0)
        else:
            claims[f"{said}, faster than under 3Sigma."] = Bound(1.0, ours)
    return claims
