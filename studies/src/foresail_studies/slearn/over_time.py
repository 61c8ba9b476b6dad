"""Study ``slearn-over-time``: load, work ahead of jobs, and errors, from the first job to the last.

Each seed is a group of its own, since it is another trace: the mean of several would show no load.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from foresail.model.arrays import Floats, Integers
from foresail.model.registry import register
from foresail_studies.generated import generated
from foresail_studies.slearn import _shared as slearn
from foresail_studies.study import GridPoint, Measure, Study, published

_LOAD: Final = Measure("load", "work submitted, over what all slots can do")
_SUBMITTED: Final = "submitted"
_SYSTEMS: Final = (slearn.SLEARN, slearn.SIGMA, slearn.ORACLE)
_WINDOWS: Final = 25
_TRACE: Final = "2strace"


@dataclass(frozen=True, slots=True)
class LoadTrial:
    """The work that is submitted in one of the windows that the time of submissions is cut into."""

    workload: str
    history: str
    seed: int
    window: int

    def measure(self) -> Mapping[str, float]:
        """Its seconds over those of all slots."""
        found = slearn.replayed(self.workload, self.history, self.seed, slearn.SLEARN)
        slots = generated(self.workload, self.seed).processors
        reach = float(found.submit[-1] - found.submit[0])
        within = _windows(found.submit) == self.window
        work = float(found.stages.job_seconds[within].sum())
        return {_LOAD.name: work * _WINDOWS / (slots * reach)}


@dataclass(frozen=True, slots=True)
class TimelineTrial:
    """Metrics of the jobs that are submitted in one of the windows."""

    workload: str
    history: str
    seed: int
    policy: str
    window: int

    def measure(self) -> Mapping[str, float]:
        """Means over these jobs; nan where there are none."""
        found = slearn.replayed(self.workload, self.history, self.seed, self.policy)
        within = _windows(found.submit) == self.window
        of_jobs = slearn.by_job(self.workload, self.history, self.seed, self.policy)
        values = {
            slearn.AHEAD.name: of_jobs[slearn.AHEAD.name],
            slearn.SIGNED_ERROR.name: of_jobs[slearn.SIGNED_ERROR.name],
            slearn.COMPLETION.name: slearn.completion(found),
        }
        known = {name: each[within & np.isfinite(each)] for name, each in values.items()}
        return {name: float(each.mean()) if each.size else np.nan for name, each in known.items()}


def _windows(submit: Floats) -> Integers:
    """The window of each submission, from 0; the last one is in the last."""
    share = (submit - submit[0]) / max(float(submit[-1] - submit[0]), 1.0)
    windows: Integers = np.minimum((share * _WINDOWS).astype(np.int64), _WINDOWS - 1)
    return windows


@dataclass(frozen=True, slots=True)
class OverTimeParameters(slearn.SLearnStudyParameters):
    """Parameters of ``slearn-over-time``."""

    QUICK: ClassVar[Mapping[str, str]] = {"seeds": "3"}
    QUICK_MINUTES: ClassVar[float] = 1.0
    FULL_MINUTES: ClassVar[float] = 3.0

    seeds: int = 10


@register("study", "slearn-over-time", parameters=OverTimeParameters)
def over_time(parameters: OverTimeParameters) -> Study:
    """Load, work ahead, errors and completion times of jobs by when they come (figure 14)."""
    trace = slearn.traces(parameters)[list(slearn.TRACES).index(_TRACE)]
    cases = []
    for seed in range(parameters.seeds):
        for window in range(_WINDOWS):
            where = (f"{trace.name} {seed}", (window + 0.5) / _WINDOWS)
            made = (trace.run, trace.history, seed)
            cases.append(GridPoint(*where, _SUBMITTED, seed, LoadTrial(*made, window)))
            cases += [
                GridPoint(*where, system, seed, TimelineTrial(*made, system, window))
                for system in _SYSTEMS
            ]
    measures = (_LOAD, slearn.AHEAD, slearn.SIGNED_ERROR, slearn.COMPLETION)
    return Study(
        title="What happens to jobs when much work comes?",
        source=f"{slearn.SOURCE}, section 5.4.4 and figure 14",
        axis="share of the time from the first submission to the last",
        measures=measures,
        drawn=tuple(measure.name for measure in measures),
        cases=tuple(cases),
        claims=published(
            {
                "Work ahead of a job is less under SLearn than under 3Sigma.": slearn.AHEAD.of(
                    slearn.SLEARN
                ).against(slearn.SIGMA),
                "Work ahead of a job is no more than under the oracle (taken "
                "as: 10 %).": slearn.AHEAD.of(slearn.SLEARN).against(slearn.ORACLE, factor=1.1),
                "3Sigma takes more jobs for longer than they are than SLearn "
                "does (mean error).": slearn.SIGNED_ERROR.of(slearn.SLEARN).against(slearn.SIGMA),
            }
        ),
        notes=(
            f"A window is a {_WINDOWS}th of the time of submissions, and has the jobs submitted "
            "then. Each seed is another trace, and drawn by itself. Published curves have a point "
            "for each 1000 s.",
            slearn.AHEAD_IS,
            *slearn.notes(parameters),
        ),
    )
