"""Studies beyond SLearn's evaluation: deadlines, and where history or sampling is best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from foresail.model.registry import register
from foresail_studies.analyses.misordering import MISORDERED_BY_HISTORY, misordered_by_sampling
from foresail_studies.slearn._shared import (
    COMPLETION,
    ERROR,
    SOURCE,
    completion,
    estimates,
    first_tasks,
    replayed,
)
from foresail_studies.study import (
    BestMap,
    Bound,
    GridPoint,
    Measure,
    Study,
    StudyParameters,
    published,
)

_HISTORY: Final = "history"
_SAMPLING: Final = "sampling"
_BOTH: Final = "both"
_PERCENT: Final = 3
_POLICIES: Final = {
    _HISTORY: "predicted_queues,history_point(utility=mean,features=[executable])",
    _SAMPLING: f"slearn(pilot_percent={_PERCENT})",
    _BOTH: f"slearn(pilot_percent={_PERCENT},source=proved,statistic=log_posterior),"
    "history(features=[executable])",
}
_LOSS: Final = Measure("of_better", "of the better of history and sampling (completion)", "share")
_MISORDERED: Final = Measure("misordered", "two jobs put in the wrong order (model)", "share")
_NOISE: Final = 1.02


@dataclass(frozen=True, slots=True)
class RegimeTrial:
    """Jobs of one width with one variation over time and over space, under one of the three."""

    system: str
    """``history``, ``sampling`` or ``both``."""
    width: int
    job_variation: float
    task_variation: float
    jobs: int
    """As for the generator ``task_regimes``."""
    seed: int

    def measure(self) -> Mapping[str, float]:
        """Completion times, errors, and the closed form of section 4.1."""
        found = replayed(*self._trace(), self.seed, _POLICIES[self.system])
        size = np.add.reduceat(found.stages.runtime_seconds, first_tasks(found)[:-1])
        wide = np.ones(size.size, dtype=np.bool_)
        mean = self._mean_of(self.system)
        figures = {
            COMPLETION.name: mean,
            ERROR.name: estimates(found.estimate, size, wide)[ERROR.name],
            _MISORDERED.name: self._misordered(),
        }
        if self.system == _BOTH:
            better = min(self._mean_of(_HISTORY), self._mean_of(_SAMPLING))
            figures[_LOSS.name] = mean / better
        return figures

    def _mean_of(self, system: str) -> float:
        found = replayed(*self._trace(), self.seed, _POLICIES[system])
        return float(completion(found).mean())

    def _misordered(self) -> float:
        """Return whether the joined estimate is on the pilots' side of the prior's mean."""
        if self.system == _HISTORY:
            return MISORDERED_BY_HISTORY
        pilots = max(_PERCENT * self.width // 100, 1)
        return misordered_by_sampling(self.job_variation, self.task_variation, pilots)

    def _trace(self) -> tuple[str, str]:
        settings = (
            f"jobs={self.jobs},width={self.width},job_variation={self.job_variation:g},"
            f"task_variation={self.task_variation:g}"
        )
        return f"task_regimes({settings})", f"task_regimes({settings},part=history)"


@dataclass(frozen=True, slots=True)
class RegimeParameters(StudyParameters, quick="seeds=5", minutes=(4, 20)):
    """Parameters of ``slearn-regimes``."""

    POSITIVE: ClassVar[tuple[str, ...]] = ("jobs",)

    seeds: int = 20

    jobs: int = 400
    """Of each run."""
    widths: tuple[int, ...] = (10, 50, 150)
    """Tasks of every job."""
    variations: tuple[float, ...] = (0.1, 0.3, 0.7, 1.5)
    """Coefficients of variation over time and over space."""


@register("study", "slearn-regimes", parameters=RegimeParameters)
def regimes(parameters: RegimeParameters) -> Study:
    """Find where history, sampling and both have the least completion time (section 4.1)."""
    cases = [
        GridPoint(
            _group(width, space),
            time,
            system,
            seed,
            RegimeTrial(system, width, time, space, parameters.jobs, seed),
        )
        for width in parameters.widths
        for space in parameters.variations
        for seed in range(parameters.seeds)
        for time in parameters.variations
        for system in _POLICIES
    ]
    return Study(
        title="Where is history best, where sampling, and where both together?",
        source=f"{SOURCE}, section 4.1",
        axis="job-wise variation",
        measures=(COMPLETION, ERROR, _MISORDERED, _LOSS),
        drawn=(),
        cases=tuple(cases),
        claims=published(
            {
                f"Ours: both together lose by no more than noise against the better of the two "
                f"(taken as: 2 %; {_group(width, space)}).": Bound(
                    _LOSS.of(_BOTH, group=_group(width, space)), _NOISE
                )
                for width in parameters.widths
                for space in parameters.variations
            }
        ),
        notes=(
            f"Every job has as many tasks; {_PERCENT} % of them are pilots, one at least. Jobs "
            "belong to 20 names whose mean work is 300 to 100,000 s; history is the mean of as "
            "many jobs of the names as are run. Load 1, 150 slots.",
            "Variations are coefficients of variation, of log-normal values. The better of the two "
            "is taken seed by seed, which is a little better than either can be known to be.",
            "In the model (section 4.1) history orders two jobs of one prior by chance; both "
            "together order them as sampling does.",
        ),
        maps=tuple(
            BestMap(
                f"Least {measure.label}, {width} tasks a job",
                measure.name,
                "task-wise variation",
                {_group(width, space): f"{space:g}" for space in parameters.variations},
            )
            for measure in (COMPLETION, ERROR)
            for width in parameters.widths
        ),
    )


def _group(width: int, space: float) -> str:
    return f"{width} tasks, task-wise variation {space:g}"
